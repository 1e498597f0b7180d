"""Following: every event once and in order, whatever comes of the connection, the server and the reader."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors.client import (
    Attached,
    Disconnected,
    Follower,
    Gone,
    Item,
    Position,
    Reattached,
    Received,
    ReplyLost,
    WireRefused,
)
from actors.gateway import Principal
from protocol.errors import SpecError
from protocol.events import ContentDelta
from tests.actors.client._agents import talker
from tests.actors.client._cable import cable_to, client_of
from tests.actors.client._fake import FakeConnection, attached, cable_to_fake, text
from tests.actors.gateway.wired import open_hall

ADA = Principal("ada")
Clock = trio.testing.MockClock


async def take(events: Follower, count: int) -> list[Item]:
    """The next items."""
    items: list[Item] = []
    with trio.fail_after(3600):
        while len(items) < count:
            items.append(await anext(events))
    return items


def said(items: list[Item]) -> list[tuple[int, int, str] | str]:
    """Numbers and text of deltas; the names of other items."""
    return [
        (item.number, item.last, item.event.text)
        if isinstance(item, Received) and isinstance(item.event, ContentDelta)
        else type(item).__name__
        for item in items
    ]


def sinces(connection: FakeConnection) -> list[Any]:
    """From where it was attached, time after time."""
    return [command["params"]["from"] for command in connection.commands if command["method"] == "agent.attach"]


# Against the real server.


async def test_from_the_head_a_snapshot_comes_first(autojump_clock: Clock) -> None:
    """The state as it is, then what happens from now on."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker(rounds=1))
        async with agent.run("before") as run:
            await run.result()
        async with client_of(cable_to(hall), token=hall.token_of(ADA)) as client, client.follow(agent.id) as events:
            (first,) = await take(events, 1)
            assert type(first) is Attached
            assert first.reply.snapshot is not None
            started = await client.start(agent.id, "and now")
            (second,) = await take(events, 1)
        head = started.seq

    assert isinstance(second, Received)
    assert (head, head + 1, "run_started") == (first.reply.head, second.number, second.event.type)
    assert "idle" == first.reply.snapshot.state


async def test_from_a_position_it_goes_on_behind_it(autojump_clock: Clock) -> None:
    """What one client had got is where the next one goes on: an item's own position."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker(rounds=1))
        async with agent.run("go") as run:
            await run.result()
        async with client_of(cable_to(hall), token=hall.token_of(ADA)) as client:
            async with client.follow(agent.id, since="start") as events:
                items = await take(events, 5)
            last = items[-1]
            assert isinstance(last, Received)
            async with client.follow(agent.id, since=last.position) as events:
                (further,) = await take(events, 1)

    assert isinstance(further, Received)
    assert 6 == further.number


async def test_from_a_position_of_another_epoch_all_begins_anew(autojump_clock: Clock) -> None:
    """The reader is told that what it knew does not go on."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker())
        async with (
            client_of(cable_to(hall), token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since=Position(epoch="another", seq=3)) as events,
        ):
            (first,) = await take(events, 1)
            statistics = events.statistics()

    assert type(first) is Reattached
    assert 1 == statistics.reattached


async def test_all_are_followed_and_those_that_come_later(autojump_clock: Clock) -> None:
    """Of those that are there a snapshot, of those that are spawned later every event."""
    async with open_hall() as hall:
        old = await hall.spawn(talker())
        async with client_of(cable_to(hall), token=hall.token_of(ADA)) as client, client.follow() as events:
            (first,) = await take(events, 1)
            new = await hall.spawn(talker())
            (second,) = await take(events, 1)

    assert (old.id, Attached) == (first.agent, type(first))
    assert isinstance(second, Received)
    assert (new.id, 1, "agent_spawned") == (second.agent, second.number, second.event.type)


async def test_of_all_nothing_is_lost_over_a_broken_connection(autojump_clock: Clock) -> None:
    """Who did not move is not asked for; of who moved, what is missing; of who came, all; who went is told."""
    async with open_hall() as hall:
        idle, moves, goes = [await hall.spawn(talker(rounds=1)) for _ in range(3)]
        cable = cable_to(hall)
        async with client_of(cable, token=hall.token_of(ADA)) as client, client.follow(since="start") as events:
            await take(events, 3)
            cable.unplugged = True
            await cable.cut()
            async with moves.run("go") as run:
                await run.result()
            goes.stop()
            await goes.stopped.wait()
            comes = await hall.spawn(talker())
            cable.unplugged = False
            end = moves.stream.end
            began = trio.current_time()
            items = await take(events, end - 1 + 1 + 1)
            took = trio.current_time() - began
            attaches = events.statistics().attaches
            await idle.start("still there?")
            (last,) = await take(events, 1)
    seen = {agent.id: [item.number for item in items if isinstance(item, Received) and item.agent == agent.id]
            for agent in (idle, moves, goes, comes)}  # fmt: skip

    assert {idle.id: [], moves.id: list(range(2, end + 1)), goes.id: [], comes.id: [1]} == seen
    assert [Gone(goes.id)] == [item for item in items if not isinstance(item, Received)]
    assert 4 == attaches
    assert took < 5
    assert isinstance(last, Received)
    assert (idle.id, 2) == (last.agent, last.number)


