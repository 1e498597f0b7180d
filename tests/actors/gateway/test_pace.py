"""The pace: how fast commands may come, what is sent together, and what becomes of a client that does not keep up."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors.agent import Agent
from actors.gateway import Pace
from actors.gateway._pace import CommandRate, Window
from actors.gateway._session import Leave
from protocol.events import ContentDelta, StepFinished, ToolFinished
from protocol.usage import NO_USAGE
from protocol.wire import CloseCode, WireLimits

from .cast import talker
from .wired import Client, Hall, last_number, numbers_are_whole, open_hall

Clock = trio.testing.MockClock
WINDOW = 0.015


class TestCommands:
    async def test_too_fast(self, autojump_clock: Clock) -> None:
        """Forty at once, then twenty in a second; above it, each is told when to come again."""
        async with open_hall() as hall:
            client = await hall.connect(queue=1000)
            for number in range(50):
                await client.send("ping", id=f"p{number}")
            await client.read_until(lambda: len(client.replies) == 50)
            answers = list(client.replies.values())
            waits = {message["error"]["data"]["retry_after_ms"] for message in answers if "error" in message}
            refused = [message["error"]["data"] for message in answers if "error" in message]
            client.replies.clear()
            await trio.sleep(1)
            for number in range(30):
                await client.send("ping", id=f"q{number}")
            await client.read_until(lambda: len(client.replies) == 30)
            second = [message for message in client.replies.values() if "error" in message]

        assert 11 == len(refused)  # hello was one
        assert {("overloaded", True)} == {(data["code"], data["retryable"]) for data in refused}
        assert {50} == waits
        assert 10 == pytest.approx(len(second), abs=1)

    async def test_what_is_no_command_counts(self, autojump_clock: Clock) -> None:
        """Nobody gets more by sending rubbish."""
        async with open_hall() as hall:
            client = await hall.connect(queue=1000)
            for _ in range(50):
                await client.socket.send_message("{")
            await client.read_for(1)
            codes = [message["error"]["code"] for message in client.order[1:]]

        assert ([-32700] * 39, [-32010] * 11) == (codes[:39], codes[39:])

    async def test_who_does_not_heed_it(self, autojump_clock: Clock) -> None:
        """A hundred refusals in ten seconds end the connection."""
        async with open_hall() as hall:
            client, other = await hall.connect(queue=1000), await hall.connect()
            for number in range(139):
                await client.send("ping", id=f"p{number}")
            closed = await client.closed()
            pong = await other.ask("ping")

        assert CloseCode.TOO_MANY == closed[0]
        assert {} == pong

    def test_who_is_merely_fast(self) -> None:
        """A hundred refusals in more than ten seconds are no more than that."""
        rate = CommandRate(WireLimits(commands_per_second=1, commands_burst=1))
        waits = [rate.wait_seconds(number * 0.102) for number in range(1000)]
        rate = CommandRate(WireLimits(commands_per_second=1, commands_burst=1))

        assert 900 == pytest.approx(len([wait for wait in waits if wait]), abs=10)
        with pytest.raises(Leave):
            for number in range(1000):
                rate.wait_seconds(number * 0.08)


class Passes(trio.abc.Instrument):
    """Counts how often the scheduler has gone round."""

    count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += 1


class TestWindow:
    async def test_what_comes_together_is_sent_together(self, autojump_clock: Clock) -> None:
        """One frame in a window, whatever it holds; the first word comes at once."""
        async with open_hall(pace=Pace(window_seconds=WINDOW)) as hall:
            agent = await hall.spawn(talker())
            client = await hall.connect(queue=1000)
            await client.ask("agent.attach", agent=agent.id)
            await client.read_for(1)
            before = len(client.frames)
            arrived: list[float] = []

            async def note_arrivals() -> None:
                while True:
                    await client.read()
                    arrived.append(trio.current_time())

            hall.nursery.start_soon(note_arrivals)
            began = trio.current_time()
            for number in range(300):
                agent.stream.append(delta(number))
                await trio.sleep(0.001)
            await trio.sleep(1)
            frames = len(client.frames) - before

        assert 300 == len(client.events(agent.id))
        assert frames == pytest.approx(0.3 / WINDOW, rel=0.15)
        assert arrived[0] - began < 0.001

    async def test_writers_go_on_in_groups(self, autojump_clock: Clock) -> None:
        """All in one window, and between two groups of them everybody else has a turn."""
        window, passes = Window(WINDOW), Passes()
        woken: list[tuple[float, int]] = []

        async def wait(*, first: bool) -> None:
            await (window.turn() if first else window.wait())
            woken.append((round(trio.current_time(), 6), passes.count))

        trio.lowlevel.add_instrument(passes)
        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(functools.partial(wait, first=number % 2 == 0))
        trio.lowlevel.remove_instrument(passes)
        sizes = Counter(woken)

        assert {0.0, WINDOW} == {at for at, _ in woken}
        assert max(sizes.values()) <= 51  # a group, and the one that woke it
        assert 4 == len(sizes)

    async def test_many_agents_make_one_frame(self, autojump_clock: Clock) -> None:
        """An array of messages, each of one agent."""
        async with open_hall() as hall:
            agents = [await hall.spawn(talker()) for _ in range(20)]
            client = await hall.connect()
            await client.ask("agent.attach", agent="*")
            await client.read_for(1)
            before = len(client.frames)
            for agent in agents:
                agent.stream.append(delta(1))
            await client.read_for(1)

        assert 1 == len(client.frames) - before
        assert {agent.id for agent in agents} == {one["params"]["agent"] for one in json.loads(client.frames[-1])}

    async def test_no_frame_is_too_long(self, autojump_clock: Clock) -> None:
        """However much there is: replies, events, and long ones among them."""
        async with open_hall(limits=WireLimits(frame_bytes=8192, queue_bytes=10**7)) as hall:
            agents = [await hall.spawn(talker()) for _ in range(3)]
            client = await hall.connect(queue=1000)
            await client.ask("agent.attach", agent="*")
            for number in range(200):
                for agent in agents:
                    agent.stream.append(delta(number, text="x" * (number * 60 % 9000)))
            for number in range(30):
                await client.send("agent.list", id=f"l{number}")
            await client.read_for(10)

        assert max(map(len, client.frames)) <= 8192
        assert [200] * 3 == [len(client.events(agent.id)) for agent in agents]
        assert all(numbers_are_whole(client.events(agent.id), 1) for agent in agents)
        assert 30 == len(client.replies)


def delta(number: int, *, message: str = "m", text: str | None = None) -> ContentDelta:
    return ContentDelta(run="r", message=message, text=f"<{number}>" if text is None else text)


def fill(agent: Agent, size: int, make: Callable[[int], Any] = delta) -> int:
    """Append events until they take so many bytes; returns how many."""
    before, count = agent.stream.visible_bytes, 0
    while agent.stream.visible_bytes - before < size:
        agent.stream.append(make(count))
        count += 1
    return count


async def slow_client(hall: Hall, agent: Agent) -> Client:
    """One that has attached and then reads no more: what is sent to it is stuck."""
    client = await hall.connect(streams=trio.testing.lockstep_stream_pair)
    await client.ask("agent.attach", agent=agent.id)
    for number in range(6):  # what the library takes without being asked
        agent.stream.append(delta(-1 - number, message="first"))
        await trio.sleep(0.05)
    return client


class TestSlowClients:
    async def test_below_half(self, autojump_clock: Clock) -> None:
        """Everything comes as it is."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await slow_client(hall, agent)
            count = fill(agent, 500_000)
            await client.read_for(5)

        assert count + 6 == len(client.events(agent.id))
        assert numbers_are_whole(client.events(agent.id), 1)

    async def test_at_half(self, autojump_clock: Clock) -> None:
        """Deltas of one message come as one, with all their text; nothing is lost, and what is no delta stays as it is."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await slow_client(hall, agent)
            count = fill(agent, 300_000)
            agent.stream.append(ToolFinished(run="r", call="c", name="t", status="ok", started=True, text="x"))
            count2 = fill(agent, 300_000)
            end = agent.stream.end
            await client.read_for(5)
            events = client.events(agent.id)
            text = "".join(event["text"] for _, event in events if event.get("message") == "m")

        assert "".join(f"<{n}>" for n in [*range(count), *range(count2)]) == text
        assert numbers_are_whole(events, 1)
        assert end == last_number(events)
        assert 1 == client.types(agent.id).count("tool_finished")
        assert len(events) < (count + count2) // 2

    async def test_at_three_quarters(self, autojump_clock: Clock) -> None:
        """Deltas of finished messages go, and their numbers are told; those of the present one stay, and all else."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await slow_client(hall, agent)
            fill(agent, 850_000)
            agent.stream.append(StepFinished(run="r", step=1, finish_reason="stop", usage=NO_USAGE))
            agent.stream.append(delta(7, message="second"))
            end = agent.stream.end
            await client.read_for(5)
            events = client.events(agent.id)

        assert numbers_are_whole(events, 1)
        assert end == last_number(events)
        assert "skipped" in client.types(agent.id)
        assert ["step_finished", "content_delta"] == client.types(agent.id)[-2:]
        assert "second" == events[-1][1]["message"]

    async def test_full(self, autojump_clock: Clock) -> None:
        """The connection is dropped within a second, and the client attaches again from its last number."""
        async with open_hall(event_log_bytes=2_000_000) as hall:
            agent = await hall.spawn(talker())
            client = await slow_client(hall, agent)
            fill(agent, 1_100_000)
            closed = await client.closed()
            at = trio.current_time()
            seq = last_number(client.events(agent.id), 1)
            again = await hall.connect()
            position = {"epoch": agent.stream.epoch, "seq": seq}
            reply = await again.ask("agent.attach", agent=agent.id, from_=position)
            await again.read_for(5)

            assert CloseCode.SLOW == closed[0]
            assert at < 2
            assert reply["recovered"]
            assert numbers_are_whole(again.events(agent.id), seq)
            assert agent.stream.end == last_number(again.events(agent.id))

    @pytest.mark.parametrize("log_bytes", [10_000, 256 * 1024, 10_000_000])
    async def test_full_while_a_send_is_stuck(self, log_bytes: int, autojump_clock: Clock) -> None:
        """TCP is dropped within a second of what is too much, and does not wait for the send; the log is held no longer."""
        async with open_hall(event_log_bytes=log_bytes) as hall:
            agent = await hall.spawn(talker())
            await slow_client(hall, agent)
            fill(agent, 1_500_000)
            began = trio.current_time()
            while hall.gateway.connections:  # noqa: ASYNC110
                await trio.sleep(0.05)

            seconds = trio.current_time() - began
            fill(agent, 100_000)

            assert seconds < 1.5
            assert agent.stream.statistics().bytes <= log_bytes
            assert not agent.stream._followers

    async def test_many_agents_fill_one_queue(self, autojump_clock: Clock) -> None:
        """What waits for a client is bounded over all that it follows."""
        async with open_hall() as hall:
            agents = [await hall.spawn(talker()) for _ in range(8)]
            client = await hall.connect(streams=trio.testing.lockstep_stream_pair)
            await client.ask("agent.attach", agent="*")
            for number in range(6):
                agents[0].stream.append(delta(number))
                await trio.sleep(0.05)
            for agent in agents:
                fill(agent, 150_000)
            closed = await client.closed()

        assert CloseCode.SLOW == closed[0]

    async def test_replies_that_are_not_read(self, autojump_clock: Clock) -> None:
        """They are bounded, too."""
        async with open_hall(event_log_bytes=2_000_000) as hall:
            agent = await hall.spawn(talker())
            fill(agent, 500_000, lambda number: delta(number, text="x" * 300))
            client = await hall.connect(streams=trio.testing.lockstep_stream_pair)
            params = {"agent": agent.id, "from": {"epoch": agent.stream.epoch, "seq": 0}}
            session = next(iter(hall.gateway.connections.values())).session
            waits = 0
            for _ in range(10):
                await client.send("agent.fetch", params)
                waits = max(waits, session._bytes)
            closed = await client.closed()

        assert 1_000_000 <= waits <= 1_400_000
        assert CloseCode.SLOW == closed[0]

    async def test_others_are_not_held_up(self, autojump_clock: Clock) -> None:
        """A client that stands still costs the others nothing: neither their events nor their time."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            stuck = [await slow_client(hall, agent) for _ in range(5)]
            other = await hall.connect(queue=1000)
            await other.ask("agent.attach", agent=agent.id, from_="start")
            delays = []
            for number in range(100):
                agent.stream.append(delta(number))
                began = trio.current_time()
                end = agent.stream.end
                await other.read_until(lambda end=end: last_number(other.events(agent.id)) >= end)  # type: ignore[misc]
                delays.append(trio.current_time() - began)
                await trio.sleep(0.02)

        assert 5 == len(stuck)
        assert max(delays) <= 0.02

    async def test_a_long_past_is_sent_in_peace(self, autojump_clock: Clock) -> None:
        """More than a queue holds, to one who asks for it: page by page, as it is, and nobody is sent away for it."""
        async with open_hall(event_log_bytes=4_000_000) as hall:
            agent = await hall.spawn(talker())
            count = fill(agent, 3_000_000)
            client = await hall.connect(queue=1000)
            await client.ask("agent.attach", agent=agent.id, from_="start")
            await client.read_for(5)

        assert count + 1 == len(client.events(agent.id))
        assert max(map(len, client.frames)) <= 70_000
