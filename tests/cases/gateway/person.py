"""Somebody far away: a client of the library's own, over connections that are cut, stall, and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import attrs
import trio

from actors.client import Attached, Client, Follower, Item, Position, Received, WireRefused
from actors.gateway import Principal
from protocol.events import ApprovalRequired, ContinuationRequired, Event
from protocol.wire.commands import ApprovalDecide, ContinuationDecide, RunStart
from protocol.wire.replies import Decided, Started
from tests.actors.client._cable import Cable, client_of

from .line import Line

if TYPE_CHECKING:
    from .place import Place

E = TypeVar("E", bound=Event)
R = TypeVar("R")
Since: TypeAlias = Position | Literal["head", "start"]
Request: TypeAlias = ContinuationRequired | ApprovalRequired

PATIENCE_SECONDS = 1000
"""How long one waits for what has to come."""


@attrs.frozen
class Said:
    """A command of somebody's, and its answer."""

    time: float
    """When the answer came."""
    method: str
    answer: Any
    """The result, or the refusal."""

    @property
    def refusal(self) -> WireRefused:
        assert isinstance(self.answer, WireRefused), self.answer
        return self.answer


@attrs.define(eq=False)
class Visit:
    """From one `come` to the next."""

    agent: str
    since: Since
    items: list[tuple[float, Item]] = attrs.field(factory=list[tuple[float, Item]])
    """What came, with its time."""
    follower: Follower | None = None


@attrs.define(eq=False)
class Person:
    """One person, who has one connection at a time and remembers what came over all of them."""

    name: str
    place: Place
    cable: Cable
    client: Client
    visits: list[Visit] = attrs.field(factory=list[Visit])
    said: list[Said] = attrs.field(factory=list[Said])
    """The commands that were answered."""
    line: Line | None = None
    """The server's end of the connection."""
    _visit: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _gone: trio.Event = attrs.field(factory=trio.Event)
    _stirred: trio.Event = attrs.field(factory=trio.Event)

    @property
    def principal(self) -> str:
        """Who it is to the server; `A/2` is a second client of A."""
        return f"client-{self.name.partition('/')[0]}"

    # Coming and going.

    async def come(self, agent: str = "*", since: Since = "start") -> None:
        """Connect, and follow an agent or all."""
        self.visits.append(Visit(agent, since))
        self.cable.unplugged = False
        await self.place.nursery.start(self._stay, self.visits[-1])

    async def _stay(self, visit: Visit, *, task_status: trio.TaskStatus[None]) -> None:
        self._gone = trio.Event()
        try:
            with trio.CancelScope() as self._visit:
                token = self.place.hall.token_of(Principal(self.principal))
                async with (
                    client_of(self.cable, token=token) as self.client,
                    self.client.follow(visit.agent, since=visit.since) as events,
                ):
                    visit.follower = events
                    task_status.started()
                    async for item in events:
                        visit.items.append((trio.current_time(), item))
                        self._stirred.set()
                        self._stirred = trio.Event()
        finally:
            self._gone.set()

    async def leave(self) -> None:
        """Close the connection in order."""
        self._visit.cancel("the client leaves")
        await self._gone.wait()

    async def drop(self) -> None:
        """Go without a word: TCP breaks."""
        await self.break_off()
        await self.leave()

    async def break_off(self) -> None:
        """The connection breaks, and none can be made; the client does not know why."""
        self.cable.unplugged = True
        await self.cable.cut()

    async def come_back(self) -> None:
        """Connections can be made again: the client makes one."""
        self.cable.unplugged = False
        with trio.fail_after(PATIENCE_SECONDS):
            while not self.client.statistics().connected:  # noqa: ASYNC110  it tells nobody
                await trio.sleep(0.01)

    def lose_what_comes(self) -> None:
        """The next that the server sends is lost, and the connection with it."""
        self.cable.unplugged = True
        self.cable.ends[-1].lossy = True

    def stop_reading(self) -> None:
        """Read and write nothing any more; a little fits on the way still."""
        self.cable.unplugged = True
        self.cable.ends[-1].stalled = trio.Event()
        assert self.line is not None
        self.line.room = 4096

    async def reset(self) -> None:
        """TCP is reset, and no connection can be made."""
        self.cable.unplugged = True
        assert self.line is not None
        self.line.reset()
        await self.cable.cut()

    # What came.

    @property
    def items(self) -> list[tuple[float, Item]]:
        """What came over all visits, with its time."""
        return [item for visit in self.visits for item in visit.items]

    @property
    def timed(self) -> list[tuple[float, Received]]:
        """The events that came, with their times."""
        return [(time, item) for time, item in self.items if isinstance(item, Received)]

    @property
    def received(self) -> list[Received]:
        return [item for _, item in self.timed]

    @property
    def attached(self) -> list[Attached]:
        return [item for _, item in self.items if isinstance(item, Attached)]

    @property
    def numbers(self) -> list[int]:
        """Of all events that came, those that merged ones stand for included."""
        return [number for item in self.received for number in range(item.number, item.last + 1)]

    @property
    def position(self) -> Position:
        """Behind the last event that came."""
        return self.received[-1].position

    def all(self, kind: type[E]) -> list[E]:
        """The events of one class that came."""
        return [item.event for item in self.received if isinstance(item.event, kind)]

    def only(self, kind: type[E]) -> E:
        """The one event of its class that came."""
        found = self.all(kind)
        assert len(found) == 1, found
        return found[0]

    def time_of(self, event: Event) -> float:
        """When it came."""
        return next(time for time, item in self.timed if item.event is event)

    async def until(self, done: Callable[[], R | None]) -> R:
        """Wait until something has come."""
        with trio.fail_after(PATIENCE_SECONDS):
            while (found := done()) is None:
                await self._stirred.wait()
        return found

    async def request(self, call: str | None = None, *, number: int = 1) -> Request:
        """The request for a call, or the `number`th of all, when it has come."""

        def found() -> Request | None:
            fitting = [
                event
                for event in (item.event for item in self.received)
                if isinstance(event, (ApprovalRequired, ContinuationRequired))
                and (call is None or (isinstance(event, ApprovalRequired) and event.call == call))
            ]
            return fitting[number - 1] if len(fitting) >= number else None

        return await self.until(found)

    # Commands.

    async def ask(self, method: str, params: Any, kind: type[R]) -> R | WireRefused:
        """Give a command in one's own words, and keep its answer."""
        answer: R | WireRefused
        try:
            answer = await self.client._link.ask(method, params, kind)
        except WireRefused as refusal:
            answer = refusal
        self.said.append(Said(trio.current_time(), method, answer))
        return answer

    async def start(self, agent: str, prompt: str, *, idem: str) -> Started | WireRefused:
        """Start a run under a key of one's own."""
        return await self.ask("run.start", RunStart(agent=agent, prompt=prompt, idem=idem), Started)

    async def decide(self, request: Request, decision: str, *, idem: str, **more: Any) -> Decided | WireRefused:
        """Decide, upon what was shown, under a key of one's own."""
        given = {"request": request.request, "decision": decision, "digest": request.digest, "idem": idem, **more}
        if isinstance(request, ContinuationRequired):
            return await self.ask("continuation.decide", ContinuationDecide(**given), Decided)
        return await self.ask("approval.decide", ApprovalDecide(**given), Decided)
