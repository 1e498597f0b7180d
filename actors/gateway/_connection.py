"""One WebSocket: a reader that never waits, and a writer that alone sends.

The reader gives each command as it comes: what has to wait for something is finished in a task of its own, so that nothing
holds up the commands behind it. The writer sends all that has come up within a window as one frame, keeps the heartbeat,
and says good-bye. A send that is cut leaves half a frame on the wire, so one that takes too long ends with the TCP stream,
not with a close frame. Whatever happens inside ends this connection and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs
import trio
import trio_websocket

from protocol.wire import CloseCode, Fault, WireError, error_reply, read_frame, refusal_reply, result_reply
from protocol.wire.envelope import Asked
from protocol.wire.replies import Reply
from protocol.wire.words import INTERNAL_ERROR, INVALID_REQUEST

from ..logs import get_logger
from ._pace import CommandRate, Pace, Window
from ._session import Leave, Session

__all__ = ("Answer", "Connection", "Dispatch")

Answer: TypeAlias = Reply | Awaitable[Reply]
"""What a command is answered with: now, or when something has happened."""
Dispatch: TypeAlias = Callable[[Session, Asked], Answer]
"""Gives a command. It, or what it returns to wait for, raises `WireError` for a refusal."""
_MOST_WAITING = 64
"""Commands of one connection that may wait for something; further ones that are safe to send again are refused."""
_CLOSE_SECONDS = 1.0
_MOST_PINGS = 2
_REASON_BYTES = 120
_DRAINING = frozenset({CloseCode.GOING_AWAY, CloseCode.RESTART})
logger = get_logger(__name__)


@attrs.frozen(eq=False)
class _Guard:
    """A block whose errors end the connection and nothing else."""

    note: Callable[[BaseException | None], bool]

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return self.note(error)


@attrs.define(eq=False)
class Connection:
    """Serves one client until it leaves or has to."""

    socket: trio_websocket.WebSocketConnection
    session: Session
    dispatch: Dispatch
    pace: Pace
    abort: Callable[[], Awaitable[None]]
    """Drops the TCP stream."""
    still: Callable[[], bool]
    """Whether the credential of the client is good still."""
    window: Window
    """Where it waits after a frame, with all others."""
    left: Leave | None = None
    """Why the server closes it, if it does."""
    _rate: CommandRate = attrs.field(init=False)
    _nursery: trio.Nursery | None = None
    _waiting: int = 0
    _pings: int = 0

    _guard: _Guard = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._guard = _Guard(self._note)
        self._rate = CommandRate(self.session.limits)
        self.session.on_lost = self._leave

    def leave(self, code: int, reason: str) -> None:
        """Close it, from anywhere. Where the gateway goes away, what is visible now is sent before."""
        self._leave(Leave(code, reason, drains=code in _DRAINING))

    def _leave(self, leave: Leave) -> None:
        if self.left is None:
            self.left = leave
            seconds = _CLOSE_SECONDS + (self.pace.drain_seconds if leave.drains else 0.0)
            if self._nursery is not None:
                self._nursery.cancel_scope.deadline = trio.current_time() + seconds
            if leave.drains:
                self.session.freeze()
            self.session.stir()

    async def serve(self, nursery: trio.Nursery) -> None:
        """Run until the connection is closed, and `nursery`, which is its own, with it. Raises nothing but `Cancelled`."""
        self._nursery = nursery
        nursery.start_soon(self._write, name=f"{self.session.id}/write")
        try:
            with self._guard:
                while True:
                    self._hear(await self.socket.get_message())
            await trio.sleep_forever()  # the writer says good-bye, and ends the nursery
        finally:
            self.session.close()
            await self.abort()  # noqa: ASYNC102  it is shielded and bounded itself

    def _end(self, reason: str) -> None:
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel(reason)

    def _note(self, error: BaseException | None) -> bool:
        """What ends this connection: its client's end, a reason of ours, or a fault. Whether it was one of these."""
        match error:
            case Leave():
                self._leave(error)
            case trio_websocket.ConnectionClosed() | trio.BrokenResourceError() | trio.ClosedResourceError():
                if self.left is None:  # else it is our own close frame that ends the reading
                    self._end("the client has gone")
            case Exception():
                logger.error("connection failed", connection=self.session.id, exc_info=error)
                self._leave(Leave(CloseCode.INTERNAL, "an error on the server's side"))
            case _:
                return False
        return True

    def _hear(self, message: str | bytes) -> None:
        """Take one frame of the client. Raises `Leave`."""
        session = self.session
        if isinstance(message, bytes):
            raise Leave(CloseCode.UNSUPPORTED_DATA, "this protocol has text frames only")
        if self.left is not None and not self.left.drains:
            return
        asked = read_frame(message, session.limits)
        wait = self._rate.wait_seconds(trio.current_time())
        if wait:
            session.send(refusal_reply(asked.id, _overloaded("commands come too fast", math.ceil(wait * 1000))))
        elif self.left is not None:
            session.send(refusal_reply(asked.id, WireError("draining", "the gateway is being closed", retryable=True)))
        elif asked.method is not None and session.welcomed == (asked.method == "hello"):
            text = "hello is said once" if session.welcomed else "say hello first"
            session.send(error_reply(Fault(asked.id, INVALID_REQUEST, text)))
        elif isinstance(asked, Fault):
            session.send(error_reply(asked))
        elif self._waiting >= _MOST_WAITING and asked.rule.idempotent:
            session.send(refusal_reply(asked.id, _overloaded("too many commands wait for something", 1000)))
        else:
            self._give(asked)

    def _give(self, asked: Asked) -> None:
        try:
            answer = self.dispatch(self.session, asked)
        except Exception as error:  # noqa: BLE001  whatever it is, its client is told, and the connection stays
            self.session.send(self._refusal(asked, error))
        else:
            if isinstance(answer, Reply):
                self.session.send(self._reply(asked, answer))
            else:
                assert self._nursery is not None
                self._waiting += 1
                self._nursery.start_soon(self._finish, asked, answer, name=asked.method)

    async def _finish(self, asked: Asked, answer: Awaitable[Reply]) -> None:
        try:
            message = self._reply(asked, await answer)
        except Exception as error:  # noqa: BLE001  whatever it is, its client is told, and the connection stays
            message = self._refusal(asked, error)
        finally:
            self._waiting -= 1
        with self._guard:
            self.session.send(message)

    def _reply(self, asked: Asked, reply: Reply) -> bytes:
        message = result_reply(asked.id, reply)
        if len(message) < self.session.limits.frame_bytes:
            return message
        return refusal_reply(
            asked.id, WireError("too_large", f"the result of {asked.method} fits in no frame: ask for less at a time")
        )

    def _refusal(self, asked: Asked, error: Exception) -> bytes:
        if isinstance(error, WireError):
            return refusal_reply(asked.id, error)
        if isinstance(error, Leave):
            raise error
        logger.error("command failed", command=asked.method, connection=self.session.id, exc_info=error)
        return error_reply(Fault(asked.id, INTERNAL_ERROR, f"{asked.method} failed on the server's side"))

    async def _write(self) -> None:
        session, pace = self.session, self.pace
        began = trio.current_time()
        hello_by, beat_at = began + pace.hello_seconds, began + pace.heartbeat_seconds
        with self._guard:
            while self.left is None:
                if not session.ready:
                    news = await session.wait(beat_at if session.welcomed else min(hello_by, beat_at))
                    if news and self.left is None:
                        await self.window.turn()
                now = trio.current_time()
                if now >= hello_by and not session.welcomed:
                    raise Leave(CloseCode.UNAUTHENTICATED, "no hello came")
                if now >= beat_at:
                    self._beat()
                    beat_at = now + pace.heartbeat_seconds
                if self.left is None and await self._send_next():
                    await self.window.wait()
        with self._guard:
            await self._part()
        self._end("the connection is closed")

    async def _send_next(self) -> bool:
        """Send the next frame, if there is one."""
        frame = self.session.take(trio.current_time())
        if frame is None:
            return False
        with trio.move_on_after(self.pace.send_seconds) as scope:
            await self.socket.send_message(frame.decode())
        if scope.cancelled_caught:
            await self.abort()  # noqa: ASYNC102  it is shielded and bounded itself
            raise Leave(CloseCode.SLOW, "one frame took too long to send")
        return True

    def _beat(self) -> None:
        """The client is still allowed to be there, and still there? Raises `Leave`."""
        if not self.still():
            raise Leave(CloseCode.UNAUTHENTICATED, "the token was revoked, or the session is over")
        if self._pings >= _MOST_PINGS:
            raise Leave(CloseCode.GOING_AWAY, f"{_MOST_PINGS} pings were not answered")
        if self.session.welcomed:
            self.session.beat()
        self._pings += 1
        assert self._nursery is not None
        self._nursery.start_soon(self._ping, name=f"{self.session.id}/ping")

    async def _ping(self) -> None:
        with self._guard:
            await self.socket.ping()
            self._pings = 0

    async def _part(self) -> None:
        """Send what is visible, if the gateway goes away, and the close frame."""
        leave = self.left
        if leave is None:
            return
        if leave.drains:
            while await self._send_next():
                pass
        reason = str(leave).encode()[:_REASON_BYTES].decode(errors="ignore")
        await self.socket.aclose(code=leave.code, reason=reason)


def _overloaded(what: str, retry_after_ms: int) -> WireError:
    return WireError("overloaded", f"{what}: send on later", retryable=True, retry_after_ms=retry_after_ms)
