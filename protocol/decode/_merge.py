"""The hops of a decode as one interaction. What is given is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..untyped import items, mapping, string
from ._usage import merge_usage

__all__ = ("ids_of", "merge", "output_text")

_OF_THE_FIRST = ("previous_interaction_id", "created", "input")


def merge(hops: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One interaction out of the hops of a decode, in order; at least one.

    Its fields are those of the last hop, but `previous_interaction_id`, `created` and `input`, which are the first
    one's. `steps` are those of all hops: a text that was cut between two hops stays two steps, and an input that a
    later hop repeats is left out. `usage` is the sum, `continuation_ids` names all interactions, `output_text` is
    what the steps say. To merge what has been merged already is the same as to merge all at once.
    """
    merged = dict(hops[-1])
    if len(hops) > 1:
        for name in _OF_THE_FIRST:
            merged.pop(name, None)
            if name in hops[0]:
                merged[name] = hops[0][name]
        usage = merge_usage([mapping(hop.get("usage")) for hop in hops])
        merged.pop("usage", None)
        if usage is not None:
            merged["usage"] = usage
    steps = list(items(hops[0].get("steps")))
    for hop in hops[1:]:
        steps += _without_input(items(hop.get("steps")))
    merged["steps"] = steps
    merged["continuation_ids"] = list(dict.fromkeys(name for hop in hops for name in ids_of(hop)))
    merged["output_text"] = output_text(steps)
    return merged


def ids_of(hop: Mapping[str, Any]) -> list[str]:
    """The interactions that one hop speaks of: those before it that it knows, and itself."""
    return [name for name in [*items(hop.get("continuation_ids")), hop.get("id")] if isinstance(name, str) and name]


def output_text(steps: Sequence[Any]) -> str:
    """The text that an interaction ends with: not what was said before a tool was called, and no thoughts."""
    texts: list[str] = []
    for entry in reversed(steps):
        step = mapping(entry)
        kind = step.get("type")
        if kind == "user_input":
            break
        if kind == "thought":
            continue
        if kind != "model_output":
            if texts:
                break
            continue
        for part in reversed(items(step.get("content"))):
            content = mapping(part)
            if content.get("type") == "text":
                texts.append(string(content.get("text")))
            elif texts:
                return "".join(reversed(texts))
    return "".join(reversed(texts))


def _without_input(steps: list[Any]) -> list[Any]:
    start = 0
    while start < len(steps) and mapping(steps[start]).get("type") == "user_input":
        start += 1
    return steps[start:]
