"""A run as a program follows it: one JSON object per line, in the names of the protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.codec import encode
from protocol.events import TERMINAL_EVENTS, Event
from protocol.result import RunResult

from ._screen import Screen

__all__ = ("JsonView", "line_of")


class JsonView:
    """Writes each event as a line; the terminal event is held back until the result can stand beside it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._end: tuple[Event, int] | None = None

    async def show(self, event: Event, seq: int) -> None:
        """Write one event."""
        if isinstance(event, TERMINAL_EVENTS):
            self._end = event, seq
        else:
            await self._screen.json(line_of(event, seq))

    async def lost(self, count: int) -> None:
        """Write that events were dropped because their reader fell behind; their numbers are missing too."""
        await self._screen.json(encode({"type": "skipped", "n": count}))

    async def end(self, result: RunResult) -> None:
        """Write the terminal event, with the whole result."""
        if self._end is not None:
            event, seq = self._end
            await self._screen.json(line_of(event, seq, result))


def line_of(event: Event, seq: int, result: RunResult | None = None) -> bytes:
    """The line of an event: `type`, `seq`, its fields, and for the last one `result`."""
    fields: dict[str, Any] = msgspec.to_builtins(event, enc_hook=repr)
    line: dict[str, Any] = {"type": fields.pop("type"), "seq": seq, **fields}
    if result is not None:
        line["result"] = msgspec.to_builtins(result, enc_hook=repr)
    return encode(line)
