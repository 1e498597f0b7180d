"""Interactions: the steps of a decode's hops as the parts of one turn. No I/O.

A text goes on over the boundary between two hops; a call does not. What the end of a hop cut is not run, unless a
later hop makes the call again: and whether it was cut is known only where another step follows it in its hop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from protocol import codec
from protocol.ids import new_id
from protocol.text import clean
from protocol.turns import OpaquePart, Part, ReasoningPart, TextPart, ToolCall

from ..wire import items, mapping, string
from ._interactions_request import FORMAT

__all__ = ("Reading", "modern", "read_hops")

_NOT_THE_MODELS = {"user_input", "function_result"}
_OF_THE_CALL = {"type", "id", "name", "arguments"}
_CONTENT = {"text", "image", "audio", "video", "document"}


@attrs.frozen
class Reading:
    """What the steps come to."""

    parts: tuple[Part, ...]
    cut: bool
    """A call was cut between two hops and not made again: none of the turn's calls may run."""


@attrs.define(eq=False)
class _Step:
    fields: dict[str, Any]
    hop: int
    suspect: bool
    """Whether it is a call that the end of its hop may have cut."""

    @property
    def kind(self) -> str:
        return string(self.fields.get("type"))


def read_hops(hops: Sequence[dict[str, Any]]) -> Reading:
    """Read the interactions of a decode, in order."""
    steps = [step for number, hop in enumerate(hops) for step in _steps_of(hop, number, last=number == len(hops) - 1)]
    steps = _that_stand(steps)
    parts: list[Part] = []
    used: set[str] = set()
    for step in steps:
        match step.kind:
            case "model_output":
                _add_output(step.fields, parts)
            case "thought":
                _add_thought(step.fields, parts)
            case "function_call":
                _add_call(step.fields, parts, used)
            case _:
                parts.append(_opaque(step.fields))
    return Reading(tuple(parts), any(step.suspect for step in steps))


def modern(content: dict[str, Any]) -> dict[str, Any]:
    """A content of the first preview, which had no steps, as a step."""
    return {"type": "model_output", "content": [content]} if content.get("type") in _CONTENT else content


def _steps_of(hop: dict[str, Any], number: int, *, last: bool) -> list[_Step]:
    found = items(hop.get("steps")) or [modern(mapping(content)) for content in items(hop.get("outputs"))]
    steps = [_Step(mapping(step), number, False) for step in found]
    steps = [step for step in steps if step.kind and step.kind not in _NOT_THE_MODELS]  # the input once more
    if not last:
        for step in steps:
            if step.kind == "function_call":
                step.suspect = step is steps[-1] or not isinstance(step.fields.get("arguments"), dict)
    return steps


def _that_stand(steps: list[_Step]) -> list[_Step]:
    """The steps without the calls that a later hop made again: a cut one gives way to it, a whole one is it."""
    calls = [step for step in steps if step.kind == "function_call"]
    void: set[int] = set()
    for number, later in enumerate(calls):
        name = string(later.fields.get("id"))
        for earlier in calls[:number]:
            if not name or earlier.hop == later.hop or name != string(earlier.fields.get("id")):
                continue
            if earlier.suspect:
                void.add(id(earlier))
            elif all(earlier.fields.get(field) == later.fields.get(field) for field in ("name", "arguments")):
                void.add(id(later))
    return [step for step in steps if id(step) not in void]


def _add_output(step: dict[str, Any], parts: list[Part]) -> None:
    for entry in items(step.get("content")):
        content = mapping(entry)
        if content.get("type") != "text":
            parts.append(_opaque({"type": "model_output", "content": [entry]}))
            continue
        text = clean(string(content.get("text")))
        last = parts[-1] if parts else None
        if isinstance(last, TextPart):
            parts[-1] = TextPart(clean(last.text + text))
        elif text:
            parts.append(TextPart(text))


def _add_thought(step: dict[str, Any], parts: list[Part]) -> None:
    shown = "".join([string(mapping(entry).get("text")) for entry in items(step.get("summary"))])
    if shown:
        parts.append(ReasoningPart(clean(shown)))
    if string(step.get("signature")):  # without one, the format does not take it back
        parts.append(_opaque(step))


def _add_call(step: dict[str, Any], parts: list[Part], used: set[str]) -> None:
    vendor = clean(string(step.get("id")))
    # What goes with a call finds it by its id, so that is unique in the turn from here on.
    own = vendor if vendor and vendor not in used else new_id("call")
    used.add(own)
    given = step.get("arguments")
    arguments = clean(given) if isinstance(given, str) else codec.encode({} if given is None else given).decode()
    name = clean(string(step.get("name")).strip())
    parts.append(ToolCall(own, name, arguments, vendor_id=vendor if vendor and vendor != own else None))
    more = {field: value for field, value in step.items() if field not in _OF_THE_CALL}
    if more:
        parts.append(_opaque(more, call=own))


def _opaque(step: dict[str, Any], call: str | None = None) -> OpaquePart:
    return OpaquePart(FORMAT, codec.encode(step).decode(), call)
