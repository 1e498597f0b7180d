"""What is visible of the log, and what a run's way into it refuses."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
import trio

from actors.eventlog import EventStream, RunLog
from protocol.events import RunEvent

from ._events import begin, delta, end


@attrs.define
class SlowDisk:
    """A journal that is durable when it is told to be."""

    durable: bool = True
    records: list[bytes] = attrs.field(factory=list)
    waiting: list[tuple[int, Callable[[], None]]] = attrs.field(factory=list)

    def append(self, record: bytes) -> int:
        self.records.append(record)
        return len(self.records)

    def after(self, position: int, fn: Callable[[], None]) -> None:
        self.waiting.append((position, fn))

    async def flushed(self, position: int | None = None) -> None:
        await trio.lowlevel.checkpoint()

    def reach(self, position: int) -> None:
        ready = [fn for at, fn in self.waiting if at <= position]
        self.waiting = [(at, fn) for at, fn in self.waiting if at > position]
        for fn in ready:
            fn()


class TestVisible:
    def test_only_what_is_durable_is_visible(self) -> None:
        """`visible` follows the disk, `end` the program."""
        disk = SlowDisk()
        stream = EventStream("a", journal=disk)
        for n in range(3):
            stream.append(delta(str(n)))
        marks = [(stream.end, stream.visible)]
        for position in (2, 3):
            disk.reach(position)
            marks.append((stream.end, stream.visible))

        assert [(3, 0), (3, 2), (3, 3)] == marks
        assert disk.records == [data for _, data in stream.read(0)[1]]

    def test_visible_does_not_go_back(self) -> None:
        """Positions that become durable out of order leave the mark at the highest."""
        disk = SlowDisk()
        stream = EventStream("a", journal=disk)
        for n in range(3):
            stream.append(delta(str(n)))
        disk.waiting.reverse()
        disk.reach(3)

        assert 3 == stream.visible

    def test_trimming_does_not_move_it(self) -> None:
        """What was dropped from memory was as visible as before."""
        disk = SlowDisk()
        stream = EventStream("a", journal=disk, max_bytes=300)
        for n in range(20):
            stream.append(delta(str(n)))
        disk.reach(4)

        assert 4 == stream.visible
        assert stream.oldest > 4

    def test_without_a_disk_all_is_visible_at_once(self) -> None:
        """In memory nothing is held back."""
        stream = EventStream("a")
        stream.append(delta("1"))

        assert 1 == stream.visible


class TestRunLog:
    @pytest.mark.parametrize("late", [delta("x"), end(), begin()])
    def test_what_may_not_come_is_refused_and_counted(self, late: RunEvent) -> None:
        """After the end nothing is appended, whoever still speaks."""
        stream = EventStream("a")
        log = RunLog(stream, "r1")
        taken = [log.emit(event) for event in (delta("early"), begin(), end(), late)]

        assert [False, True, True, False] == taken
        assert 2 == log.refused
        assert 2 == stream.end == log.last
        assert log.over

    def test_it_is_over_when_the_terminal_event_is_out(self) -> None:
        """And not before."""
        log = RunLog(EventStream("a"), "r1")
        states = [log.over]
        for event in (begin(), delta("x"), end()):
            log.emit(event)
            states.append(log.over)

        assert [False, False, False, True] == states
