"""What must hold of the cases about clients that come back with a position."""

from __future__ import annotations

import functools
import re
from typing import Any

import attrs
import trio

from actors.client import Position, Reattached
from protocol.wire.commands import AgentAttach
from protocol.wire.replies import Attached
from tests.support.play import Stage

from .claims import claim
from .gateway.place import Place, at_a_gateway
from .gateway.scenes import talker, warn
from .program import CASES


@attrs.frozen
class Resumed:
    """GTW-04: what three positions that cannot be served were answered with."""

    gone: Attached
    """Case 1: the reply to the attach."""
    items: list[tuple[str, int]]
    """What a client was given then: its class, and a number."""
    beyond: Attached
    """Case 2."""
    old_agent: str
    """Case 3: the code with which the agent of before is refused."""
    other_epoch: Attached
    """And the reply of the one that is there now."""


@functools.cache
def resume() -> Resumed:
    room = CASES["GTW-04"]["input"]["config"]["replay_buffer"] * 110
    positions: list[tuple[str, Position]] = []

    async def before(_stage: Stage, place: Place) -> tuple[Any, Any, Any]:
        one = await place.hall.runtime.spawn(talker())
        client = place.person("A")
        await client.come(one.id)
        await warn(one, 10)
        await client.drop()
        await warn(one, 510)
        behind = client.position
        assert 10 == behind.seq
        asking = place.person("B")
        await asking.come(since="head")
        gone = await asking.ask("agent.attach", AgentAttach(agent=one.id, from_=behind), Attached)
        await client.come(one.id, behind)
        await warn(one, 520)
        beyond = await asking.ask(
            "agent.attach", AgentAttach(agent=one.id, from_=Position(epoch=behind.epoch, seq=700)), Attached
        )
        positions.append((one.id, behind))
        return gone, [(type(item).__name__, getattr(item, "number", 0)) for _, item in client.visits[-1].items], beyond

    async def after(_stage: Stage, place: Place) -> tuple[Any, Any]:
        one = await place.hall.runtime.spawn(talker())
        await warn(one, 20)
        client = place.person("A")
        await client.come(since="head")
        id, position = positions[0]
        old = await client.ask("agent.attach", AgentAttach(agent=id, from_=position), Attached)
        new = await client.ask("agent.attach", AgentAttach(agent=one.id, from_=position), Attached)
        return old, new

    gone, items, beyond = at_a_gateway(before, event_log_bytes=room)
    old, new = at_a_gateway(after, event_log_bytes=room)
    return Resumed(gone, items, beyond, old.code, new)


@claim(
    "GTW-04",
    "case 1: the server says that 11..N are gone and sends a snapshot plus the tail; it never sends a tail as if"
    " complete",
)
def what_is_gone_is_told() -> None:
    came = resume()
    (first, _), *tail = came.items

    assert (False, 510) == (came.gone.recovered, came.gone.head)
    assert came.gone.oldest > 11
    assert came.gone.snapshot is not None
    assert Reattached.__name__ == first
    assert [("Received", number) for number in range(511, 521)] == tail


@claim(
    "GTW-04",
    "case 2 and 3: refused or answered with a full resync; an epoch/stream id in the cursor makes the mismatch visible",
)
def a_position_that_never_was_is_no_position() -> None:
    came = resume()

    assert (False, 520) == (came.beyond.recovered, came.beyond.head)
    assert came.beyond.snapshot is not None
    assert "not_found" == came.old_agent
    assert (False, 20) == (came.other_epoch.recovered, came.other_epoch.head)
    assert came.other_epoch.snapshot is not None
    assert came.other_epoch.epoch != came.beyond.epoch == came.gone.epoch


@claim(
    "GTW-05",
    "second connection starts at 51, third at 61; over all three connections every seq arrives exactly once, in order",
)
def a_client_goes_on_from_where_it_is() -> None:
    """Whether it comes anew with its position, or the client makes a connection that broke again by itself."""
    told = re.findall(r"cursor (\d+)", CASES["GTW-05"]["input"]["actions"])
    assert ["50", "60"] == told

    async def scene(by_itself: bool, _stage: Stage, place: Place) -> tuple[list[int], list[int], int, int]:
        one = await place.hall.runtime.spawn(talker())
        client = place.person("A")
        firsts: list[int] = []
        await client.come(one.id)
        for up_to in (50, 60, 70):
            before = len(client.numbers)
            await warn(one, up_to)
            firsts.append(client.numbers[before])
            if up_to == 70:
                assert 70 == client.numbers[-1]
            elif by_itself:
                await client.break_off()
                await trio.sleep(1)
                await client.come_back()
            else:
                await client.leave()
                await client.come(one.id, client.position)
        followers = [visit.follower for visit in client.visits if visit.follower is not None]
        duplicates = sum(follower.statistics().duplicates for follower in followers)
        return firsts, client.numbers, duplicates, len(client.cable.ends)

    for by_itself in (False, True):
        firsts, numbers, duplicates, connections = at_a_gateway(functools.partial(scene, by_itself))

        assert [1, 51, 61] == firsts
        assert list(range(1, 71)) == numbers
        assert (0, 3) == (duplicates, connections)
