"""What must hold of the cases about clients that vanish, or do not read."""

from __future__ import annotations

import functools
import logging
from typing import Any

import attrs
import pytest
import trio

from actors.gateway import Pace
from protocol.events import RunFinished
from protocol.wire.commands import Ping
from protocol.wire.replies import Nothing
from tests.support.play import Stage
from tests.support.specs import agent

from .claims import claim
from .claims_gateway_approval import place_of
from .claims_host import task_names
from .claims_wire_stream import only
from .gateway.person import Person
from .gateway.place import Place, at_a_gateway
from .gateway.scenes import errors_logged, talker
from .program import CASES, GATEWAY_CALL_SECONDS


@attrs.frozen
class Vanished:
    """TRI-04: three clients went in three ways, in the middle of a stream."""

    logs: dict[str, list[int]]
    """The numbers of each agent's log."""
    terminal: list[str]
    seen: list[dict[str, list[int]]]
    """What those saw who came later, each all of it together with what was seen before."""
    errors: list[logging.LogRecord]
    connections: list[str]
    """Who was connected long after."""


@functools.cache
def vanish() -> Vanished:
    async def scene(stage: Stage, place: Place) -> Vanished:
        agents = [await stage.spawn(talker()) for _ in range(2)]
        people = [place.person(name) for name in ("1", "2", "3")]
        for person in people:
            await person.come()
        for one in agents:
            await people[0].start(one.id, "go", idem="m1")
        await people[0].until(lambda: True if len(people[0].received) > 12 else None)
        await people[0].reset()
        await people[1].break_off()
        people[2].stop_reading()
        assert people[2].line is not None
        people[2].line.room = 100
        await trio.sleep(100)  # what does not read is found out in time
        assert [None, None] == [one.current for one in agents]

        whole, resumed = place.person("new"), place.person("resumed")
        await whole.come()
        for one in agents:
            behind = [item.position for item in people[0].received if item.agent == one.id][-1]
            await resumed.come(one.id, behind)
            await trio.sleep(1)
            await resumed.leave()
        await trio.sleep(1)
        connected = [connection.session.principal.name for connection in place.gateway.connections.values()]
        logs = {one.id: list(range(1, one.stream.end + 1)) for one in agents}
        seen = [numbers_of([whole], logs), numbers_of([people[0], resumed], logs)]
        terminal = [place.books[one.id].events[-1][1].type for one in agents]
        return Vanished(logs, terminal, seen, errors, connected)

    with errors_logged() as errors:
        return at_a_gateway(scene)


def numbers_of(people: list[Person], agents: Any) -> dict[str, list[int]]:
    """The numbers that these people saw of each agent."""
    return {id: [item.number for person in people for item in person.received if item.agent == id] for id in agents}


@claim("TRI-04", "both runs reach their terminal events")
def the_runs_go_on() -> None:
    assert ["run_finished", "run_finished"] == vanish().terminal


@claim("TRI-04", "a new client can connect, resume and see all events")
def whoever_comes_later_sees_all() -> None:
    came = vanish()

    assert [came.logs, came.logs] == came.seen


@claim("TRI-04", "no ConnectionClosed/BrokenResourceError/ClosedResourceError leaves the connection's own task")
def what_breaks_stays_in_its_connection() -> None:
    """Anything that got out would have ended the scene."""
    came = vanish()

    assert [] == [record.getMessage() for record in came.errors]
    assert ["client-new"] == came.connections


@claim("GTW-01", "B has received all events within 1 virtual second of the run's end")
def one_who_reads_is_not_held_up() -> None:
    place = place_of(only("GTW-01"))
    (book,) = place.books.values()
    a, b = place.people["A"], place.people["B"]
    (end,) = [event for _, event in book.events if isinstance(event, RunFinished)]

    assert b.time_of(b.only(RunFinished)) - book.time_of(end) <= 1
    assert list(range(1, len(book.events) + 1)) == b.numbers
    assert len(book.events) > 2000
    assert len(a.numbers) < 100


@claim("GTW-01", "the run is not slowed down by A")
def a_run_waits_for_no_client() -> None:
    slow, fast = only("GTW-01"), only("GTW-01", ("actions", []))

    assert 2000 * GATEWAY_CALL_SECONDS == pytest.approx(fast.last.seconds)
    assert fast.last.seconds == pytest.approx(slow.last.seconds)


@attrs.frozen
class Stuck:
    """GTW-03: a connection whose client reads nothing."""

    answered_after: float
    """A ping on the other connection."""
    closed_after: float
    """The stuck one, from the first send that did not end."""
    tasks: list[int]
    """Of the stuck connection: while it is stuck, and when it is closed."""
    connected: list[str]


@functools.cache
def stuck() -> Stuck:
    told = CASES["GTW-03"]["input"]["config"]["send_timeout_s"]

    async def scene(stage: Stage, place: Place) -> Stuck:
        one = await stage.spawn(agent(["a long answer " * 1000]))
        first, second = place.person("A/1"), place.person("A/2")
        await first.come()
        first.stop_reading()
        (id,) = place.gateway.connections
        await second.come()
        await second.start(one.id, "go", idem="m1")
        began = trio.current_time()
        await trio.sleep(1)
        asked = trio.current_time()
        assert Nothing() == await second.ask("ping", Ping(), Nothing)
        answered = trio.current_time()
        alive = [len([name for name in task_names() if id in name])]
        while id in place.gateway.connections:  # noqa: ASYNC110  nobody tells of it
            await trio.sleep(0.1)
        closed = trio.current_time()
        await trio.sleep(0.1)
        alive.append(len([name for name in task_names() if id in name]))
        crowd = place.gateway.front.crowd if place.gateway.front is not None else None
        assert crowd is not None
        return Stuck(answered - asked, closed - began, alive, list(crowd.by_principal.elements()))

    return at_a_gateway(scene, pace=Pace(send_seconds=told, heartbeat_seconds=10_000))


@claim("GTW-03", "after 30 virtual seconds the stuck connection is closed and its tasks end")
def a_send_that_does_not_end_ends_its_connection() -> None:
    came = stuck()

    assert 30 <= came.closed_after <= 31.5
    assert came.tasks[0] > 0 == came.tasks[1]
    assert ["client-A"] == came.connected


@claim("GTW-03", "the second connection answers at once")
def another_connection_is_not_held_up() -> None:
    assert stuck().answered_after <= 0.05