async def test_it_ends_when_the_agent_has_stopped(autojump_clock: Clock) -> None:
    """Its last event is given, then the iteration is over."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker())
        async with (
            client_of(cable_to(hall), token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since="start") as events,
        ):
            await client.stop(agent.id)
            kinds = [item.event.type async for item in events if isinstance(item, Received)]

    assert ["agent_spawned", "agent_stopped"] == kinds


async def test_an_agent_that_stopped_meanwhile_is_gone(autojump_clock: Clock) -> None:
    """Its last events cannot be had any more: that is said, and the iteration is over."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker())
        cable = cable_to(hall)
        async with (
            client_of(cable, token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since="start") as events,
        ):
            await take(events, 1)
            await cable.cut()
            agent.stop()
            await agent.stopped.wait()
            items = [item async for item in events]

    assert [Gone(agent.id)] == items


async def test_an_agent_that_is_not_there_is_told(autojump_clock: Clock) -> None:
    """Before the block begins."""
    async with open_hall() as hall, client_of(cable_to(hall), token=hall.token_of(ADA)) as client:
        with pytest.raises(WireRefused, match="not_found"):
            async with client.follow("agent-0-0"):
                pass
        assert 0 == client.statistics().followers


async def test_an_agent_is_followed_once(autojump_clock: Clock) -> None:
    """The second time is refused, until the first has been left; so is a position of all."""
    async with open_hall() as hall:
        one, other = [await hall.spawn(talker()) for _ in range(2)]
        async with client_of(cable_to(hall), token=hall.token_of(ADA)) as client:
            async with client.follow(one.id), client.follow(other.id):
                for agent in (one.id, "*"):
                    with pytest.raises(SpecError, match="follow an agent once"):
                        async with client.follow(agent):
                            pass
            async with client.follow():
                with pytest.raises(SpecError, match="follow an agent once"):
                    async with client.follow(one.id):
                        pass
            with pytest.raises(SpecError, match="a position is of one agent"):
                async with client.follow(since=Position(epoch="e", seq=1)):
                    pass


async def test_what_is_not_wanted_does_not_come(autojump_clock: Clock) -> None:
    """Without deltas, of two types: they come, and the ends; what was left out is counted, and is no gap."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker(rounds=1))
        async with (
            client_of(cable_to(hall), token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since="start", deltas=False, types=["step_started"]) as events,
        ):
            async with agent.run("go") as run:
                await run.result()
            items = await take(events, 3)
            await trio.sleep(5)
            statistics, end = events.statistics(), agent.stream.end
    kinds = [item.event.type for item in items if isinstance(item, Received)]

    assert ["step_started", "step_started", "run_finished"] == kinds
    assert (end - 3, 0) == (statistics.skipped, statistics.gaps)


async def test_a_slow_reader_loses_nothing_and_holds_up_nobody(autojump_clock: Clock) -> None:
    """Its queue is bounded; what does not fit is fetched from the log when it has read on. Commands go on meanwhile."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker(rounds=6, max_tool_iterations=9))
        async with (
            client_of(cable_to(hall), token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since="start", max_queued=5) as events,
        ):
            await client.start(agent.id, "go")
            await trio.sleep(60)
            await client.ping()
            queued = events.statistics().queued
            end = agent.stream.end
            items = await take(events, end)
            statistics = events.statistics()

    assert list(range(1, end + 1)) == [item.number for item in items if isinstance(item, Received)]
    assert queued < 25
    assert statistics.overflows >= 1
    assert (0, 0, 0) == (statistics.gaps, statistics.reattached, statistics.queued)


