"""The stream under a WebSocket: it begins with a head of ours, is bounded, and is never left in the middle of a frame.

The library behind is given a head that was written here, not what the client wrote: it parses on its own terms, and waits
for ever where it does not like what it reads. What follows the head is held back until the upgrade has been answered.
When a client breaks the rules the library just drops the stream; here the close frame is sent that tells it why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import attrs
import trio

from ._frames import FrameWatch

__all__ = ("WatchedStream", "linger")

_PARTING_SECONDS = 1.0
_PARTING_BYTES = 262_144
_CLOSE_FRAME: Final = 0x88
_VIOLATIONS = frozenset({1002, 1003, 1007})
_NO_CLOSE = 1006


@attrs.define(eq=False)
class WatchedStream(trio.abc.Stream):
    """What `trio_websocket.wrap_server_stream()` is given."""

    stream: trio.abc.Stream
    watch: FrameWatch
    head: bytes = attrs.field(repr=False)
    """Read first."""
    early: bytes = attrs.field(repr=False, default=b"")
    """What came behind the head of the client."""
    refusal: Callable[[], tuple[int, str] | None] = lambda: None
    """Why the library has closed the connection, if it has: a close code and a text."""
    _upgraded: trio.Event = attrs.field(factory=trio.Event)
    _cut: bool = False
    _close_sent: trio.Event = attrs.field(factory=trio.Event)
    _parted: bool = False
    _parting: trio.Lock = attrs.field(factory=trio.Lock)
    _sending: trio.Lock = attrs.field(factory=trio.Lock)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Read on. Raises `trio.BrokenResourceError` where the client has sent more than it may."""
        if self.head:
            head, self.head = self.head, b""
            await trio.lowlevel.checkpoint()
            return head
        await self._upgraded.wait()
        if self.watch.excess is None:
            if self.early:
                data, self.early = self.early, b""
            else:
                data = bytes(await self.stream.receive_some(max_bytes))
            good = self.watch.passing(data)
            if good or not data:
                return data[:good]
        raise trio.BrokenResourceError("the client has sent more than it may")

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send a frame. None follows a close frame, or one that was cut: the client could not tell where it begins."""
        if self._sending.locked():
            await self._sending.acquire()
        else:
            self._sending.acquire_nowait()  # without the turn of the scheduler that a checkpoint takes
        try:
            await self._put(data)
        finally:
            self._sending.release()

    async def _put(self, data: bytes | bytearray | memoryview) -> None:
        if self._cut or self._close_sent.is_set():
            raise trio.BrokenResourceError("a frame was cut, or the close frame was sent")
        self._cut = True
        await self.stream.send_all(data)
        self._cut = False
        if data[0] == _CLOSE_FRAME:
            self._close_sent.set()
        self._upgraded.set()

    async def wait_send_all_might_not_block(self) -> None:
        """As the stream below."""
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Say why, if the client is at fault and it can be told, and drop the stream: within a second."""
        with trio.move_on_after(_PARTING_SECONDS, shield=True):
            async with self._parting:
                if not self._parted:
                    self._parted = True
                    await self._part()
        await trio.aclose_forcefully(self.stream)

    async def _part(self) -> None:
        reason = self.watch.excess or self.refusal()
        if reason is None or not self._upgraded.is_set():
            return
        code, text = reason
        if self.watch.excess is None and code not in _VIOLATIONS:
            if code != _NO_CLOSE and (self._sending.locked() or not self._cut):
                await self._close_sent.wait()  # the library is about to answer the client's close frame
            return
        payload = code.to_bytes(2) + text.encode("ascii", "replace")[:100]
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            await self.send_all(bytes([_CLOSE_FRAME, len(payload)]) + payload)
            await linger(self.stream)


async def linger(stream: trio.abc.Stream) -> None:
    """Read what a client still sends, to its end but not for ever. Raises as the stream does.

    A stream that is dropped with unread bytes is reset, and what was sent last is lost with it.
    """
    with trio.move_on_after(_PARTING_SECONDS):
        if isinstance(stream, trio.abc.HalfCloseableStream):
            await stream.send_eof()
        left = _PARTING_BYTES
        while left > 0 and (data := await stream.receive_some(65_536)):
            left -= len(data)
