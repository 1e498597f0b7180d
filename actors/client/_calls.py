"""Commands on their way: what was sent, what was answered, and what has to be sent again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import msgspec
import trio

from protocol.wire.incoming import Incoming, Refusal, command

from ._errors import ClientError, ReplyLost, WireRefused

__all__ = ("Call", "Calls", "OnReply")

OnReply: TypeAlias = Callable[[msgspec.Raw | WireRefused], None]
"""Called in the order of the messages, before the next one is looked at."""


@attrs.define(eq=False)
class Call:
    """One command."""

    id: int
    method: str
    text: str
    resend: bool
    """Whether it may be given again when a connection broke before its reply."""
    on_reply: OnReply | None
    """Set for a command of a connection's own, which is forgotten with it."""
    sent: bool = False
    done: trio.Event = attrs.field(factory=trio.Event)
    result: msgspec.Raw | None = None
    error: ClientError | None = None

    def fail(self, error: ClientError) -> None:
        """It will not be answered."""
        self.error = error
        self.done.set()


@attrs.define(eq=False)
class Calls:
    """All commands that have no reply yet, in the order in which they were given."""

    resent: int = 0
    """Commands that were given again."""
    not_before: float = 0.0
    """The server asked to wait until then."""
    _open: dict[int, Call] = attrs.field(factory=dict[int, Call])
    _outbox: deque[Call] = attrs.field(factory=deque[Call])
    _stirred: trio.Event = attrs.field(factory=trio.Event)
    _last_id: int = 0

    def new(self, method: str, params: Any, *, resend: bool = True, on_reply: OnReply | None = None) -> Call:
        """Give a command: it is sent when there is a connection."""
        self._last_id += 1
        call = Call(self._last_id, method, command(self._last_id, method, params), resend, on_reply)
        self._open[call.id] = call
        self._put(call)
        return call

    def forget(self, call: Call) -> None:
        """Nobody waits for it any more."""
        self._open.pop(call.id, None)

    async def next(self) -> Call:
        """The next one to be sent."""
        while True:
            while self._outbox:
                call = self._outbox.popleft()
                if call.id in self._open:
                    return call
            self._stirred = trio.Event()
            await self._stirred.wait()

    def answered(self, message: Incoming, now: float) -> None:
        """A reply has come. One to a command that nobody waits for is passed over."""
        call = self._open.get(message.id) if isinstance(message.id, int) else None
        if call is None:
            return
        if message.error is not None and message.error.data.get("code") == "overloaded":
            self.not_before = now + _seconds(message.error)
            self._put(call)
            return
        if message.error is not None and _goes_away(message.error):
            call.sent = False  # it was not done: it is given again when there is another connection
            return
        del self._open[call.id]
        outcome = message.result if message.error is None else _refused(message.error)
        if call.on_reply is not None:
            call.on_reply(outcome)
        elif isinstance(outcome, WireRefused):
            call.fail(outcome)
        else:
            call.result = outcome
            call.done.set()

    def connection_lost(self) -> None:
        """Forget what was the connection's own, and give all others again that may be given twice."""
        self._outbox.clear()
        self.not_before = 0.0
        for call in list(self._open.values()):
            if call.on_reply is not None:
                del self._open[call.id]
            elif call.sent and not call.resend:
                del self._open[call.id]
                call.fail(ReplyLost(f"{call.method}: the connection broke before the reply; look whether it was done"))
            else:
                self.resent += call.sent
                call.sent = False
                self._put(call)

    def fail_all(self, error: ClientError) -> None:
        """No connection will come any more."""
        waiting, self._open = self._open, {}
        for call in waiting.values():
            call.fail(error)

    def _put(self, call: Call) -> None:
        self._outbox.append(call)
        self._stirred.set()


def _refused(error: Refusal) -> WireRefused:
    word = error.data.get("code")
    return WireRefused(word if isinstance(word, str) else str(error.code), error.message, error.data)


def _goes_away(error: Refusal) -> bool:
    """Whether it was refused because the server is being closed, and not because an agent is."""
    return error.data.get("code") == "draining" and error.data.get("retryable") is True


def _seconds(error: Refusal) -> float:
    told = error.data.get("retry_after_ms")
    return min(60.0, max(0.01, told / 1000)) if isinstance(told, (int, float)) else 1.0