async def test_what_the_log_has_dropped_is_told(autojump_clock: Clock) -> None:
    """Where the server no longer holds what is missing, all begins anew from a snapshot."""
    async with open_hall(event_log_bytes=2_000) as hall:
        agent = await hall.spawn(talker(rounds=9, max_tool_iterations=20))
        cable = cable_to(hall)
        async with (
            client_of(cable, token=hall.token_of(ADA)) as client,
            client.follow(agent.id, since="start") as events,
        ):
            await take(events, 1)
            cable.unplugged = True
            await cable.cut()
            async with agent.run("go") as run:
                await run.result()
            cable.unplugged = False
            end = agent.stream.end
            (item,) = await take(events, 1)

    assert type(item) is Reattached
    assert item.reply.snapshot is not None
    assert end == item.reply.head


# Against a server that does what the real one does not.


async def test_an_overlap_is_dropped_and_a_merge_counts_for_what_it_stands_for(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    """By their numbers, and nothing else."""

    async def repeat(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1), text(2))
        await connection.events(1, text(1), text(2), text(3, n=3))
        await connection.events(3, text(3, n=3), text(6))
        await connection.wait()

    async with client_of(cable_to_fake(nursery, repeat)[0]) as client, client.follow("a", since="start") as events:
        items = await take(events, 4)
        statistics = events.statistics()

    assert [(1, 1, "<1>"), (2, 2, "<2>"), (3, 5, "<3><3><3>"), (6, 6, "<6>")] == said(items)
    assert (4, 5, 0) == (statistics.events, statistics.duplicates, statistics.gaps)


@pytest.mark.parametrize("epoch", ["e1", "e2"])
async def test_a_gap_is_asked_for_from_the_last_number(
    autojump_clock: Clock, nursery: trio.Nursery, epoch: str
) -> None:
    """Or if the epoch is another one: the server says whether it can be had. Till then nothing is taken."""

    async def skip(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1))
        for _ in range(3):  # it is asked for once, however often it is missed before the reply
            await connection.events(3 if epoch == "e1" else 2, text(3), epoch=epoch)
        attach = await connection.command("agent.attach")
        await connection.events(2, text(2))  # of the earlier attach: it comes before the reply
        await connection.reply(attach, attached(head=3))
        await connection.events(2, text(2), text(3))
        await connection.wait()

    cable, server = cable_to_fake(nursery, skip)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 3)
        gaps = events.statistics().gaps

    assert [(1, 1, "<1>"), (2, 2, "<2>"), (3, 3, "<3>")] == said(items)
    assert (1, ["start", {"epoch": "e1", "seq": 1}]) == (gaps, sinces(server.connections[0]))


async def test_a_merge_that_spans_the_place_is_not_taken(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """Half of its text would come twice: it is asked for anew from there."""

    async def span(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1), text(2))
        await connection.events(2, text(2, n=2))
        await connection.reply(await connection.command("agent.attach"), attached(head=3))
        await connection.events(3, text(3))
        await connection.wait()

    cable, server = cable_to_fake(nursery, span)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 3)

    assert [(1, 1, "<1>"), (2, 2, "<2>"), (3, 3, "<3>")] == said(items)
    assert {"epoch": "e1", "seq": 2} == sinces(server.connections[0])[1]


async def test_what_is_lost_without_a_word_is_missed(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """A heartbeat says how far the agent is: what has not come by the next one is asked for."""

    async def lose(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1))
        await connection.heartbeat(a=2)
        await connection.heartbeat()
        await connection.reply(await connection.command("agent.attach"), attached(head=2))
        await connection.events(2, text(2))
        await connection.heartbeat(a=3)
        await connection.events(3, text(3))
        await connection.heartbeat()
        await connection.wait()

    cable, server = cable_to_fake(nursery, lose)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 3)
        await trio.sleep(1)

    assert [(1, 1, "<1>"), (2, 2, "<2>"), (3, 3, "<3>")] == said(items)
    assert 2 == len(sinces(server.connections[0]))


