"""Actors in a runtime: found by name, looked at, and ended one at a time."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from actors import Runtime, open_runtime
from actors.kit import ActorGone, ActorStatistics, Ask, AskCycle, HostedActor, Mailbox, MailboxStatistics, Restarts
from protocol.errors import AgentStopped, SpecError


@attrs.frozen(eq=False)
class Work(Ask[float]):
    """Work so long; the answer is the time at its end."""

    seconds: float = 0.0
    crash: bool = False


@attrs.frozen
class Note:
    """Something to keep."""

    text: str = ""


@attrs.define
class Worker:
    """Works on one thing after the other."""

    kept: list[str] = attrs.field(factory=list)
    ends: list[str] = attrs.field(factory=list)

    async def run(self, mailbox: Mailbox[Work | Note]) -> None:
        try:
            async for message in mailbox:
                if isinstance(message, Note):
                    self.kept.append(message.text)
                    continue
                await trio.sleep(message.seconds)
                if message.crash:
                    raise ValueError("broken")
                message.reply.set(trio.current_time())
            self.ends.append("in peace")
        except trio.Cancelled:
            self.ends.append("cancelled")
            raise


async def hosted(runtime: Runtime, worker: Worker, name: str = "worker") -> HostedActor[Work | Note]:
    await runtime.spawn_actor(worker, name=name, restarts=Restarts(backoff_seconds=4))
    return runtime.find(name)


async def test_an_actor_is_found_by_its_name() -> None:
    """As long as it lives: with its port, among all in the order in which they came."""
    async with open_runtime() as runtime:
        port = await runtime.spawn_actor(Worker(), name="worker")
        await runtime.spawn_actor(Worker())
        names = [actor.name for actor in runtime.actors]
        found = runtime.find("worker")
        same = found.port is port
        found.stop()
        await found.wait_ended()
        with pytest.raises(ActorGone, match="there is no actor 'worker'; there are: Worker"):
            runtime.find("worker")
        left = [actor.name for actor in runtime.actors]
    with pytest.raises(ActorGone, match="there are: none"):
        runtime.find("Worker")

    assert ["worker", "Worker"] == names
    assert same
    assert ["Worker"] == left
    assert "<HostedActor worker>" == repr(found)


async def test_a_name_is_given_once() -> None:
    """A name that is taken is refused, one that is free again is not; without a name each has one of its own."""
    async with open_runtime() as runtime:
        first = await hosted(runtime, Worker())
        with pytest.raises(SpecError, match="there is an actor 'worker' already"):
            await runtime.spawn_actor(Worker(), name="worker")
        unnamed = [(await runtime.spawn_actor(Worker())).name for _ in range(3)]
        first.stop(now=True)
        await first.wait_ended()
        again = await runtime.spawn_actor(Worker(), name="worker")
        answer = await again.ask(Work())

    assert ["Worker", "Worker-2", "Worker-3"] == unnamed
    assert 0.0 == answer


async def test_a_stop_at_a_boundary() -> None:
    """What is in hand and what waits is done; whoever comes later is told at once, and the end runs in peace."""
    worker = Worker()
    async with open_runtime() as runtime:
        one = await hosted(runtime, worker)
        answers: list[float] = []

        async def ask() -> None:
            answers.append(await one.port.ask(Work(10)))

        async with trio.open_nursery() as askers:
            for _ in range(3):
                askers.start_soon(ask)
            await trio.sleep(1)
            one.stop()
            state = one.statistics().state
            with pytest.raises(ActorGone, match="worker has been stopped"):
                await one.port.ask(Work())
            late = trio.current_time()
        await one.wait_ended()

    assert [10.0, 20.0, 30.0] == answers
    assert ("stopping", 1.0) == (state, late)
    assert ["in peace"] == worker.ends


async def test_a_stop_that_leaves_what_waits() -> None:
    """Without `drain` the message in hand is finished, and the others are answered by the stop."""
    async with open_runtime() as runtime:
        one = await hosted(runtime, Worker())
        times: list[float] = []
        answers: list[float] = []

        async def ask() -> None:
            try:
                answers.append(await one.port.ask(Work(10)))
            except ActorGone:
                times.append(trio.current_time())

        async with trio.open_nursery() as askers:
            for _ in range(3):
                askers.start_soon(ask)
            await trio.sleep(1)
            one.stop(drain=False)
        await one.wait_ended()
        at = trio.current_time()

    assert ([10.0], [1.0, 1.0], 10.0) == (answers, times, at)


async def test_a_stop_now() -> None:
    """It is cancelled where it is; who waits is told, and no other actor notices."""
    worker = Worker()
    async with open_runtime() as runtime:
        one = await hosted(runtime, worker)
        other = await runtime.spawn_actor(Worker())
        async with trio.open_nursery() as askers:

            async def ask() -> None:
                with pytest.raises(ActorGone, match="worker has been stopped"):
                    await one.port.ask(Work(10))

            askers.start_soon(ask)
            await trio.sleep(1)
            one.stop()
            one.stop(now=True)
        await one.wait_ended()
        at, answer = trio.current_time(), await other.ask(Work())

    assert (1.0, 1.0) == (at, answer)
    assert ["cancelled"] == worker.ends


async def test_an_actor_does_not_wait_for_its_own_end() -> None:
    """It may stop itself, but waiting for that in its loop would never end."""
    refused: list[str] = []

    class Tired:
        async def run(self, mailbox: Mailbox[Note]) -> None:
            async for _ in mailbox:
                own = runtime.find("tired")
                own.stop()
                try:
                    await own.wait_ended()
                except AskCycle as error:
                    refused.append(str(error))

    async with open_runtime() as runtime:
        port = await runtime.spawn_actor(Tired(), name="tired")
        port.tell(Note())
        await trio.testing.wait_all_tasks_blocked()
        left = runtime.actors

    assert ["asking would never end: tired -> tired"] == refused
    assert () == left


async def test_statistics() -> None:
    """What it does, how often it was started again, for how long it runs, and its mailbox."""
    async with open_runtime() as runtime:
        one = await hosted(runtime, Worker())
        await trio.sleep(3)
        one.port.request(Work(1, crash=True), lambda _: None)
        one.port.tell(Note())
        await trio.sleep(0.5)
        working = one.statistics()
        await trio.sleep(2)
        waiting = one.statistics()
        await trio.sleep(4)
        again = one.statistics()
        whole = runtime.statistics()
    ended = one.statistics()

    assert ActorStatistics("worker", "running", 0, 3.5, MailboxStatistics("worker", 1, 8, 1, 0, False)) == working
    assert ActorStatistics("worker", "restarting", 0, 0.0, MailboxStatistics("worker", 1, 8, 0, 0, False)) == waiting
    assert ActorStatistics("worker", "running", 1, 1.5, MailboxStatistics("worker", 0, 8, 0, 0, False)) == again
    assert ActorStatistics("worker", "ended", 1, 0.0, MailboxStatistics("worker", 0, 8, 0, 0, True)) == ended
    assert (1, 9.5) == (whole.actors, whole.uptime_seconds)


async def test_leaving_the_runtime_loses_no_message() -> None:
    """What has been told before the runtime is left is handled before it is over."""
    worker = Worker()
    async with open_runtime() as runtime:
        one = await hosted(runtime, worker)
        for number in range(8):
            one.port.tell(Note(str(number)))

    assert [str(number) for number in range(8)] == worker.kept
    assert ["in peace"] == worker.ends


async def test_leaving_waits_no_longer_than_the_grace_time(caplog: pytest.LogCaptureFixture) -> None:
    """An actor that does not come to its end is cancelled; what nobody has read is counted and logged."""
    worker = Worker()
    async with open_runtime(stop_grace_seconds=3) as runtime:
        one = await hosted(runtime, worker)
        one.port.request(Work(60), lambda _: None)
        one.port.tell(Note("lost"))
        await trio.testing.wait_all_tasks_blocked()

    assert 3.0 == trio.current_time()
    assert (["cancelled"], []) == (worker.ends, worker.kept)
    assert ["actor ended with messages that nobody has read actor=worker messages=1"] == [
        one.message for one in caplog.records
    ]


async def test_one_that_reads_nothing_holds_nobody_up() -> None:
    """A clock of the user's, say: it has no boundary, and nothing that would be lost."""

    class Clock:
        async def run(self, mailbox: Mailbox[Note]) -> None:
            for _ in range(1000):
                await trio.sleep(1)

    async with open_runtime() as runtime:
        await runtime.spawn_actor(Clock())
        await trio.sleep(2.5)

    assert 2.5 == trio.current_time()


async def test_no_actor_is_taken_by_a_runtime_that_stops() -> None:
    """Nor by one that has stopped; stopping `now` cancels those that are there."""
    worker = Worker()
    async with open_runtime() as runtime:
        one = await hosted(runtime, worker)
        one.port.request(Work(60), lambda _: None)
        await trio.testing.wait_all_tasks_blocked()
        await runtime.stop(grace_seconds=5, now=True)
        with pytest.raises(AgentStopped, match="takes no new actors"):
            await runtime.spawn_actor(Worker())

    assert (["cancelled"], 0.0) == (worker.ends, trio.current_time())
