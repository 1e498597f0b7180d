"""The gateway: a listener in front of a runtime."""

from __future__ import annotations

import contextlib
import functools
import secrets
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import TypeVar

import attrs
import trio

from protocol.errors import JournalError, SpecError
from protocol.wire import CloseCode, WireError, WireLimits
from protocol.wire.replies import Reply

from ..agent import Agent
from ..runtime import Runtime
from ._access import Access
from ._attach import follow_new
from ._connection import Connection
from ._door import Door, is_loopback
from ._front import Front
from ._limits import Crowd, DoorLimits
from ._metrics import metrics_page
from ._pace import Pace, Window
from ._pages import Pages, present_schema
from ._principals import Principal
from ._shared import SharedFrames
from ._spawn import Template, bring_back, check_templates
from ._websocket import serve_websocket

__all__ = ("Gateway", "open_gateway")

R = TypeVar("R", bound=Reply)

_LEAVE_SECONDS = 9.0
"""How long clients have to leave when the gateway is closed; then TCP is dropped."""
_STAGGER_SECONDS = 4.0
"""Over how long they are told, at most: they are not to come back all at once."""
_STAGGER_STEP_SECONDS = 0.005


@attrs.define(eq=False)
class Gateway:
    """Serves the clients of a runtime; made by `open_gateway()`. Its repr shows no secret."""

    runtime: Runtime
    pace: Pace
    limits: WireLimits
    access: Access
    templates: Mapping[str, Template] = attrs.field(factory=dict[str, Template], repr=False)
    """What clients may make agents from."""
    left_out: dict[str, str] = attrs.field(factory=dict[str, str], repr=False)
    """Agents in the journal that clients had made and that did not come back: by their id, why. Their data stays."""
    token: str | None = attrs.field(default=None, repr=False)
    """The token that was made at start, where none were given."""
    restarting: bool = False
    """Whether clients are told that the server comes back (1012) when it closes, not that it goes away (1001)."""
    frames: SharedFrames = attrs.field(factory=SharedFrames, repr=False)
    window: Window = attrs.field(init=False, repr=False)
    connections: dict[str, Connection] = attrs.field(factory=dict[str, Connection], repr=False)
    addresses: Sequence[tuple[str, int]] = ()
    """What is listened on."""
    secure: bool = False
    """Whether it is reached by TLS."""
    front: Front | None = attrs.field(default=None, repr=False)
    """Serves one connection: one of your own too."""
    answered: Counter[int] = attrs.field(factory=Counter[int], repr=False)
    """Answers over plain HTTP, by status."""
    closed: Counter[tuple[str, str]] = attrs.field(factory=Counter[tuple[str, str]], repr=False)
    """Connections that were closed: by whom, and with which code."""
    _draining: trio.Event = attrs.field(factory=trio.Event, repr=False)
    _closing: trio.Event = attrs.field(factory=trio.Event, repr=False)
    _emptied: trio.Event = attrs.field(factory=trio.Event, repr=False)

    def __attrs_post_init__(self) -> None:
        self.window = Window(self.pace.window_seconds)

    @property
    def ports(self) -> Collection[int]:
        """The ports that are listened on: several only where any free one was asked for, of a name with several addresses."""
        return [port for _, port in self.addresses]

    @property
    def address(self) -> str:
        """Where it is reached, such as `http://127.0.0.1:8765`; the WebSocket is at `/ws` there."""
        host, port = self.addresses[0]
        return f"http{'s' if self.secure else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def ready(self) -> bool:
        """Whether clients are taken in, and their commands."""
        return not self._draining.is_set()

    def ticket(self, principal: Principal | None = None) -> str:
        """A ticket that opens one browser's session, within five minutes: `{address}/#ticket={ticket}`."""
        return self.access.ticket(principal)

    def visible_to(self, principal: Principal) -> list[Agent]:
        """The agents that are there for a principal."""
        return [agent for agent in self.runtime.agents if principal.may_see(agent.name)]

    def agent(self, principal: Principal, id: str) -> Agent:
        """An agent by its id. Raises `WireError` (`not_found`) if it is not there for this principal."""
        for agent in self.visible_to(principal):
            if agent.id == id:
                return agent
        raise WireError("not_found", f"there is no agent {id!r}")

    async def durable(self, reply: R) -> R:
        """The reply, once all that it tells is durable. Raises as `flushed` does."""
        await self.flushed()
        return reply

    async def flushed(self) -> None:
        """Wait until all that has happened is durable. Raises `WireError`: where it cannot be kept, nothing is acknowledged."""
        try:
            await self.runtime.flushed()
        except JournalError as error:
            raise WireError(
                "draining", "what was done could not be kept, and the server ends", retryable=True
            ) from error

    def agent_spawned(self, agent: Agent) -> None:
        """An agent has come: who follows all follows it too."""
        for connection in self.connections.values():
            follow_new(self, connection.session, agent)

    def gone(self, connection: str, by: tuple[str, str]) -> None:
        """A connection has ended: who closed it, and why."""
        del self.connections[connection]
        self.closed[by] += 1
        if not self.connections:
            self._emptied.set()

    async def run(self, listeners: list[trio.SocketListener], front: Front) -> None:
        """Serve until `close()`. A cancel does not reach in here: clients are told in any case."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(
                        functools.partial(trio.serve_listeners, front.accept, listeners, handler_nursery=connections)
                    )
                    await self._draining.wait()
                    accepting.cancel_scope.cancel("the gateway is being closed")
                await self._closing.wait()
                with trio.move_on_after(_LEAVE_SECONDS):
                    await self._dismiss()
                connections.cancel_scope.cancel("the gateway is closed")

    def drain(self) -> None:
        """Take no more clients in, and no more commands; those that follow agents go on following.

        For whoever stops the runtime next: clients see how runs end, or where they stand still, and are told to go when the
        block is left. Refused commands are given again by clients that come back.
        """
        self._draining.set()

    def close(self) -> None:
        """Take no more clients in, and tell those that are there."""
        self._draining.set()
        self._closing.set()

    async def _dismiss(self) -> None:
        code = CloseCode.RESTART if self.restarting else CloseCode.GOING_AWAY
        leaving = list(self.connections.values())
        for connection in leaving:
            connection.leave(code, "the server restarts" if self.restarting else "the gateway is being closed")
            await trio.sleep(min(_STAGGER_STEP_SECONDS, _STAGGER_SECONDS / len(leaving)))
        while self.connections:
            self._emptied = trio.Event()
            await self._emptied.wait()


@contextlib.asynccontextmanager
async def open_gateway(
    runtime: Runtime,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    tokens: Access | None = None,
    templates: Mapping[str, Template] | None = None,
    open_to_all: bool = False,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    ssl_context: ssl.SSLContext | None = None,
    restarting: bool = False,
    pace: Pace | None = None,
    limits: WireLimits | None = None,
    door_limits: DoorLimits | None = None,
    schema: Callable[[], bytes] = present_schema,
) -> AsyncGenerator[Gateway, None]:
    """Open a gateway on `host` and `port` (0: any free one, see `ports`); clients are taken in when the block begins.

    Without `tokens` one is made (see `Gateway.token`); `open_to_all` asks for none, on this machine alone. `hosts` are names
    that it is reached by beside `localhost` and addresses, `origins` those of foreign pages that may connect.

    `templates` are what clients may make agents from, by name. With a journal, those that they had made come back here, with
    what their templates make now; where one is gone, that is said (`Gateway.left_out`), and the agent stays in the journal.

    Leaving the block closes it in order: no client is taken in any more, those that are there get what is visible and then
    1001 (1012 where `restarting`), and after 9 seconds TCP is dropped.

    Raises `SpecError` for an address that others reach without `tokens`, and for one that cannot be listened on.
    """
    if not is_loopback(host) and (open_to_all or tokens is None):
        raise SpecError(
            f"host={host!r} can be reached by others: give tokens=Access.of(...), and not open_to_all;"
            " or listen on 127.0.0.1"
        )
    if open_to_all and tokens is not None:
        raise SpecError("open_to_all asks for no token: give tokens, or open_to_all, but not both")
    access = tokens or Access()
    gateway = Gateway(runtime, pace or Pace(), limits or WireLimits(), access, check_templates(templates or {}))
    gateway.restarting = restarting
    gateway.secure = ssl_context is not None
    if tokens is None and not open_to_all:
        gateway.token = secrets.token_urlsafe(24)
        access.add(gateway.token, Principal("local"))
    front = gateway.front = Front(
        Door(
            access=access,
            ports=lambda: gateway.ports,
            hosts=hosts,
            origins=origins,
            secure=gateway.secure,
            open_to_all=open_to_all,
        ),
        Pages(schema=schema, ready=lambda: gateway.ready),
        Crowd(door_limits or DoorLimits()),
        gateway.limits,
        functools.partial(serve_websocket, gateway),
        functools.partial(metrics_page, gateway),
        gateway.answered,
        ssl_context,
    )
    await bring_back(gateway)
    listeners = await _listen(host, port)
    gateway.addresses = [listener.socket.getsockname()[:2] for listener in listeners]
    failed: Exception | None = None
    with runtime.observe(gateway.agent_spawned):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gateway.run, listeners, front)
            try:
                yield gateway
            except Exception as error:  # noqa: BLE001  raised again, as itself and in no group, when all is closed
                failed = error
            finally:
                gateway.close()
    if failed is not None:
        raise failed


async def _listen(host: str, port: int) -> list[trio.SocketListener]:
    if not 0 <= port <= 65_535:
        raise SpecError(f"port={port} is none: ports go from 1 to 65535, and 0 is any free one")
    try:
        return await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        text = error.strerror or str(error)
        raise SpecError(f"port {port} of {host!r} cannot be listened on: {text}; port=0 is any free one") from error
