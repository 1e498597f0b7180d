"""Readers of the event log: cursors that follow, that are told what they lost, and that end with their run."""

from __future__ import annotations

import trio
import trio.testing

from actors.eventlog import EventsLost, EventStream, RunLog
from protocol.events import ContentDelta, ErrorInfo, RunFailed, RunStarted

from ._events import SUMMARY, begin, delta, end, texts


class TestReaders:
    async def test_a_reader_follows(self, autojump_clock: trio.testing.MockClock) -> None:
        """Every event in order, with its number in `seq`, as it comes."""
        stream = EventStream("a")
        seen: list[tuple[int, str]] = []

        async def follow() -> None:
            reader = stream.reader()
            async for event in reader:
                assert isinstance(event, ContentDelta)
                seen.append((reader.seq, event.text))

        stream.append(delta("before"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            for n in range(3):
                stream.append(delta(str(n)))
                await trio.sleep(1)
            nursery.cancel_scope.cancel()

        assert [(2, "0"), (3, "1"), (4, "2")] == seen

    async def test_a_reader_may_begin_anywhere(self) -> None:
        """Behind a number: the next one is the first."""
        stream = EventStream("a")
        for n in range(1, 5):
            stream.append(delta(str(n)))
        reader = stream.reader(after=2)

        assert ["3", "4"] == texts([await anext(reader), await anext(reader)])

    async def test_losses_are_counted_exactly(self) -> None:
        """A reader that fell behind is told how many it missed, once, and goes on with the oldest that is left."""
        stream = EventStream("a", max_bytes=1000)
        reader = stream.reader()
        stream.append(delta("000"))
        first = await anext(reader)
        for n in range(1, 100):
            stream.append(delta(f"{n:03}"))
        lost = await anext(reader)
        after = await anext(reader)
        total = 2
        while reader.seq < stream.end:
            await anext(reader)
            total += 1

        assert ["000"] == texts([first])
        assert EventsLost(stream.oldest - 2) == lost
        assert [f"{stream.oldest - 1:03}"] == texts([after])
        assert 100 == total + lost.count

    async def test_a_reader_is_woken_once_for_any_number(self, nursery: trio.Nursery) -> None:
        """Events that come together are read in one go; a sleeping reader costs the emitter one call."""
        stream = EventStream("a")
        wakes: list[int] = []
        reader = stream.reader()

        async def follow() -> None:
            async for _ in reader:
                if reader.seq == stream.end:
                    wakes.append(reader.seq)

        nursery.start_soon(follow)
        await trio.testing.wait_all_tasks_blocked()
        armed = len(stream._armed)
        for n in range(50):
            stream.append(delta(str(n)))
        after = len(stream._armed)
        await trio.testing.wait_all_tasks_blocked()

        assert (1, 0, 1) == (armed, after, len(stream._armed))
        assert [50] == wakes

    async def test_a_reader_that_leaves_is_forgotten(self) -> None:
        """A cancelled wait leaves nothing armed."""
        stream = EventStream("a")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.reader().__anext__)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

        assert {} == stream._armed

    def test_arming_is_for_one_event(self) -> None:
        """`arm` calls once; `disarm` takes it back, and may come too late."""
        stream = EventStream("a")
        called: list[str] = []

        def first() -> None:
            called.append("first")

        def second() -> None:
            called.append("second")

        stream.arm(first)
        stream.arm(second)
        stream.disarm(second)
        stream.append(delta("1"))
        stream.append(delta("2"))
        stream.disarm(first)

        assert ["first"] == called

    async def test_reading_is_a_checkpoint(self) -> None:
        """A reader with much to read lets others run, if not at every event."""
        stream = EventStream("a")
        for n in range(600):
            stream.append(delta(str(n)))
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            reader = stream.reader(after=0)
            for _ in range(600):
                await anext(reader)
            nursery.cancel_scope.cancel()

        assert ticks > 2


class TestReadersOfARun:
    async def test_it_ends_with_the_run(self) -> None:
        """The terminal event is the last that it gives; what the agent says after belongs to others."""
        stream = EventStream("a")
        log = RunLog(stream, "r1")
        for event in (begin(), delta("1"), end()):
            log.emit(event)
        stream.append(begin("r2"))

        assert ["run_started", "content_delta", "run_failed"] == [
            event.type  # type: ignore[union-attr]
            async for event in stream.reader(after=0, log=log)
        ]

    async def test_it_ends_also_where_the_end_was_lost(self, autojump_clock: trio.testing.MockClock) -> None:
        """A reader so late that the terminal event is gone is told of the loss, and is done."""
        stream = EventStream("a", max_bytes=1000)
        log = RunLog(stream, "r1")
        for event in (begin(), delta("1"), end()):
            log.emit(event)
        for n in range(100):
            stream.append(delta(str(n), run="r2"))
        with trio.fail_after(10):
            seen = [event async for event in stream.reader(after=0, log=log)]

        assert [EventsLost(3)] == seen

    async def test_a_sub_agents_reader_hears_its_own(self) -> None:
        """In the root's stream it follows those below it, and nobody beside it."""
        stream = EventStream("a")
        root, child = RunLog(stream, "r1"), RunLog(stream, "r2", ("child",))
        root.emit(begin())
        child.emit(RunStarted(run="r2", agent_path=("child",), agent="c", model="m", prompt="go"))
        root.emit(delta("of the root"))
        stream.append(delta("of a grandchild", "r3", ("child", "grandchild")))
        stream.append(delta("of a sibling", "r4", ("sibling",)))
        child.emit(RunFailed(run="r2", agent_path=("child",), error=ErrorInfo("x", "y"), summary=SUMMARY))

        assert ["run_started", "content_delta", "run_failed"] == [
            event.type  # type: ignore[union-attr]
            async for event in stream.reader(after=0, log=child)
        ]
