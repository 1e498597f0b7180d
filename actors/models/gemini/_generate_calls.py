"""generateContent: function calls, which come whole, or with their arguments in pieces. No I/O.

In pieces, each piece names its place in the arguments by a JSONPath and holds one value there, or the next part of a
text; `willContinue` says that more of the call follows. A call that was not finished has no whole arguments, and its
text is left without its end so that nobody takes it for JSON.
"""

from __future__ import annotations

import re
from typing import Any, cast

import attrs

from protocol import codec
from protocol.model import CallDelta
from protocol.text import clean
from protocol.turns import OpaquePart

from ..wire import items, mapping, string
from ._generate_parts import opaque, rest_of_call, vendor_id_in

__all__ = ("BrokenCallError", "CallReader", "FunctionCall")

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class BrokenCallError(ValueError):
    """A call without a name, or a piece of arguments that has no place."""


@attrs.define(eq=False)
class FunctionCall:
    """A call as far as it has come."""

    number: int
    name: str
    id: str = ""
    arguments: str = ""
    rest: dict[str, Any] = attrs.Factory(dict[str, Any])
    kept: OpaquePart | None = None
    """The rest, as it is kept beside the call."""
    pieces: dict[str, Any] | None = None
    """The arguments so far, while more of them may follow."""


class CallReader:
    """The calls of one reply."""

    def __init__(self) -> None:
        self.calls: list[FunctionCall] = []

    def feed(self, part: dict[str, Any]) -> list[CallDelta]:
        """Take a part with a function call. Raises `BrokenCallError`."""
        given = mapping(part.get("functionCall"))
        name = string(given.get("name")).strip()
        deltas: list[CallDelta] = []
        call = self.calls[-1] if self.calls and self.calls[-1].pieces is not None else None
        if name or call is None:
            if not name:
                if given.get("args") or given.get("partialArgs"):
                    raise BrokenCallError("it has no name")
                return []  # the end of a call that has ended
            call = FunctionCall(len(self.calls), clean(name))
            self.calls.append(call)
            deltas.append(CallDelta(call.number, "", call.name))
        call.id = call.id or clean(vendor_id_in(part))
        call.rest |= rest_of_call(part)
        call.kept = opaque(call.rest, call.id) if call.rest else None
        if given.get("willContinue") or given.get("partialArgs") or call.pieces is not None:
            _take_pieces(call, given)
            if given.get("willContinue"):
                call.arguments = clean(codec.encode(call.pieces).decode()[:-1])
                return deltas
            given = {"args": call.pieces}
            call.pieces = None
        call.arguments = _whole(given.get("args"))
        return [CallDelta(call.number, call.arguments, call.name if deltas else "")]


def _whole(arguments: Any) -> str:
    if arguments is None:
        return "{}"
    return clean(arguments) if isinstance(arguments, str) else codec.encode(arguments).decode()


def _take_pieces(call: FunctionCall, given: dict[str, Any]) -> None:
    arguments = call.pieces = {**(call.pieces or {}), **mapping(given.get("args"))}
    for entry in items(given.get("partialArgs")):
        piece = mapping(entry)
        named = next((name for name in _VALUES if name in piece), None)
        if named is not None:
            value = None if named == "nullValue" else piece[named]
            _put(arguments, string(piece.get("jsonPath")), value)


def _put(arguments: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at its place; text goes behind the text that is there."""
    steps = list(_STEP.finditer(path))
    if not path.startswith("$.") and not path.startswith("$["):
        raise BrokenCallError(f"a piece of its arguments has the place {path!r}, which is none")
    if "$" + "".join([step[0] for step in steps]) != path:
        raise BrokenCallError(f"a piece of its arguments has the place {path!r}, which is none")
    keys = [
        int(step[2]) if step[2] else next(key for key in (step[1], step[3], step[4]) if key is not None)
        for step in steps
    ]
    place: Any = arguments
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        empty: Any = None if following is None else [] if isinstance(following, int) else {}
        there = _at(place, key, empty, path)
        if following is None:
            place[key] = there + value if isinstance(there, str) and isinstance(value, str) else value
        else:
            place = there


def _at(place: Any, key: str | int, empty: Any, path: str) -> Any:
    """What stands at a key, which is made where it is the next one."""
    if isinstance(place, dict) and isinstance(key, str):
        return cast("dict[str, Any]", place).setdefault(key, empty)
    if isinstance(place, list) and isinstance(key, int):
        entries = cast("list[Any]", place)
        if key == len(entries):
            entries.append(empty)
        if key < len(entries):
            return entries[key]
    raise BrokenCallError(f"a piece of its arguments has the place {path!r}, where nothing can stand")
