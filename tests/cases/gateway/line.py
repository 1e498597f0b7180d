"""The server's end of a connection in memory, which may be choked, or reset."""

from __future__ import annotations

import attrs
import trio

from tests.actors.gateway.raw import Choked

UNCHOKED = 2**40


@attrs.define(eq=False)
class Line(Choked):
    """A stream that takes `room` bytes until its client reads again."""

    room: int = UNCHOKED
    _reset: bool = False
    _receiving: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def reset(self) -> None:
        """What a reset of TCP does: whoever reads or writes gets an error at once."""
        self._reset = True
        self._receiving.cancel("TCP was reset")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self._reset:
            with trio.CancelScope() as self._receiving:
                return await super().receive_some(max_bytes)
        raise trio.BrokenResourceError("reset")

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._reset:
            raise trio.BrokenResourceError("reset")
        await super().send_all(data)
