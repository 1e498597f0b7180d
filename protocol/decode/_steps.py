"""One step of an interaction, from how it began and what was added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from ..normalise import parse_arguments
from ..text import clean
from ..untyped import items, mapping, string

__all__ = ("build_step", "implied_step")

_MEDIA = {"image", "audio", "video", "document"}
_IMPLIED = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
} | dict.fromkeys(_MEDIA, "model_output")


def implied_step(delta: Mapping[str, Any]) -> dict[str, Any]:
    """How the step must have begun to which a delta belongs, if its beginning was not told."""
    kind = string(delta.get("type"))
    return {"type": _IMPLIED.get(kind, kind)}


def build_step(start: Mapping[str, Any], deltas: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
    """The step as a whole reply would have held it. Arguments that are no JSON object stay the text that came."""
    step = dict(start)
    fragments: list[str] = []
    for is_text, group in groupby(deltas, lambda delta: isinstance(delta, str)):
        if is_text:
            _add_content(step, {"type": "text", "text": clean("".join(cast("Sequence[str]", list(group))))})
        else:
            for delta in cast("Sequence[Mapping[str, Any]]", list(group)):
                _add(step, delta, fragments)
    if fragments:
        text = clean("".join(fragments))
        parsed = parse_arguments(text)
        step["arguments"] = text if parsed is None else parsed
    return step


def _add(step: dict[str, Any], delta: Mapping[str, Any], fragments: list[str]) -> None:
    kind = string(delta.get("type"))
    if kind == "arguments_delta":
        given = delta.get("arguments", delta.get("partial_arguments"))
        if isinstance(given, str):
            fragments.append(given)
        elif isinstance(given, dict):
            step["arguments"] = given
    elif kind == "thought_signature":
        step["signature"] = delta.get("signature")
    elif kind == "thought_summary":
        _add_content(step, mapping(delta.get("content")))
    elif kind == "text_annotation_delta":
        _add_content(step, {"type": "text", "text": "", "annotations": items(delta.get("annotations"))})
    elif kind == "text" or kind in _MEDIA:
        _add_content(step, delta)
    else:
        _lay_over(step, delta)


def _add_content(step: dict[str, Any], item: Mapping[str, Any]) -> None:
    """Append a piece of content; text that follows text is one text."""
    field = "summary" if step.get("type") == "thought" else "content"
    content = list(items(step.get(field)))
    last = mapping(content[-1]) if content else {}
    if item.get("type") == "text" and last.get("type") == "text":
        joined = {**last, **item, "text": string(last.get("text")) + string(item.get("text"))}
        if "annotations" in last or "annotations" in item:
            joined["annotations"] = [*items(last.get("annotations")), *items(item.get("annotations"))]
        content[-1] = joined
    else:
        content.append(dict(item))
    step[field] = content


def _lay_over(step: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """What a delta of another type says: lists and results grow, objects are laid over, the rest is replaced."""
    for name, value in delta.items():
        known = step.get(name)
        if name == "type":
            step.setdefault("type", value)
        elif isinstance(known, list) and isinstance(value, list):
            step[name] = [*cast("list[Any]", known), *cast("list[Any]", value)]
        elif isinstance(known, dict) and isinstance(value, dict):
            step[name] = {**cast("dict[str, Any]", known), **cast("dict[str, Any]", value)}
        elif name == "result" and isinstance(known, str) and isinstance(value, str):
            step[name] = known + value
        else:
            step[name] = value
