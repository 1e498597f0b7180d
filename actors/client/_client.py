"""The client of a remote runtime: its commands, and following what happens there."""

from __future__ import annotations

import contextlib
import functools
import random
import ssl
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from typing import Any, Literal, final

import attrs
import trio

from protocol.errors import SpecError
from protocol.events import ApprovalRequired, ContinuationRequired
from protocol.ids import new_id
from protocol.wire import commands
from protocol.wire.commands import Position, RunLimits
from protocol.wire.replies import (
    AgentInfo,
    Agents,
    Decided,
    Fetched,
    Nothing,
    OpenRequest,
    Requests,
    Spawned,
    Started,
    Steered,
    Welcome,
)

from ._address import Address, OpenStream, open_stream_to
from ._follow import Follower
from ._link import Link
from ._pace import ClientPace
from ._socket import use_socket

__all__ = ("Client", "ClientStatistics", "connect")


@attrs.frozen
class ClientStatistics:
    """The state of a client."""

    connected: bool
    connections: int
    """How many there were."""
    tries: int
    """Tries to connect since the last connection that lasted."""
    resent: int
    """Commands that were given again after a connection broke."""
    followers: int


@final
class Client:
    """Gives commands to a remote runtime, and follows its agents. Made by `connect()`.

    Each command is answered, reconnections included, or raises a `ClientError`: `WireRefused` if the server does not do
    it, `ReplyLost` if it is not known whether it did, `Disconnected` if there is no way back. Those that carry a key of
    ours (`idem`) are given again after a broken connection, and are done once.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._followers: list[Follower] = []

    @property
    def welcome(self) -> Welcome:
        """What the server said of itself and of us, when the connection was last opened."""
        assert self._link.welcome is not None
        return self._link.welcome

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The agents that are there for us."""
        return (await self._link.ask("agent.list", commands.AgentList(), Agents)).agents

    async def requests(self) -> tuple[OpenRequest, ...]:
        """All that waits for somebody."""
        return (await self._link.ask("request.list", commands.RequestList(), Requests)).requests

    async def spawn(
        self, template: str, *, name: str | None = None, overrides: Mapping[str, Any] | None = None
    ) -> Spawned:
        """Make an agent from a template that the host registered, with what that lets a client change."""
        spec = commands.SpawnSpec(template=template, name=name, overrides=dict(overrides or {}))
        return await self._link.ask("agent.spawn", commands.AgentSpawn(spec=spec, idem=new_id("idem")), Spawned)

    async def start(
        self,
        agent: str,
        prompt: str,
        *,
        limits: RunLimits | None = None,
        if_busy: Literal["refuse", "queue"] = "refuse",
    ) -> Started:
        """Start a run: it goes on whether this client stays or not. `limits` only lower what the agent has."""
        params = commands.RunStart(agent=agent, prompt=prompt, idem=new_id("idem"), limits=limits, if_busy=if_busy)
        return await self._link.ask("run.start", params, Started)

    async def steer(self, run: str, text: str) -> None:
        """Give a run a message: it is read at its next boundary."""
        await self._link.ask("run.steer", commands.RunSteer(run=run, text=text, idem=new_id("idem")), Steered)

    async def cancel(self, run: str, *, mode: Literal["boundary", "now"] = "boundary", reason: str = "") -> None:
        """End a run at its next boundary, or now; of one that has ended, nothing is left to do."""
        await self._link.ask("run.cancel", commands.RunCancel(run=run, mode=mode, reason=reason), Nothing)

    async def stop(self, agent: str, *, mode: Literal["boundary", "now"] = "boundary", reason: str = "") -> None:
        """Stop an agent: at its run's next boundary, or now. Not given again after a broken connection: `ReplyLost`."""
        params = commands.AgentStop(agent=agent, mode=mode, reason=reason)
        await self._link.ask("agent.stop", params, Nothing, resend=False)

    async def submit(self, run: str, results: Mapping[str, Any]) -> None:
        """Give a paused run the results of its caller's own tools, by call id.

        Not given again after a broken connection (`ReplyLost`): `requests()` says what is waited for still.
        """
        await self._link.ask(
            "tools.submit", commands.ToolsSubmit(run=run, results=dict(results)), Nothing, resend=False
        )

    async def decide(
        self,
        request: ContinuationRequired,
        decision: Literal["approve", "decline"],
        *,
        message: str | None = None,
        discard: bool | Collection[str] = False,
        tool_message: str | None = None,
        grant: float | None = None,
    ) -> Decided:
        """Answer "may this go on?", as it was shown: `request` is the event, or what `requests()` gave.

        `message` steers, `discard` names calls that are not to run (`True`: all), `tool_message` is their result, `grant`
        is how much more of the limit is given. Raises `WireRefused`: `already_resolved` if somebody was quicker,
        `stale_view` if what waits is not what was shown.
        """
        params = commands.ContinuationDecide(
            request=request.request,
            decision=decision,
            digest=request.digest,
            idem=new_id("idem"),
            message=message,
            discard_tool_calls=discard if isinstance(discard, bool) else tuple(discard),
            tool_message=tool_message,
            grant=grant,
        )
        return await self._link.ask("continuation.decide", params, Decided)

    async def decide_approval(
        self,
        request: ApprovalRequired,
        decision: Literal["approve", "deny"],
        *,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Decided:
        """Answer "may this call run?", as it was shown: `arguments` run in place of those, `reason` says why not.

        Raises `WireRefused` as `decide()` does.
        """
        params = commands.ApprovalDecide(
            request=request.request,
            decision=decision,
            digest=request.digest,
            idem=new_id("idem"),
            reason=reason,
            arguments=None if arguments is None else dict(arguments),
        )
        return await self._link.ask("approval.decide", params, Decided)

    async def fetch(self, agent: str, since: Position, *, limit: int = 500) -> Fetched:
        """A page of the events behind a position, as far as the log holds them; `not_found` if it does not."""
        return await self._link.ask("agent.fetch", commands.AgentFetch(agent=agent, from_=since, limit=limit), Fetched)

    async def ping(self) -> None:
        """Wait for an answer of the server."""
        await self._link.ask("ping", commands.Ping(), Nothing)

    @contextlib.asynccontextmanager
    async def follow(
        self,
        agent: str = "*",
        *,
        since: Position | Literal["head", "start"] = "head",
        deltas: bool = True,
        types: Collection[str] | None = None,
        max_queued: int = 1024,
    ) -> AsyncGenerator[Follower, None]:
        """Follow an agent, or all, from now on (`head`), from the beginning (`start`), or behind a position.

        Inside the block, iterate: every event comes once and in order, over broken connections too. From `head`, the
        first of an agent is `Attached`, with its state; where events were lost for good, it is `Reattached`. With
        `types`, other events are left out (but requests, resolutions and ends always come), without `deltas` the pieces
        of texts. An iteration that is slower than the agents is not lost but late: at most about `max_queued` events
        wait here, the rest in the server's log.

        An agent is followed once by a client: `SpecError` for the second time.
        """
        if any(follower.excludes(agent) for follower in self._followers):
            raise SpecError(
                f"{agent!r} is followed already by this client: follow an agent once, or open another client"
            )
        if agent == "*" and isinstance(since, Position):
            raise SpecError("'*' is followed from 'head' or 'start': a position is of one agent")
        wanted = None if types is None else tuple(types)
        follower = Follower(agent, since, deltas, wanted, max(1, max_queued), self._link)
        self._followers.append(follower)
        self._link.listeners.append(follower)
        try:
            await follower.wait_ready(self._link.pace.command_seconds)
            yield follower
        finally:
            self._followers.remove(follower)
            self._link.listeners.remove(follower)
            follower.leave()

    def statistics(self) -> ClientStatistics:
        """A frozen look at the client."""
        link = self._link
        return ClientStatistics(
            link.is_connected, link.connections, link.tries, link.calls.resent, len(self._followers)
        )


@contextlib.asynccontextmanager
async def connect(
    url: str,
    *,
    token: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    name: str = "onward.client",
    pace: ClientPace | None = None,
    open_stream: OpenStream | None = None,
    chance: Callable[[], float] = random.random,  # noqa: S311  it spreads clients in time, and hides nothing
) -> AsyncGenerator[Client, None]:
    """Connect to a gateway at `ws://HOST:PORT` or `wss://HOST:PORT`; leaving the block closes the connection.

    A connection that breaks is made again, with growing random waits, as long as the server does not refuse it.
    `token` is sent as a bearer token. `name` stands in the server's logs. `open_stream` replaces how a stream to the
    server is opened (a proxy, a Unix socket, a test), and `chance` the random numbers between 0 and 1.

    Raises `SpecError` for an address that cannot be one, `Unreachable` or `Disconnected` if the first try fails. A single
    error of the body leaves the block as itself.
    """
    address = Address.read(url)
    pace = pace or ClientPace()
    if token is not None and (not token or not token.isascii() or any(char.isspace() for char in token)):
        raise SpecError("a token is ASCII without spaces; this one is not")
    opener = open_stream or open_stream_to(address, ssl_context)
    connector = functools.partial(
        use_socket, address=address, open_stream=opener, token=token, connect_seconds=pace.connect_seconds
    )
    link = Link(connector, pace, chance, name)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.run, name="client/link")
        try:
            await link.wait_connected()
            yield Client(link)
        except Exception as error:  # noqa: BLE001  raised below, as itself
            failure = error
        finally:
            link.close()
    if failure is not None:
        raise failure
