"""One WebSocket to a server, from its upgrade to its end. The library behind is imported when it is used.

A send that is cut leaves half a frame on the wire, so after one the stream is dropped and no close frame is tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

import attrs
import trio

from protocol.wire import SUBPROTOCOL, CloseCode

from ._address import Address, OpenStream
from ._errors import BROKEN, Unreachable

if TYPE_CHECKING:
    from trio_websocket import ConnectionRejected, WebSocketConnection

__all__ = ("Socket", "SocketClosedError", "use_socket")

_MOST_CHARACTERS = 16 * 1_048_576
"""Of one frame: far above what a server of `onward.v1` sends, so that a fault of it does not lock a client out."""
_CLOSE_SECONDS = 1.0


class SocketClosedError(Exception):
    """The connection has ended."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason or f"closed with code {code}")
        self.code = code


@attrs.define(eq=False)
class _Watched(trio.abc.Stream):
    """A stream that tells when it has ended: during an upgrade the library would wait on."""

    stream: trio.abc.Stream
    ended: trio.Event = attrs.field(factory=trio.Event)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As the stream below."""
        try:
            data = bytes(await self.stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        if not data:
            self.ended.set()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As the stream below."""
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """As the stream below."""
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Drop it: a close of TLS would wait for a server that may be gone."""
        await trio.aclose_forcefully(self.stream)


@attrs.define(eq=False)
class Socket:
    """A WebSocket that is open. Made by `use_socket()`."""

    _socket: WebSocketConnection
    _stream: _Watched
    _cut: bool = False

    async def send(self, text: str) -> None:
        """Send one frame. Raises `SocketClosedError`."""
        from trio_websocket import ConnectionClosed

        self._cut = True
        try:
            await self._socket.send_message(text)
        except ConnectionClosed as error:
            raise _closed(error) from None
        self._cut = False

    async def receive(self) -> str:
        """The next frame. Raises `SocketClosedError`."""
        from trio_websocket import ConnectionClosed

        try:
            message = await self._socket.get_message()
        except ConnectionClosed as error:
            raise _closed(error) from None
        if isinstance(message, bytes):
            raise SocketClosedError(BROKEN, "the server sent bytes; this protocol has text frames only")
        return message

    async def close(self) -> None:
        """Close it in order, within a second."""
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            if not self._cut:
                await self._socket.aclose(CloseCode.NORMAL)
        await self._stream.aclose()


async def use_socket(
    body: Callable[[Socket], Awaitable[None]],
    address: Address,
    open_stream: OpenStream,
    token: str | None,
    *,
    connect_seconds: float,
) -> Unreachable | SocketClosedError:
    """Open a WebSocket within `connect_seconds`, run `body` with it, drop it; returns why it did not open, or ended.

    `body` ends with `SocketClosedError` or by returning, which is its own wish; whatever else it raises is raised.
    """
    from trio_websocket import ConnectionRejected, HandshakeError
    from wsproto.utilities import ProtocolError

    deadline = trio.current_time() + connect_seconds
    end: Unreachable | SocketClosedError = SocketClosedError(CloseCode.NORMAL, "this client has closed it")
    try:
        stream = await _open(open_stream, deadline)
    except Unreachable as error:
        return error
    try:
        async with trio.open_nursery() as nursery:
            try:
                await body(await _upgrade(nursery, stream, address, token, deadline))
            except (Unreachable, SocketClosedError) as error:
                end = error
            nursery.cancel_scope.cancel("the socket is dropped")
    except* ConnectionRejected as group:
        end = _rejected(group, address)
    except* (HandshakeError, ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError) as group:
        end = SocketClosedError(BROKEN, f"the connection broke: {group.exceptions[0]}")
    finally:
        await stream.aclose()
    return end


async def _upgrade(
    nursery: trio.Nursery, stream: _Watched, address: Address, token: str | None, deadline: float
) -> Socket:
    from trio_websocket import wrap_client_stream

    headers = [] if token is None else [(b"Authorization", b"Bearer " + token.encode("ascii", "replace"))]
    socket = None
    with trio.move_on_at(deadline) as scope:
        nursery.start_soon(_cancel_at_end, stream, scope)
        socket = await wrap_client_stream(
            nursery,
            cast("trio.SocketStream", stream),  # any stream serves
            address.authority,
            address.path,
            subprotocols=[SUBPROTOCOL],
            extra_headers=headers,
            max_message_size=_MOST_CHARACTERS,
        )
    if socket is None:
        what = "was dropped during" if stream.ended.is_set() else "was too slow for"
        raise Unreachable(f"the connection to {address.authority} {what} the upgrade to a WebSocket")
    return Socket(socket, stream)


async def _open(open_stream: OpenStream, deadline: float) -> _Watched:
    with trio.move_on_at(deadline):
        try:
            return _Watched(await open_stream())
        except (OSError, trio.BrokenResourceError) as error:
            raise Unreachable(f"no connection: {error.__cause__ or error}") from error
    raise Unreachable("no connection: it took too long")


async def _cancel_at_end(stream: _Watched, scope: trio.CancelScope) -> None:
    await stream.ended.wait()
    scope.cancel("the stream has ended")


def _closed(error: object) -> SocketClosedError:
    reason = getattr(error, "reason", None)
    if reason is None:
        return SocketClosedError(BROKEN, "the connection broke")
    return SocketClosedError(int(reason.code), reason.reason or "")


def _rejected(group: BaseExceptionGroup[ConnectionRejected], address: Address) -> Unreachable:
    from trio_websocket import ConnectionRejected

    error: object = group
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[Exception]", error).exceptions[0]
    assert isinstance(error, ConnectionRejected)
    said = (error.body or b"").decode("utf-8", "replace").strip()[:300]
    after = None
    for name, value in error.headers or ():
        if name.lower() == b"retry-after":
            after = _seconds(value.decode("ascii", "replace"))
    text = f"{address.authority} answered {error.status_code}{': ' if said else ''}{said}"
    return Unreachable(text, status=error.status_code, retry_after_seconds=after)


def _seconds(text: str) -> float | None:
    """What `Retry-After` says in seconds; a date is left alone."""
    return float(text) if text.isdecimal() else None
