"""Chat Completions: tool calls put together from fragments, as servers really send them. No I/O.

By the format, a fragment names its call by `index`; id and name come in the first one alone. Real servers give every
call index 0, or none, or another index for each fragment; repeat id and name; send the arguments as an object. What
a fragment belongs to is decided by what it *cannot* be: a call is *closed* once its arguments are a complete JSON
value, and nothing can be added to it. A fragment that could belong to several calls, or to none, is a fault: a
guess might run a tool with another call's arguments.
"""

from __future__ import annotations

from typing import Any

import attrs
import msgspec

from protocol.model import CallDelta
from protocol.text import clean
from protocol.turns import ToolCall

from ..wire import mapping, number, parse, string
from ._chat_kept import fields_of_call, merge

__all__ = ("CallAssembler", "StrayFragmentError")


class StrayFragmentError(ValueError):
    """A fragment of a tool call that belongs to no call, or a call without a name."""


@attrs.define(eq=False)
class _Call:
    number: int
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = attrs.Factory(list[str])
    begun: bool = False
    """Whether anything of the arguments has come: the name is whole from then on."""
    named: bool = False
    """Whether the name has been reported."""
    untold: str = ""
    """Arguments that have not been reported."""
    kept: dict[str, Any] = attrs.Factory(dict[str, Any])
    """What the server added to the call, and wants back with it."""

    @property
    def arguments(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def closed(self) -> bool:
        # The cheap look first: a full parse per fragment would be quadratic.
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            parse(self.arguments)
        except ValueError:
            return False
        return True


@attrs.define(eq=False)
class _Fragment:
    index: int | None
    id: str
    name: str
    arguments: str
    kept: dict[str, Any]

    @classmethod
    def of(cls, entry: Any) -> _Fragment:
        entry = mapping(entry)
        function = mapping(entry.get("function")) or entry
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        index = entry.get("index")
        if isinstance(index, str) and index.isdecimal():
            index = int(index)
        return cls(
            number(index),
            string(entry.get("id")).strip() or string(function.get("id")).strip(),
            string(function.get("name")).strip(),
            arguments or "",
            fields_of_call(entry, function),
        )

    @property
    def blank(self) -> bool:
        return not self.arguments or self.arguments.isspace()


class CallAssembler:
    """The calls of one reply."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, entry: Any, *, whole: bool = False) -> list[CallDelta]:
        """Take one entry of `tool_calls`; `whole` says that it is a call of its own and no fragment.

        Raises `StrayFragmentError`.
        """
        fragment = _Fragment.of(entry)
        call = None if whole else self._owner(fragment)
        if call is None:
            if not (whole or fragment.id or fragment.name):
                if fragment.blank:
                    return []
                raise StrayFragmentError(
                    f"a piece of a tool call belongs to no call: index {fragment.index}, arguments {fragment.arguments!r}"
                )
            deltas = self.flush()
            call = _Call(len(self._calls), fragment.index)
            self._calls.append(call)
        else:
            deltas = []
        _extend(call, fragment)
        if call.begun:
            deltas += _report(call)
        return deltas

    def flush(self) -> list[CallDelta]:
        """Report what was held back: the name of a call whose arguments have not begun may still grow."""
        return [delta for call in self._calls for delta in _report(call)]

    def call(self, number: int, *, strict: bool) -> ToolCall | None:
        """The call with this number, with the server's id and raw arguments.

        One without a name is none: `None`, or `StrayFragmentError` if it has arguments and `strict` is set.
        """
        found = self._calls[number]
        if not found.name:
            if strict and found.begun:
                raise StrayFragmentError(f"a tool call has no name; its arguments are {clean(found.arguments)!r}")
            return None
        return ToolCall(found.id, found.name, clean(found.arguments))

    def kept(self, number: int) -> dict[str, Any]:
        """What the server added to the call with this number."""
        return self._calls[number].kept

    def _owner(self, fragment: _Fragment) -> _Call | None:
        if fragment.index is not None:
            for call in reversed(self._calls):
                if call.index == fragment.index:
                    return call if _continues(call, fragment) else None
        if fragment.id:
            for call in reversed(self._calls):
                # Under an index of its own a known id is another call's only if it brings a name.
                if call.id == fragment.id and (fragment.index is None or call.index is None or not fragment.name):
                    return call if _continues(call, fragment) else None
            return None
        if fragment.name:
            last = self._calls[-1] if self._calls and fragment.index is None else None
            return last if last is not None and last.name == fragment.name and _continues(last, fragment) else None
        if fragment.index is None and self._calls and not self._calls[-1].closed:
            return self._calls[-1]
        unfinished = [call for call in self._calls if not call.closed]
        return unfinished[0] if len(unfinished) == 1 else None


def _continues(call: _Call, fragment: _Fragment) -> bool:
    """Whether a fragment that names the call by its index or id adds to it, rather than begin another."""
    other_id = bool(fragment.id and call.id and fragment.id != call.id)
    if other_id and (fragment.name or fragment.blank):
        return False
    if call.closed:
        if other_id:
            return False
        repeated = fragment.arguments == call.arguments and bool(fragment.id or not fragment.name)
        return repeated or fragment.blank or not fragment.name
    return True  # another id without a name, in the middle of arguments: servers that make up an id per fragment


def _extend(call: _Call, fragment: _Fragment) -> None:
    merge(call.kept, fragment.kept)
    if not call.id:
        call.id = fragment.id
    if fragment.name and not call.begun and fragment.name != call.name:
        # In pieces, or repeated as it grows.
        call.name = fragment.name if fragment.name.startswith(call.name) else call.name + fragment.name
    if not fragment.arguments or (fragment.blank and not call.begun):
        return
    if call.closed:
        if fragment.blank or fragment.arguments == call.arguments:
            return  # nothing, or the whole call once more
        if call.arguments.strip() == "{}":
            call.pieces.clear()  # a place holder, before the real arguments
    call.begun = True
    call.pieces.append(fragment.arguments)
    call.untold += fragment.arguments


def _report(call: _Call) -> list[CallDelta]:
    if not call.name or (call.named and not call.untold):
        return []
    delta = CallDelta(call.number, call.untold, "" if call.named else call.name)
    call.named = True
    call.untold = ""
    return [delta]
