"""What is visible of the log, and what a run's way into it refuses."""

from __future__ import annotations

import attrs
import pytest

from actors.eventlog import EventStream, RunLog
from protocol.events import RunEvent
from protocol.records import StoredEvents

from ._events import begin, delta, end


@attrs.define
class Writer:
    """Who writes a stream down, when it is told to."""

    told: list[tuple[int, bool]] = attrs.field(factory=list)

    def __call__(self, size: int, *, more: bool) -> None:
        self.told.append((size, more))


class TestVisible:
    def test_only_what_is_durable_is_visible(self) -> None:
        """`visible` follows the disk, `end` the program."""
        stream = EventStream("a", appended=Writer())
        for n in range(3):
            stream.append(delta(str(n)))
        taken = stream.take_unsaved()
        marks = [(stream.end, stream.visible)]
        for number in (2, 3):
            stream.show(number)
            marks.append((stream.end, stream.visible))

        assert [(3, 0), (3, 2), (3, 3)] == marks
        assert (1, [data for _, data in stream.read(0)[1]]) == taken

    def test_what_was_taken_is_not_taken_again(self) -> None:
        """Each event is written once, under its number."""
        stream = EventStream("a", appended=Writer())
        stream.append(delta("1"))
        stream.take_unsaved()
        stream.append(delta("2"))
        again = stream.take_unsaved()

        assert (2, [stream.read(1)[1][0][1]]) == again
        assert (3, []) == stream.take_unsaved()

    def test_the_writer_is_told_what_it_is(self) -> None:
        """Of each event its size, and whether it is more than a piece of a reply."""
        writer = Writer()
        stream = EventStream("a", appended=writer)
        stream.append(delta("1"))
        stream.append(begin())

        assert [
            (len(data), more) for (_, data), more in zip(stream.read(0)[1], (False, True), strict=True)
        ] == writer.told

    def test_visible_does_not_go_back(self) -> None:
        """The mark stays at the highest number that was told of."""
        stream = EventStream("a", appended=Writer())
        for n in range(3):
            stream.append(delta(str(n)))
        for number in (3, 1):
            stream.show(number)

        assert 3 == stream.visible

    def test_trimming_does_not_move_it(self) -> None:
        """What was dropped from memory was as visible as before, and is written all the same."""
        stream = EventStream("a", appended=Writer(), max_bytes=300)
        for n in range(20):
            stream.append(delta(str(n)))
        stream.show(4)

        assert 4 == stream.visible
        assert stream.oldest > 4
        assert 20 == len(stream.take_unsaved()[1])

    def test_a_stream_that_was_written_down_goes_on(self) -> None:
        """The same epoch, the next number, and what is stored can be read again."""
        first = EventStream("a")
        for n in range(3):
            first.append(delta(str(n)))
        stored = StoredEvents(2, [data for _, data in first.read(1)[1]])
        stream = EventStream("a", appended=Writer(), epoch=first.epoch, stored=stored)
        number = stream.append(delta("3"))

        assert (first.epoch, 2, 3, 4) == (stream.epoch, stream.oldest, stream.visible, number)
        assert [delta(str(n)) for n in (1, 2, 3)] == [event for event, _ in stream.read(0)[1]]

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
