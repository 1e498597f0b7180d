"""Whatever is asked, told, crashed and stopped, in whatever order: every ask is answered once, and nothing is lost silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kit import (
    ActorCrashed,
    ActorGone,
    Ask,
    AskCycle,
    Mailbox,
    MailboxFull,
    Port,
    Restarts,
    run_once,
    supervise,
)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene in virtual time: where everything waits for ever, it fails."""

    async def main() -> None:
        with trio.fail_after(1e6):
            await scene()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@attrs.frozen(eq=False)
class Job(Ask[int]):
    """Work so long, then answer with the number, fail, crash, or keep it for a later message."""

    number: int
    seconds: float
    then: Literal["answer", "fail", "crash", "hold", "task"]


@attrs.frozen
class Note:
    """Work so long, and crash or not."""

    seconds: float
    crash: bool


class Refused(Exception):
    """What an actor fails an ask with."""


@attrs.define
class Worker:
    """Does what it is sent, and counts what it did."""

    noted: int = 0
    lost_in_hand: int = 0
    held: list[Job] = attrs.field(factory=list)

    async def run(self, mailbox: Mailbox[Job | Note]) -> None:
        async with trio.open_nursery() as own:
            async for message in mailbox:
                if isinstance(message, Note):
                    await self._note(message)
                elif message.then == "task":
                    own.start_soon(self._do, message)
                else:
                    await self._do(message)
                if not isinstance(message, Job) or message.then != "hold":
                    while self.held:
                        held = self.held.pop()
                        held.reply.set(held.number)
            own.cancel_scope.cancel("the mailbox has ended")

    async def _note(self, note: Note) -> None:
        done = False
        try:
            await trio.sleep(note.seconds)
            if note.crash:
                raise ValueError("broken")
            self.noted += 1
            done = True
        finally:
            self.lost_in_hand += not done

    async def _do(self, job: Job) -> None:
        with trio.CancelScope() as scope:
            job.reply.on_drop(scope.cancel)
            await trio.sleep(job.seconds)
            if job.then == "crash":
                raise ValueError("broken")
            if job.then == "fail":
                job.reply.fail(Refused())
            elif job.then == "hold":
                self.held.append(job)
            else:
                job.reply.set(job.number)


SECONDS = st.sampled_from([0.0, 1.0, 2.0])
Step: TypeAlias = tuple[str, tuple[object, ...]]
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(
        st.just("ask"),
        st.tuples(
            SECONDS,
            st.sampled_from(["answer", "answer", "fail", "crash", "hold", "task"]),
            st.sampled_from([None, None, 0.0, 1.0, 2.0]),
        ),
    ),
    st.tuples(st.sampled_from(["tell", "send", "request"]), st.tuples(SECONDS, st.booleans())),
    st.tuples(st.just("sleep"), st.tuples(SECONDS)),
    st.tuples(st.sampled_from(["settle", "settle", "settle", "drain", "stop", "cancel"]), st.tuples()),
)


@attrs.define
class Tally:
    """What came of what was sent."""

    worker: Worker
    box: Mailbox[Job | Note]
    ends: Counter[int] = attrs.field(factory=Counter)
    sent: int = 0
    """Notes that were taken, or refused as dead letters."""

    async def ask(self, job: Job, patience: float | None) -> None:
        with trio.move_on_after(1e9 if patience is None else patience):
            try:
                assert job.number == await self.box.port.ask(job)
            except Refused:
                assert "fail" == job.then
            except ActorGone:
                assert self.box.is_stopped
            except ActorCrashed as error:
                assert error.__cause__ is not None
        self.ends[job.number] += 1

    def request(self, job: Job) -> None:
        def told(_: object) -> None:
            self.ends[job.number] += 1

        try:
            self.box.port.request(job, told)
        except MailboxFull:
            self.ends[job.number] += 1

    def tell(self, note: Note) -> None:
        try:
            self.box.port.tell(note)
            self.sent += 1
        except MailboxFull:
            pass

    async def send(self, note: Note) -> None:
        self.sent += 1
        await self.box.port.send(note)


