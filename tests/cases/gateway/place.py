"""A gateway in front of the agents of a case, those who come to it, and what is held against each other at the end."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar, cast

import attrs
import trio
import trio.testing

from actors import Agent, Runtime
from actors.client import Client
from actors.gateway import Access, DoorLimits, Gateway, Pace, open_gateway
from protocol.events import Event
from protocol.wire import WireLimits
from tests.actors.client._cable import Cable
from tests.actors.gateway.wired import MANY, Hall
from tests.support.play import Stage, perform

from .line import Line
from .person import Person
from .picture import faults_of

T = TypeVar("T")


@attrs.define(eq=False)
class Book:
    """What an agent's log told, from its first event on, with the time of each."""

    agent: Agent
    events: list[tuple[float, Event]] = attrs.field(factory=list)

    def time_of(self, event: Event) -> float:
        """When it was told."""
        return next(time for time, told in self.events if told == event)


@attrs.define(eq=False)
class Place:
    """The gateway of a case. `nursery` holds whoever comes, for as long as it is open."""

    hall: Hall
    people: dict[str, Person] = attrs.field(factory=dict)
    books: dict[str, Book] = attrs.field(factory=dict)
    """By the agent's id."""
    faults: list[str] = attrs.field(factory=list)
    """What was wrong with what clients were shown."""
    _idems: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    @property
    def nursery(self) -> trio.Nursery:
        return self.hall.nursery

    @property
    def gateway(self) -> Gateway:
        return self.hall.gateway

    def idem(self) -> str:
        """A key for a command that no other has."""
        return f"key-{next(self._idems)}"

    def person(self, name: str) -> Person:
        """Somebody by name, who may not have come yet."""
        if name not in self.people:
            cable = Cable(lambda stream: self._serve(name, stream), self.nursery)
            self.people[name] = Person(name, self, cable, cast("Client", None))
        return self.people[name]

    def keep_book(self, agent: Agent) -> None:
        """Keep what the agent tells from its first event on, whatever its log forgets."""
        self.books[agent.id] = Book(agent)
        self.nursery.start_soon(self._read, self.books[agent.id])

    async def _read(self, book: Book) -> None:
        async for event in book.agent.events(after=0):
            assert isinstance(event, Event), event
            book.events.append((trio.current_time(), event))

    async def _serve(self, name: str, stream: trio.abc.Stream) -> None:
        front = self.gateway.front
        assert front is not None
        self.people[name].line = line = Line(cast("Any", stream))
        await front.serve(line, "127.0.0.1")

    async def compare(self) -> None:
        """Hold what everybody was shown against the logs, and the logs against the snapshots."""
        await trio.testing.wait_all_tasks_blocked()
        for person in self.people.values():
            self.faults += [f"{person.name}: {fault}" for fault in faults_of(person, self.books)]
        onlooker = self.person("onlooker")
        for agent in list(self.hall.runtime.agents):
            await onlooker.come(agent.id, "head")
            attached = await onlooker.until(lambda: onlooker.attached[-1] if onlooker.attached else None)
            assert attached.agent == agent.id
            self.faults += [f"the snapshot of {agent.name}: {fault}" for fault in faults_of(onlooker, self.books)]
            await onlooker.leave()
            onlooker.visits.clear()


@contextlib.asynccontextmanager
async def open_place(
    runtime: Runtime,
    *,
    pace: Pace | None = None,
    limits: WireLimits | None = None,
    door_limits: DoorLimits = MANY,
    **options: Any,
) -> AsyncGenerator[Place, None]:
    """A gateway in front of a runtime. Before it is closed, what clients saw is compared."""
    access = Access()
    async with (
        open_gateway(
            runtime, port=0, tokens=access, pace=pace, limits=limits, door_limits=door_limits, **options
        ) as gateway,
        trio.open_nursery() as nursery,
    ):
        place = Place(Hall(runtime, gateway, access, nursery))
        for agent in runtime.agents:
            place.keep_book(agent)
        with runtime.observe(place.keep_book):
            yield place
            await place.compare()
        nursery.cancel_scope.cancel("the case is over")
    if place.faults:
        raise AssertionError("clients were shown what is not so:\n" + "\n".join(place.faults))


def at_a_gateway(
    scene: Callable[[Stage, Place], Awaitable[T]], *, event_log_bytes: int = 64 * 1024 * 1024, **options: Any
) -> T:
    """Play a scene with a gateway, judged on the host's side and on the clients'. The options are `open_place`'s."""

    async def whole(stage: Stage) -> T:
        async with open_place(stage.runtime, **options) as place:
            return await scene(stage, place)

    return perform(whole, event_log_bytes=event_log_bytes)