async def test_a_server_that_never_closes_a_gap_is_left(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """Rather than asked for ever: the connection is dropped, and the next one is tried after a wait."""

    async def gape(connection: FakeConnection) -> None:
        await connection.welcome()
        while True:
            await connection.reply(await connection.command("agent.attach"), attached())
            await connection.events(5, text(5))

    cable, server = cable_to_fake(nursery, gape)
    async with client_of(cable) as client, client.follow("a", since="start"):
        await trio.sleep(20)

    assert 3 == len(server.connections[0].commands)
    assert [0, 0.5, 1.5, 3.5, 7.5, 15.5] == pytest.approx([at - cable.tried_at[0] for at in cable.tried_at])


async def test_a_server_that_closes_its_gaps_is_kept(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """However many there are: each brought what was missing."""

    async def stutter(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        for number in range(1, 9):
            await connection.events(number + 1, text(number + 1))
            await connection.reply(await connection.command("agent.attach"), attached())
            await connection.events(number, text(number))
        await connection.wait()

    cable, server = cable_to_fake(nursery, stutter)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 8)

    assert [(number, number, f"<{number}>") for number in range(1, 9)] == said(items)
    assert 1 == len(server.connections)


async def test_an_attach_belongs_to_its_connection(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """One that had no reply when the connection broke is not given again: the next connection has its own."""

    async def break_off(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.command("agent.attach")

    async def well(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached(head=1))
        await connection.events(1, text(1))
        await connection.wait()

    cable, server = cable_to_fake(nursery, break_off, well)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 1)
        await trio.sleep(1)
        resent = client.statistics().resent

    assert ([(1, 1, "<1>")], 0, 1) == (said(items), resent, len(sinces(server.connections[1])))


async def test_events_that_are_not_known_are_passed_over(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """Of a later version, or with a word that is not known: they are counted, and their numbers too."""

    async def news(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        unknown = [{"type": "agent_dreamt", "of": "sheep"}, {"type": "agent_slept", "n": 3}]
        changed = {"type": "tool_finished", "run": "r", "call": "c", "name": "t", "status": "unheard", "text": ""}
        await connection.events(1, *unknown, changed, {**text(6), "more": [1]})
        await connection.wait()

    async with client_of(cable_to_fake(nursery, news)[0]) as client, client.follow("a", since="start") as events:
        items = await take(events, 1)
        unknown = events.statistics().unknown

    assert ([(6, 6, "<6>")], 3) == (said(items), unknown)


@pytest.mark.parametrize("event", [17, {"no": "type"}, {"type": "skipped", "n": 0}, {**text(1), "n": -1}])
async def test_what_is_no_event_ends_the_connection(autojump_clock: Clock, nursery: trio.Nursery, event: Any) -> None:
    """No number can be given to it: the rest is asked for on the next connection."""

    async def babble(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, event)
        await connection.wait()

    async def well(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached(head=1))
        await connection.events(1, text(1))
        await connection.wait()

    async with (
        client_of(cable_to_fake(nursery, babble, well)[0]) as client,
        client.follow("a", since="start") as events,
    ):
        items = await take(events, 1)

    assert [(1, 1, "<1>")] == said(items)


async def test_a_restarted_server_is_begun_with_anew(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """Another epoch: a snapshot, and what follows it. Nothing of before comes again."""

    async def before(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1), text(2))
        await connection.close(1012)

    async def after(connection: FakeConnection) -> None:
        await connection.welcome()
        attach = await connection.command("agent.attach")
        await connection.reply(attach, attached(epoch="e2", head=7, recovered=False, snapshot=True))
        await connection.events(8, text(8), epoch="e2")
        await connection.wait()

    cable, server = cable_to_fake(nursery, before, after)
    async with client_of(cable) as client, client.follow("a", since="start") as events:
        items = await take(events, 4)

    assert [(1, 1, "<1>"), (2, 2, "<2>"), "Reattached", (8, 8, "<8>")] == said(items)
    assert [{"epoch": "e1", "seq": 2}] == sinces(server.connections[1])


async def test_a_follower_is_told_that_the_client_is_out(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """What had come is given first."""

    async def throw_out(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await connection.events(1, text(1))
        await connection.close(4501)

    async with client_of(cable_to_fake(nursery, throw_out)[0]) as client, client.follow("a", since="start") as events:
        await trio.sleep(1)
        items = await take(events, 1)
        with pytest.raises(Disconnected, match="4501"):
            await anext(events)

    assert [(1, 1, "<1>")] == said(items)


async def test_an_attach_without_a_reply_has_a_deadline(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """As any command has."""

    async def stay(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.wait()

    async with client_of(cable_to_fake(nursery, stay)[0]) as client:
        with pytest.raises(ReplyLost, match=r"agent.attach was not answered within 30 s"):
            async with client.follow("a"):
                pass


async def test_leaving_detaches_and_a_cancelled_wait_loses_nothing(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    """An iteration may be cancelled and gone on with."""

    async def slow(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("agent.attach"), attached())
        await trio.sleep(2)
        await connection.events(1, text(1))
        await connection.wait()

    cable, server = cable_to_fake(nursery, slow)
    async with client_of(cable) as client:
        async with client.follow("a", since="start") as events:
            with trio.move_on_after(1) as scope:
                await anext(events)
            items = await take(events, 1)
        await trio.sleep(1)

    assert scope.cancelled_caught
    assert [(1, 1, "<1>")] == said(items)
    assert {"agent": "a"} == server.connections[0].commands[-1]["params"]
    assert "agent.detach" == server.connections[0].commands[-1]["method"]
