"""A cable that is cut anywhere: nothing is lost, nothing comes twice, and what was decided is decided once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.client import Client, ClientStatistics, Follower, FollowStatistics, Received
from actors.gateway import Principal
from protocol.codec import encode_event
from protocol.events import ContinuationRequired, RunFinished
from tests.actors.client._agents import talker
from tests.actors.client._cable import Cable, cable_to, client_of
from tests.actors.gateway.wired import open_hall

pytestmark = pytest.mark.slow
ADA = Principal("ada")
ROUNDS = 3
ASKED = ROUNDS - 1


@attrs.define
class Seen:
    """What came of a run that was driven over a cable."""

    log: list[bytes]
    """The agent's own events."""
    kinds: list[str]
    items: list[Received]
    accepted: int
    """Decisions that the client was told are accepted."""
    client: ClientStatistics
    follower: FollowStatistics


async def drive(client: Client, events: Follower, agent: str) -> tuple[list[Received], int]:
    """Start a run, approve whatever is asked, and return all that came."""
    items: list[Received] = []
    accepted = 0
    await client.start(agent, "look around")
    async for item in events:
        assert isinstance(item, Received)
        items.append(item)
        if isinstance(item.event, ContinuationRequired):
            accepted += (await client.decide(item.event, "approve", grant=1)).status == "accepted"
        if isinstance(item.event, RunFinished):
            break
    return items, accepted


async def over(configure: Callable[[Cable], None]) -> Seen:
    """Drive one run over a cable with these faults."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker(rounds=ROUNDS))
        cable = cable_to(hall)
        configure(cable)
        async with client_of(cable, token=hall.token_of(ADA)) as client:
            with trio.fail_after(3600):
                async with client.follow(agent.id, since="start") as events:
                    items, accepted = await drive(client, events, agent.id)
                    follower = events.statistics()
            statistics = client.statistics()
        _, entries = agent.stream.read(0)
        return Seen(
            [data for _, data in entries],
            [event.type for event, _ in entries],
            items,
            accepted,
            statistics,
            follower,
        )


def run_over(configure: Callable[[Cable], None]) -> Seen:
    return trio.run(over, configure, clock=MockClock(autojump_threshold=0))


def check(seen: Seen) -> None:
    """What was promised."""
    numbers = [item.number for item in seen.items]

    assert list(range(1, len(seen.log) + 1)) == numbers
    assert list(map(json.loads, seen.log)) == [json.loads(encode_event(item.event)) for item in seen.items]
    assert (ASKED, ASKED, ASKED) == (
        seen.accepted,
        seen.kinds.count("continuation_required"),
        seen.kinds.count("continuation_resolved"),
    )
    assert 1 == seen.kinds.count("run_started")


def cuts(*, down: list[int | None] | None = None, up: list[int | None] | None = None, most: int = 65_536) -> Any:
    def configure(cable: Cable) -> None:
        cable.down, cable.up, cable.most = down or [], up or [], most

    return configure


def test_a_whole_cable_needs_one_connection() -> None:
    """Without a fault there is one connection, one attach, and no command twice."""
    seen = run_over(cuts())

    check(seen)
    assert (1, 0, 1) == (seen.client.connections, seen.client.resent, seen.follower.attaches)


def test_a_trickle_is_read_to_the_end() -> None:
    """Frames that come byte by byte are frames."""
    seen = run_over(cuts(most=1))

    check(seen)
    assert 1 == seen.client.connections


@settings(max_examples=60, deadline=None)
@given(
    down=st.lists(st.integers(190, 8_000), min_size=1, max_size=4),
    up=st.lists(st.one_of(st.none(), st.integers(320, 2_500)), max_size=4),
    most=st.sampled_from([7, 65_536]),
)
def test_a_run_is_seen_whole_over_a_cable_that_is_cut_anywhere(
    down: list[int], up: list[int | None], most: int
) -> None:
    """Wherever connections break, in either direction: the events are the log, and each decision took effect once."""
    check(run_over(cuts(down=[2_000, *down], up=[None, *up], most=most)))


def test_a_cable_that_is_cut_at_each_byte_that_comes_down() -> None:
    """Byte by byte through the first connection: the run is seen whole each time."""
    for count in range(1_000, 9_000, 37):
        check(run_over(cuts(down=[count])))


def test_a_cable_that_is_cut_at_each_byte_that_goes_up() -> None:
    """In the middle of each command: it is given again, and done once."""
    for count in range(500, 1_900, 7):
        check(run_over(cuts(up=[count])))
