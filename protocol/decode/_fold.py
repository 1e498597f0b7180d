"""The events of one hop as an interaction: its steps are made again from `step.start`, `step.delta` and `step.stop`.

Text, by far the most common delta, is kept as the strings that came; everything is put together when it is asked for.
So a mark is a handful of lengths, and going back to it is cutting off what came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import attrs

from ..text import clean
from ..untyped import items, mapping, string
from ._steps import build_step, implied_step

__all__ = ("InteractionFold", "Mark", "kind_of")

_OLDER_NAMES = {"interaction.start": "interaction.created", "interaction.complete": "interaction.completed"}
Mark: TypeAlias = tuple[int, ...]
"""How many deltas each step had."""


def kind_of(event: Mapping[str, Any]) -> str:
    """The type of an event, by its present name where it has had others."""
    kind = string(event.get("event_type"))
    if kind.startswith("content."):
        return "step." + kind.removeprefix("content.")
    return _OLDER_NAMES.get(kind, kind)


@attrs.define(eq=False)
class _Step:
    index: Any
    start: dict[str, Any]
    deltas: list[str | dict[str, Any]] = attrs.field(factory=list[str | dict[str, Any]])
    """A string is a piece of text."""
    open: bool = True

    @property
    def is_call(self) -> bool:
        return self.start.get("type") == "function_call"


class InteractionFold:
    """Takes the events of one hop; `interaction()` is what they have come to so far."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._steps: list[_Step] = []
        self._whole_steps: list[Any] = []
        self.touched = False
        """Whether anything has come."""

    def add(self, event: Mapping[str, Any], kind: str) -> None:
        """Take one event, of the type `kind_of()` it."""
        self.touched = True
        match kind:
            case "step.delta":
                self._delta(event)
            case "step.start":
                self._steps.append(_Step(event.get("index"), _start_of(event)))
            case "step.stop":
                step = self._find(event.get("index"))
                if step is not None:
                    step.open = False
                self._count(event.get("usage"))
            case "interaction.created" | "interaction.completed":
                self._resource(mapping(event.get("interaction")), final=kind == "interaction.completed")
            case "interaction.status_update":
                self._status(event)
            case "error":
                self._head["error"] = cleaned(event.get("error"))
            case _:
                pass

    def mark(self) -> Mark:
        """Where the output stands now."""
        return tuple([len(step.deltas) for step in self._steps])

    def rewind(self, mark: Mark) -> None:
        """Forget the output that came after `mark`; what is known of the interaction itself, and its usage, stays."""
        del self._steps[len(mark) :]
        for step, length in zip(self._steps, mark, strict=True):
            del step.deltas[length:]

    def interaction(self) -> dict[str, Any]:
        """The interaction so far, as a whole reply would have held it."""
        steps = self._whole_steps or [build_step(step.start, step.deltas) for step in self._steps]
        return {**self.head(), "steps": steps}

    def head(self) -> dict[str, Any]:
        """The same without its steps, which take time to put together."""
        return {**self._head, "usage": dict(self._usage)} if self._usage else dict(self._head)

    def _resource(self, resource: dict[str, Any], *, final: bool) -> None:
        resource = cleaned(resource)
        self._whole_steps = items(resource.pop("steps", None)) or self._whole_steps
        self._count(resource.pop("usage", None))
        if final:  # a token that is missing here is none
            self._head.pop("continuation_token", None)
        self._head.update(resource)

    def _status(self, event: Mapping[str, Any]) -> None:
        for name, field in (
            ("id", "interaction_id"),
            ("status", "status"),
            ("continuation_token", "continuation_token"),
        ):
            value = string(event.get(field))
            if value:
                self._head[name] = clean(value)
        self._count(event.get("usage"))

    def _count(self, usage: Any) -> None:
        self._usage.update({name: value for name, value in mapping(usage).items() if value is not None})

    def _delta(self, event: Mapping[str, Any]) -> None:
        delta = mapping(event.get("delta"))
        kind = delta.get("type")
        step = self._find(event.get("index"))
        if kind == "arguments_delta" and (step is None or not step.is_call):
            # Their index is known to be that of the thought before: they belong to the call that is being made.
            calls = [other for other in self._steps if other.is_call]
            step = next((other for other in reversed(calls) if other.open), calls[-1] if calls else None)
        if step is None:
            step = _Step(event.get("index"), implied_step(delta))
            self._steps.append(step)
        if kind == "text" and len(delta) == 2 and isinstance(delta.get("text"), str):
            step.deltas.append(delta["text"])
        else:
            step.deltas.append(cleaned(delta))
        if "metadata" in event:
            self._count(mapping(event["metadata"]).get("total_usage"))

    def _find(self, index: Any) -> _Step | None:
        if index is None:
            return self._steps[-1] if self._steps else None
        return next((step for step in reversed(self._steps) if step.index == index), None)


def _start_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The step that begins. What was called content once is a step of its own type, or a part of a model's output."""
    if "step" in event:
        return cast("dict[str, Any]", cleaned(mapping(event["step"])))
    content: dict[str, Any] = cleaned(mapping(event.get("content")))
    kind = string(content.get("type"))
    if kind not in {"text", "image", "audio", "video", "document"}:
        return content
    empty = kind == "text" and not content.get("text")
    return {"type": "model_output", "content": [] if empty else [content]}


def cleaned(value: Any) -> Any:
    """A copy of a JSON value in which every text can be encoded."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): cleaned(item) for name, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [cleaned(item) for item in cast("list[object]", value)]
    return value
