"""The front: one connection from its accept to its WebSocket, or to the one answer that it gets.

The TLS handshake, the head and the body of a POST share one deadline. What the door refuses is answered, and the client is
given a second to read that. Whatever a client does ends its own connection and nothing else.
"""

from __future__ import annotations

import math
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import attrs
import trio

from protocol.wire import SUBPROTOCOL, NotStrictError, WireLimits, strict_loads

from ..logs import get_logger
from ._access import SESSION_SECONDS, cookie_name
from ._door import Admitted, Door, Page, Refused
from ._frames import FrameWatch
from ._head import Head, HeadError, HeadReader
from ._limits import Crowd, FullError
from ._metrics import CONTENT_TYPE as METRICS_TYPE
from ._pages import Pages, response
from ._watched import WatchedStream, linger

__all__ = ("Front",)

T = TypeVar("T")
_CHUNK = 4_096
_ANSWER_SECONDS = 5.0
_MOST_TURNED_AWAY = 64
"""How many are told at the same time that there are too many; others are dropped without a word."""
logger = get_logger(__name__)


@attrs.define(eq=False)
class Front:
    """Takes connections in."""

    door: Door
    pages: Pages
    crowd: Crowd
    limits: WireLimits
    upgrade: Callable[[WatchedStream, Admitted], Awaitable[None]]
    """Serves a WebSocket, and returns when it is over; the stream may be left open."""
    metrics: Callable[[], Awaitable[str]]
    """What is measured, as of now."""
    answered: Counter[int]
    """Answers, by status."""
    ssl_context: ssl.SSLContext | None = None
    _turned_away: int = 0

    async def accept(self, stream: trio.SocketStream) -> None:
        """Serve a connection that was just accepted. Raises nothing but `Cancelled`."""
        try:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            address: str = stream.socket.getpeername()[0]
        except OSError:
            await trio.aclose_forcefully(stream)  # it has gone again
        else:
            await self.serve(stream, address)

    async def serve(self, stream: trio.abc.Stream, address: str) -> None:
        """Serve a connection from this address. Raises nothing but `Cancelled`."""
        try:
            try:
                with self.crowd.connection(address):
                    await self._serve(stream)
            except FullError as error:
                await self._turn_away(stream, error)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has gone
        except* Exception:
            logger.exception("a connection failed")
        finally:
            await trio.aclose_forcefully(stream)

    async def _serve(self, raw: trio.abc.Stream) -> None:
        reader = HeadReader()
        stream = raw
        try:
            with trio.fail_after(self.crowd.limits.head_seconds):
                stream = await self._secured(raw)
                outcome = await self._hear(stream, reader)
        except HeadError as error:
            outcome = response(error.status, str(error))
        except trio.TooSlowError:
            if stream is raw and self.ssl_context is not None:
                return  # not even TLS was spoken
            outcome = response(408, "the request took too long")
        if isinstance(outcome, Admitted):
            early = reader.rest
            del reader  # it is large, and a connection lives long
            await self._upgrade(stream, early, outcome)
        else:
            await self._answer(stream, outcome)

    async def _hear(self, stream: trio.abc.Stream, reader: HeadReader) -> bytes | Admitted:
        """Read a request: who is let in, or the answer."""
        head = await _read(stream, reader.feed)
        verdict = self.door.judge(head)
        match verdict:
            case Admitted():
                return verdict
            case Page(name="/session"):
                return await self._open_session(stream, reader, head)
            case Page(name="/metrics", head_only=head_only):
                text = await self.metrics()
                return response(200, text, content_type=METRICS_TYPE, head_only=head_only)
            case Page(name, head_only):
                return self.pages.answer(name, head_only=head_only)
            case Refused(status, text, headers):
                return response(status, text, headers=headers, head_only=head.method == "HEAD")

    async def _upgrade(self, stream: trio.abc.Stream, early: bytes, admitted: Admitted) -> None:
        watch = FrameWatch(self.limits, trio.current_time)
        try:
            if not self.pages.ready():
                raise FullError("this gateway is being closed", retry_seconds=1)
            with self.crowd.websocket(admitted.principal.name, trio.current_time()):
                await self.upgrade(WatchedStream(stream, watch, _head_for(admitted), early), admitted)
        except FullError as error:
            await self._answer(stream, _full(error))

    async def _turn_away(self, stream: trio.abc.Stream, error: FullError) -> None:
        if self._turned_away >= _MOST_TURNED_AWAY:
            return
        self._turned_away += 1
        try:
            with trio.move_on_after(self.crowd.limits.head_seconds):
                await self._answer(await self._secured(stream), _full(error))
        finally:
            self._turned_away -= 1

    async def _answer(self, stream: trio.abc.Stream, answer: bytes) -> None:
        self.answered[int(answer[len(b"HTTP/1.1 ") :][:3])] += 1
        with trio.move_on_after(_ANSWER_SECONDS):
            await stream.send_all(answer)
            await linger(stream)

    async def _secured(self, stream: trio.abc.Stream) -> trio.abc.Stream:
        if self.ssl_context is None:
            return stream
        secured = trio.SSLStream(stream, self.ssl_context, server_side=True, https_compatible=True)
        await secured.do_handshake()
        return secured

    async def _open_session(self, stream: trio.abc.Stream, reader: HeadReader, head: Head) -> bytes:
        if head.one("content-type") != "application/json":
            return response(415, 'a session is opened with {"ticket": "..."} as application/json')
        body = reader.body()
        ticket = _ticket_in(await _read(stream, reader.body) if body is None else body)
        if ticket is None:
            return response(400, 'a session is opened with {"ticket": "..."}')
        cookie = self.door.access.open_session(ticket)
        if cookie is None:
            return response(401, "this ticket is unknown, used or expired: ask for a new one")
        port = next(iter(self.door.ports()))
        secure = "; Secure" if self.door.secure else ""
        text = f"{cookie_name(port)}={cookie}; Path=/; Max-Age={SESSION_SECONDS:.0f}; HttpOnly; SameSite=Strict{secure}"
        return response(200, "the session is open", headers=(("Set-Cookie", text),))


async def _read(stream: trio.abc.Stream, take: Callable[[bytes], T | None]) -> T:
    """Read on until what is read makes something whole."""
    while (whole := take(bytes(await stream.receive_some(_CHUNK)))) is None:
        pass
    return whole


def _full(error: FullError) -> bytes:
    return response(503, str(error), headers=(("Retry-After", str(math.ceil(error.retry_seconds))),))


def _ticket_in(body: bytes) -> str | None:
    try:
        value = strict_loads(body, max_depth=2)
    except NotStrictError:
        return None
    ticket = cast("dict[str, Any]", value).get("ticket") if isinstance(value, dict) else None
    return ticket if isinstance(ticket, str) else None


def _head_for(admitted: Admitted) -> bytes:
    """What the library is told that the client asked for."""
    offered = f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n" if admitted.subprotocol else ""
    return (
        "GET /ws HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {admitted.key}\r\n{offered}\r\n"
    ).encode("ascii")