@given(plan=st.lists(STEPS, max_size=25), capacity=st.integers(1, 4), limit=st.integers(0, 5), escalates=st.booleans())
@settings(deadline=None)
def test_every_ask_is_answered_once(plan: list[Step], capacity: int, limit: int, escalates: bool) -> None:
    """With its value or a clear error; each note is handled, dies with its incarnation, or is a dead letter that counts."""
    box: Mailbox[Job | Note] = Mailbox("worker", capacity=capacity)
    tally = Tally(Worker(), box)
    restarts = Restarts(limit=limit, seconds=3, backoff_seconds=0.5, escalates=escalates)

    async def run(scope: trio.CancelScope) -> None:
        with scope:
            try:
                await supervise(tally.worker, box, restarts=restarts)
            except* ValueError:
                assert escalates

    async def scene() -> None:
        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, scope)
            for number, (kind, given_) in enumerate(plan):
                match kind, given_:
                    case "ask", (seconds, then, patience):
                        nursery.start_soon(tally.ask, Job(number, seconds, then), patience)  # type: ignore[arg-type]
                    case "tell", (seconds, crash):
                        tally.tell(Note(seconds, crash))  # type: ignore[arg-type]
                    case "send", (seconds, crash):
                        nursery.start_soon(tally.send, Note(seconds, crash))  # type: ignore[arg-type]
                    case "request", (seconds, crash):
                        tally.request(Job(number, seconds, "crash" if crash else "task"))  # type: ignore[arg-type]
                    case "sleep", (seconds,):
                        await trio.sleep(seconds)  # type: ignore[arg-type]
                    case "settle", ():
                        await trio.testing.wait_all_tasks_blocked()
                    case "drain" | "stop", ():
                        box.stop(drain=kind == "drain")
                    case _:
                        scope.cancel("by the plan")
            await trio.sleep(1000)
            box.stop()

    play(scene)
    asked = {number: 1 for number, (kind, _) in enumerate(plan) if kind in {"ask", "request"}}
    box_now = box.statistics()

    assert asked == tally.ends
    assert (0, 0, 0, True) == (box_now.waiting, box_now.waiting_senders, box_now.open_asks, box_now.closed)
    assert tally.sent == tally.worker.noted + tally.worker.lost_in_hand + box_now.dead_letters


@attrs.frozen
class Hop:
    """The next actor, and whether it goes on in its loop or in a task."""

    to: int
    in_loop: bool


@attrs.frozen(eq=False)
class Walk(Ask[int]):
    """Go along these actors; the answer is how far it came."""

    hops: tuple[Hop, ...]


@attrs.define
class Walker:
    """Asks the next one, as it is told."""

    ports: list[Port[Walk]]

    async def run(self, mailbox: Mailbox[Walk]) -> None:
        async with trio.open_nursery() as own:
            async for message in mailbox:
                if message.hops[0].in_loop:
                    await self.go_on(message)
                else:
                    own.start_soon(self.go_on, message)

    async def go_on(self, message: Walk) -> None:
        further = message.hops[1:]
        try:
            await trio.lowlevel.checkpoint()
            message.reply.set(1 + await self.ports[further[0].to].ask(Walk(further)) if further else 1)
        except AskCycle:
            message.reply.set(1)


HOPS = st.lists(st.builds(Hop, st.integers(0, 3), st.booleans()), min_size=1, max_size=7).map(tuple)


def walk(walks: list[tuple[Hop, ...]], *, capacity: int, together: bool) -> list[int]:
    """How far these come, one after the other or all together."""
    came: dict[int, int] = {}

    async def scene() -> None:
        boxes = [Mailbox[Walk](f"walker-{number}", capacity=capacity) for number in range(4)]
        ports = [box.port for box in boxes]

        async def one(number: int, hops: tuple[Hop, ...]) -> None:
            came[number] = await ports[hops[0].to].ask(Walk(hops))

        async with trio.open_nursery() as walkers:
            for box in boxes:
                walkers.start_soon(run_once, Walker(ports), box)
            for number, hops in enumerate(walks):
                if not together:
                    await one(number, hops)
            async with trio.open_nursery() as nursery:
                for number, hops in enumerate(walks):
                    if together:
                        nursery.start_soon(one, number, hops)
            left = [box.party.waits for box in boxes if box.party is not None]
            walkers.cancel_scope.cancel("all have come")

        assert [] == [waits for waits in left if waits]

    play(scene)
    return [came[number] for number in range(len(walks))]


def how_far(hops: tuple[Hop, ...]) -> int:
    """Up to where it would come back to an actor whose loop waits for it."""
    for number, hop in enumerate(hops):
        if any(before.to == hop.to and before.in_loop for before in hops[:number]):
            return number
    return len(hops)


@given(walks=st.lists(HOPS, min_size=1, max_size=3), capacity=st.integers(1, 3))
@settings(deadline=None)
def test_what_is_refused_is_what_would_hang(walks: list[tuple[Hop, ...]], capacity: int) -> None:
    """A chain of asks ends exactly where it would have waited for ever, and nowhere before."""
    assert [how_far(hops) for hops in walks] == walk(walks, capacity=capacity, together=False)


@given(walks=st.lists(HOPS, min_size=2, max_size=8), capacity=st.integers(1, 2))
@settings(deadline=None)
def test_no_crowd_of_asks_hangs(walks: list[tuple[Hop, ...]], capacity: int) -> None:
    """Many chains at once through small mailboxes: each comes to an end, not further than alone, and leaves no wait on record."""
    came = walk(walks, capacity=capacity, together=True)

    assert all(1 <= far <= how_far(hops) for far, hops in zip(came, walks, strict=True))
