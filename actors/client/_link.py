"""The link to a server: one connection after the other, as long as the server does not refuse it.

A reader that never waits for anybody but the server, one writer, a watch for silence. Whatever ends one of them ends the
connection; the next one begins with `hello`, then those who follow an agent attach again, and commands without a reply
are given again under the same `idem`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import attrs
import msgspec
import trio

from protocol.wire import SUBPROTOCOL, WireLimits, may_reconnect
from protocol.wire.incoming import Incoming, NotOfTheWireError, command, read_messages, read_params
from protocol.wire.notifications import Events, Heartbeat
from protocol.wire.replies import Welcome

from ._calls import Calls, OnReply
from ._errors import BROKEN, ClientError, Disconnected, ReplyLost, Unreachable, WireRefused
from ._pace import Allowance, ClientPace
from ._socket import Socket, SocketClosedError

__all__ = ("Connector", "Link", "Listener")

T = TypeVar("T")


class Connector(Protocol):
    """Opens one connection, runs a body with it, and says how it ended."""

    async def __call__(self, body: Callable[[Socket], Awaitable[None]], /) -> Unreachable | SocketClosedError:
        """See `use_socket()`."""
        ...


class Listener(Protocol):
    """What is told of a link. All synchronous, in the order of the messages."""

    def connected(self) -> None:
        """A connection is open."""

    def lost(self) -> None:
        """It has ended; another one may come."""

    def events(self, events: Events) -> None:
        """Events have come. Raises `NotOfTheWireError` to drop the connection."""

    def heartbeat(self, heads: dict[str, int]) -> None:
        """The server says how far agents are."""

    def over(self, error: ClientError) -> None:
        """No connection will come any more."""


@attrs.define(eq=False, repr=False)
class Link:
    """Keeps a client connected; `run()` is its task."""

    connector: Connector
    pace: ClientPace
    chance: Callable[[], float]
    name: str
    calls: Calls = attrs.field(factory=Calls)
    listeners: list[Listener] = attrs.field(factory=list[Listener])
    welcome: Welcome | None = None
    """The answer to the last `hello`."""
    is_connected: bool = False
    error: ClientError | None = None
    """Why there is no connection and none will come."""
    connections: int = 0
    tries: int = 0
    """Tries since the last connection that lasted."""
    _first: trio.Event = attrs.field(factory=trio.Event)
    _closing: trio.Event = attrs.field(factory=trio.Event)
    _scope: trio.CancelScope = attrs.field(factory=lambda: trio.CancelScope(shield=True))
    _end: SocketClosedError | None = None
    _heard: float = 0.0

    @property
    def limits(self) -> WireLimits:
        """What the server takes, as it said when it was last reached."""
        return WireLimits() if self.welcome is None else self.welcome.limits

    def close(self) -> None:
        """End it: `run()` returns within about a second."""
        self._closing.set()
        if not self.is_connected:
            self._scope.cancel("this client has been closed")

    async def wait_connected(self) -> Welcome:
        """Wait for the first connection. Raises `ClientError` if the first try fails."""
        await self._first.wait()
        if self.error is not None:
            raise self.error
        assert self.welcome is not None
        return self.welcome

    async def ask(self, method: str, params: Any, kind: type[T], *, resend: bool = True) -> T:
        """Give a command and wait for its reply. Raises `ClientError`."""
        if self.error is not None:
            await trio.lowlevel.checkpoint()
            raise self.error
        call = self.calls.new(method, params, resend=resend)
        most = self.limits.message_bytes
        try:
            if len(call.text.encode()) > most:
                raise WireRefused("too_large", f"{method} is longer than {most} bytes", {"retryable": False})
            with trio.move_on_after(self.pace.command_seconds):
                await call.done.wait()
        finally:
            self.calls.forget(call)
        if call.error is not None:
            raise call.error
        if call.result is None:
            raise ReplyLost(f"{method} was not answered within {self.pace.command_seconds:g} s")
        try:
            return msgspec.json.decode(bytes(call.result), type=kind)
        except msgspec.DecodeError as error:
            raise ReplyLost(f"{method} was done; its reply cannot be read: {error}") from None

    def post(self, method: str, params: Any, on_reply: OnReply) -> None:
        """Give a command of the present connection, which is forgotten with it."""
        self.calls.new(method, params, on_reply=on_reply)

    async def run(self) -> None:
        """Keep connected until `close()`, or until the server refuses. A cancel does not reach in here."""
        try:
            with self._scope:
                await self._keep_connected()
        finally:
            if self.error is None:
                self.error = Disconnected("this client has been closed", code=1000)
            self._first.set()
            self.calls.fail_all(self.error)
            for listener in list(self.listeners):
                listener.over(self.error)

    async def _keep_connected(self) -> None:
        down_since = trio.current_time()
        while not self._closing.is_set():
            began = trio.current_time()
            end = await self.connector(self._serve)
            now = trio.current_time()
            if self.is_connected:
                self.is_connected = False
                down_since = now
                self.tries = 0 if now - began >= self.pace.most_seconds else self.tries
                self.calls.connection_lost()
                for listener in list(self.listeners):
                    listener.lost()
            self.error = self._refusal(end, now - down_since)
            if self.error is not None or self._closing.is_set():
                return
            wait = self.pace.wait_seconds(self.tries, self.chance())
            self.tries += 1
            if isinstance(end, Unreachable) and end.retry_after_seconds is not None:
                wait += min(end.retry_after_seconds, self.pace.most_seconds)
            await trio.sleep(wait)

    def _refusal(self, end: Unreachable | SocketClosedError, down_seconds: float) -> ClientError | None:
        """Why it is not tried again, if it is not."""
        if self._closing.is_set():
            return None
        if isinstance(end, Unreachable):
            if self.welcome is None or not end.may_retry:
                return end
        elif self.welcome is None or not may_reconnect(end.code):
            return Disconnected(f"the server closed the connection ({end.code}): {end}", code=end.code)
        if self.pace.give_up_seconds is not None and down_seconds >= self.pace.give_up_seconds:
            return Disconnected(f"no connection for {down_seconds:.0f} s; the last try: {end}")
        return None

    async def _serve(self, socket: Socket) -> None:
        self._end = None
        try:
            await self._serve_welcomed(socket, await self._greet(socket))
        except NotOfTheWireError as error:
            self._end = SocketClosedError(BROKEN, str(error))
        await socket.close()
        if self._end is not None:
            raise self._end

    async def _greet(self, socket: Socket) -> Welcome:
        id = "hello"
        with trio.move_on_after(self.pace.connect_seconds) as scope:
            await socket.send(command(id, "hello", {"client": {"name": self.name}}))
            while True:
                for message in read_messages(await socket.receive()):
                    if message.id != id:
                        continue
                    if message.error is not None:
                        raise Unreachable(f"hello was refused: {message.error.message}", status=403)
                    try:
                        return msgspec.json.decode(bytes(message.result), type=Welcome)
                    except msgspec.DecodeError as error:
                        raise NotOfTheWireError(f"this server speaks no {SUBPROTOCOL}: {error}") from None
        assert scope.cancelled_caught
        raise SocketClosedError(BROKEN, "hello was not answered")

    async def _serve_welcomed(self, socket: Socket, welcome: Welcome) -> None:
        self.welcome = welcome
        self.is_connected = True
        self.connections += 1
        self._heard = trio.current_time()
        self._first.set()
        for listener in list(self.listeners):
            listener.connected()
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            for task in (self._read, self._write, self._watch):
                nursery.start_soon(self._guarded, task, socket, scope, name=f"client/{task.__name__.strip('_')}")
            await self._closing.wait()
            scope.cancel("this client has been closed")

    async def _guarded(
        self, task: Callable[[Socket], Awaitable[None]], socket: Socket, scope: trio.CancelScope
    ) -> None:
        try:
            await task(socket)
        except SocketClosedError as error:
            self._end = self._end or error
        except NotOfTheWireError as error:
            self._end = self._end or SocketClosedError(BROKEN, str(error))
        scope.cancel("the connection has ended")

    async def _read(self, socket: Socket) -> None:
        while True:
            frame = await socket.receive()
            self._heard = trio.current_time()
            for message in read_messages(frame):
                self._take(message)

    def _take(self, message: Incoming) -> None:
        if message.method is None:
            self.calls.answered(message, trio.current_time())
            return
        params = read_params(message)
        for listener in list(self.listeners):
            if isinstance(params, Events):
                listener.events(params)
            elif isinstance(params, Heartbeat):
                listener.heartbeat(params.heads)

    async def _write(self, socket: Socket) -> None:
        limits = self.limits
        allowed = Allowance(max(1.0, limits.commands_per_second), max(1, limits.commands_burst), trio.current_time())
        while True:
            call = await self.calls.next()
            now = trio.current_time()
            await trio.sleep(max(allowed.take(now), self.calls.not_before - now))
            call.sent = True
            with trio.move_on_after(self.pace.send_seconds) as scope:
                await socket.send(call.text)
            if scope.cancelled_caught:
                raise SocketClosedError(BROKEN, "a command took too long to send")

    async def _watch(self, _socket: Socket) -> None:
        assert self.welcome is not None
        most = self.pace.missed_heartbeats * self.welcome.heartbeat_seconds
        while most > 0:
            heard = self._heard
            await trio.sleep_until(heard + most)
            if self._heard == heard:
                raise SocketClosedError(BROKEN, f"nothing was heard for {most:g} s")
