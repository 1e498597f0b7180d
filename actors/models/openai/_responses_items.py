"""Responses: the output items of a reply while they grow, and the parts that they become. No I/O.

The format tells everything several times: a text in deltas, at the end of its part, of its item and of the response.
Each telling adds what was missing, and nothing twice. What was streamed stands where a later telling contradicts it,
except for a call's arguments: they are what the item says in the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from protocol.model import CallDelta, ModelEvent, ReasoningDelta, TextDelta
from protocol.text import clean
from protocol.turns import OpaquePart, Part, ReasoningPart, TextPart, ToolCall

from ..wire import items, mapping, string
from ._responses_shell import contents_of, json_of, opaque, shell_of_call, shell_of_message

__all__ = ("Item", "plain_parts", "whole_parts")

_UNFINISHED = {"incomplete", "in_progress"}
_BETWEEN_THOUGHTS = "\n\n"


@attrs.define(eq=False)
class _Growing:
    """Text that is still growing."""

    pieces: list[str] = attrs.Factory(list[str])
    half: str = ""

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def add(self, text: str) -> str:
        """Add a piece and return what can be reported: half a character waits for its other half."""
        if not text:
            return ""
        self.pieces.append(text)
        if text.isascii() and not self.half:
            return text
        text = self.half + text
        self.half = ""
        if "\ud800" <= text[-1] <= "\udbff":
            self.half = text[-1]
            text = text[:-1]
        return clean(text)

    def rest(self) -> str:
        """What waits for its other half, which will not come."""
        half, self.half = self.half, ""
        return clean(half)

    def missing(self, told: str) -> str:
        """What a telling of the whole has beyond what is here; nothing if it contradicts what is here."""
        have = self.text
        return told[len(have) :] if told.startswith(have) else ""


@attrs.define(eq=False)
class Item:
    """One output item: what has come of it, and what the server says that it is."""

    type: str
    id: str = ""
    index: int | None = None
    numbers: Iterator[int] = attrs.Factory(itertools.count)
    """Of a call: where it takes its number from, when it is first reported."""
    told: dict[str, Any] = attrs.Factory(dict[str, Any])
    """The item as the server told it whole."""
    done: bool = False
    """Whether it did."""
    call_id: str = ""
    name: str = ""
    _arguments: _Growing = attrs.Factory(_Growing)
    _texts: dict[tuple[str, int], _Growing] = attrs.Factory(dict[tuple[str, int], _Growing])
    _number: int | None = None
    """Of a call whose name has been reported."""
    _untold: str = ""
    """Arguments that have not been reported."""

    @property
    def whole(self) -> bool:
        """Whether it came to its end, as far as the item itself says."""
        return self.done and string(self.told.get("status")) not in _UNFINISHED

    @property
    def cut(self) -> bool:
        """Whether the item itself says that it did not."""
        return self.done and not self.whole

    @property
    def text(self) -> str:
        """The text of all its content parts."""
        return "".join([growing.text for growing in self._texts.values()])

    @property
    def arguments(self) -> str:
        """Of a call: its arguments so far."""
        return self._arguments.text

    def add(self, kind: str, index: int, text: str) -> list[ModelEvent]:
        """Take a piece of the content part with this kind and index."""
        if not text:
            return []
        growing = self._texts.setdefault((kind, index), _Growing())
        follows = not growing.pieces and len(self._texts) > 1
        shown = growing.add(text)
        if self.type != "reasoning":
            return [TextDelta(shown)] if shown else []
        shown = _BETWEEN_THOUGHTS + shown if follows else shown
        return [ReasoningDelta(shown)] if shown else []

    def settle_text(self, kind: str, index: int, told: str) -> list[ModelEvent]:
        """Take the whole text of one content part."""
        growing = self._texts.get((kind, index))
        if growing is None:
            # Its index need not be the one it was streamed under.
            return [] if told == self.text else self.add(kind, index, told)
        return self.add(kind, index, growing.missing(told))

    def add_arguments(self, piece: str) -> list[ModelEvent]:
        """Take a piece of a call's arguments; nothing is reported before the name is known."""
        self._untold += self._arguments.add(piece)
        return self._report()

    def settle_arguments(self, told: Any) -> list[ModelEvent]:
        """Take the whole arguments, as text or, from some servers, as the object itself."""
        if told is not None and not isinstance(told, str):
            told = json_of(told)
        if told and not told.startswith(self.arguments):
            self._arguments = _Growing([told])
            return self._report()
        return self.add_arguments(self._arguments.missing(told or ""))

    def announce(self, told: dict[str, Any]) -> list[ModelEvent]:
        """Take what an item says of itself at its beginning."""
        self.id = self.id or string(told.get("id"))
        self.name = self.name or string(told.get("name")).strip()
        self.call_id = self.call_id or string(told.get("call_id")).strip()
        return self._report() if self.type == "function_call" else []

    def settle(self, told: dict[str, Any]) -> list[ModelEvent]:
        """Take the item as a whole."""
        events = self.announce(told)
        if self.type == "function_call":
            events += self.settle_arguments(told.get("arguments"))
        elif self.type == "message":
            events += self._settle_all([(kind, text) for kind, text in contents_of(told) if text])
        elif self.type == "reasoning":
            for field, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
                texts = [string(mapping(part).get("text")) for part in items(told.get(field))]
                events += self._settle_all([(kind, text) for text in texts if text], kind)
        # The first telling stands, what it left open is filled in: some servers encrypt an item anew in each.
        self.told = {**told, **{name: value for name, value in self.told.items() if value is not None}}
        self.done = True
        return events

    def flush(self) -> list[ModelEvent]:
        """Report the halves of characters that have found no other half."""
        halves = [growing.rest() for growing in self._texts.values()]
        return [ReasoningDelta(half) if self.type == "reasoning" else TextDelta(half) for half in halves if half]

    def _settle_all(self, told: list[tuple[str, str]], kind: str = "") -> list[ModelEvent]:
        """Take the texts of all content parts, or of all of one kind."""
        keys = [key for key in self._texts if not kind or key[0] == kind]
        if not keys:
            return [event for index, part in enumerate(told) for event in self.add(part[0], index, part[1])]
        # Taken together: parts are not always counted alike.
        have = "".join([self._texts[key].text for key in keys])
        whole = "".join([text for _, text in told])
        return self.add(*keys[-1], whole[len(have) :]) if whole.startswith(have) else []

    def _report(self) -> list[ModelEvent]:
        if not self.name or (self._number is not None and not self._untold):
            return []
        name = ""
        if self._number is None:
            self._number, name = next(self.numbers), self.name
        delta = CallDelta(self._number, self._untold, name)
        self._untold = ""
        return [delta]

    def said(self) -> list[Part]:
        """The parts that everybody understands."""
        if self.type == "function_call":
            call = ToolCall(clean(self.call_id or self.id), clean(self.name), clean(self.arguments))
            return [call] if self.name else []
        texts = [clean(growing.text) for growing in self._texts.values() if growing.pieces]
        if self.type == "reasoning":
            return [ReasoningPart(_BETWEEN_THOUGHTS.join(texts))] if texts else []
        return [TextPart(text) for text in texts]

    def kept(self) -> Sequence[Part]:
        """The same with, in front of it, what makes the item again; without that, if there is no such thing."""
        said = self.said()
        shell: OpaquePart | None = None
        match self.type:
            case "function_call" if said:
                [call] = said
                shell = opaque(shell_of_call(self.told), call.id if isinstance(call, ToolCall) else None)
            case "message" if said:
                made, texts = shell_of_message(self.told)
                if "".join(texts) == self.text:
                    shell = opaque(made)
                    said = [TextPart(clean(text)) for text in texts]
            case "message" | "function_call":
                pass
            case _:
                shell = opaque(self.told)
        return said if shell is None else [shell, *said]


def plain_parts(output: Sequence[Item]) -> tuple[Part, ...]:
    """What had come when a reply broke off."""
    return tuple([part for item in output for part in item.said()])


def whole_parts(output: Sequence[Item], *, last_is_cut: bool) -> tuple[Part, ...]:
    """The parts of a reply that came to its end; `last_is_cut`: the last item is not whole, whatever it says.

    Reasoning is kept for the server only in front of the item it came with, and only if that is whole: alone, it
    would be refused for ever.
    """
    parts: list[Part] = []
    thoughts: list[dict[str, Any]] = []
    for item in output:
        if item.type == "reasoning":
            parts += item.said()
            thoughts += [item.told] if item.done else []
            continue
        whole = item.whole and not (last_is_cut and item is output[-1])
        kept = item.kept() if whole else item.said()
        if kept and isinstance(kept[0], OpaquePart):
            made = [opaque(thought, kept[0].call) for thought in thoughts]
            parts += [thought for thought in made if thought is not None]
        thoughts.clear()
        parts += kept
    return tuple(parts)
