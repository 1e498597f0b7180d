"""Interactions: what the events of a decode report while they come, and what of it is void again. No I/O."""

from __future__ import annotations

from typing import Any

import attrs

from protocol import codec
from protocol.model import CallDelta, ModelEvent, ReasoningDelta, TextDelta, Undone
from protocol.text import clean

from ..wire import items, mapping, number, string
from ._interactions_parts import modern

__all__ = ("Deltas",)

_ENDS = {"interaction.completed", "interaction.complete"}
_ARGUMENTS = ("arguments", "partial_arguments")


@attrs.define(eq=False)
class _Call:
    given: Any
    """The arguments that its step began with: they are meant only where no others come."""
    number: int | None = None
    """Its index in what is reported; `None` until its name is known."""
    untold: str = ""
    streamed: bool = False
    open: bool = True


@attrs.define(eq=False)
class Deltas:
    """Reports each thing once, whether a hop comes as events or whole."""

    _text: int = 0
    _reasoning: int = 0
    _calls: int = 0
    _mark: Undone = attrs.field(factory=Undone)
    """How much had been reported when the last token was handed out."""
    _half: dict[bool, str] = attrs.field(factory=dict[bool, str])
    _of_hop: dict[int | None, _Call] = attrs.field(factory=dict[int | None, _Call])
    """The calls of this hop by the index of their step."""
    _ignored: set[int | None] = attrs.field(factory=set[int | None])
    _streamed: bool = False

    @property
    def any_reported(self) -> bool:
        """Whether there is anything to take back."""
        return self._marks() != Undone()

    def begin_hop(self) -> None:
        """What follows is another hop's."""
        self._of_hop = {}
        self._ignored = set()
        self._streamed = False

    def undo(self) -> Undone | None:
        """What was reported behind the last token will come again; `None` if that is nothing."""
        mark = self._mark
        if mark == self._marks():
            return None
        self._text, self._reasoning, self._calls = mark.text, mark.reasoning, mark.calls
        self._half.clear()
        return mark

    def feed(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Take one event and return what it adds."""
        events: list[ModelEvent] = []
        index = number(event.get("index"))
        match event.get("event_type"):
            case "step.start" | "content.start":
                self._streamed = True
                step = mapping(event.get("step")) or modern(mapping(event.get("content")))
                self._start(index, step, events)
            case "step.delta" | "content.delta":
                self._streamed = True
                if index not in self._ignored:
                    self._delta(index, mapping(event.get("delta")), events)
            case "step.stop" | "content.stop":
                self._stop(index, events)
            case _:
                self._take_resource(event, events)
        return events

    def _marks(self) -> Undone:
        return Undone(self._text, self._reasoning, self._calls)

    def _take_resource(self, event: dict[str, Any], events: list[ModelEvent]) -> None:
        interaction = mapping(event.get("interaction"))
        if not self._streamed:
            steps = items(interaction.get("steps")) or [
                modern(mapping(old)) for old in items(interaction.get("outputs"))
            ]
            for place, step in enumerate(steps):
                self._start(place, mapping(step), events)
                self._stop(place, events)
        if event.get("event_type") in _ENDS:
            for reasoning in list(self._half):  # the other half does not come any more
                del self._half[reasoning]
                self._say("\ufffd", events, reasoning=reasoning)
        if string(event.get("continuation_token")) or string(interaction.get("continuation_token")):
            self._mark = self._marks()

    def _start(self, index: int | None, step: dict[str, Any], events: list[ModelEvent]) -> None:
        self._ignored.discard(index)
        match step.get("type"):
            case "user_input" | "function_result":
                self._ignored.add(index)
            case "model_output":
                for content in items(step.get("content")):
                    if mapping(content).get("type") == "text":
                        self._say(string(mapping(content).get("text")), events, reasoning=False)
            case "thought":
                for content in items(step.get("summary")):
                    self._say(string(mapping(content).get("text")), events, reasoning=True)
            case "function_call":
                self._of_hop[index] = call = _Call(step.get("arguments"))
                self._name(call, step, events)
            case _:
                pass  # what is not understood is not shown

    def _delta(self, index: int | None, delta: dict[str, Any], events: list[ModelEvent]) -> None:
        match delta.get("type"):
            case "text":
                self._say(string(delta.get("text")), events, reasoning=False)
            case "thought_summary":
                self._say(string(mapping(delta.get("content")).get("text")), events, reasoning=True)
            case "arguments_delta":
                call = self._call_at(index)
                given = next((delta[name] for name in _ARGUMENTS if delta.get(name) is not None), "")
                if call is not None and given:
                    call.streamed = True
                    self._argue(call, given, events)
            case "function_call":  # whole, as in the first preview
                if index not in self._of_hop:
                    self._start(index, delta, events)
                call = self._of_hop[index]
                call.given = delta.get("arguments")
                self._name(call, delta, events)
            case _:
                pass

    def _call_at(self, index: int | None) -> _Call | None:
        """The call that arguments with this index belong to: some carry the index of the thought before it."""
        if index in self._of_hop:
            return self._of_hop[index]
        calls = list(self._of_hop.values())
        return next((call for call in reversed(calls) if call.open), calls[-1] if calls else None)

    def _stop(self, index: int | None, events: list[ModelEvent]) -> None:
        call = self._of_hop.get(index)
        if call is None or not call.open:
            return
        call.open = False
        if not call.streamed and call.given:
            self._argue(call, call.given, events)

    def _name(self, call: _Call, step: dict[str, Any], events: list[ModelEvent]) -> None:
        name = clean(string(step.get("name")).strip())
        if name and call.number is None:
            call.number = self._calls
            self._calls += 1
            events.append(CallDelta(call.number, call.untold, name))

    def _argue(self, call: _Call, given: Any, events: list[ModelEvent]) -> None:
        text = clean(given) if isinstance(given, str) else codec.encode(given).decode()
        if call.number is None:
            call.untold += text
        else:
            events.append(CallDelta(call.number, text))

    def _say(self, text: str, events: list[ModelEvent], *, reasoning: bool) -> None:
        if not text.isascii() or reasoning in self._half:
            # Half a character (a lone surrogate) waits for its other half.
            text = self._half.pop(reasoning, "") + text
            if text and "\ud800" <= text[-1] <= "\udbff":
                self._half[reasoning] = text[-1]
                text = text[:-1]
            text = clean(text)
        if text and reasoning:
            self._reasoning += len(text)
            events.append(ReasoningDelta(text))
        elif text:
            self._text += len(text)
            events.append(TextDelta(text))
