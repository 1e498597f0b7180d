"""The event log: numbered, bounded, encoded once, and never in the way of who emits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.eventlog import EventStream, RunLog, StreamStatistics
from protocol.codec import decode_event
from protocol.events import AgentSpawned, ContentDelta, ErrorInfo, RunFailed, Warned

from ._events import SUMMARY, begin, delta, texts


class TestNumbers:
    def test_numbers_start_at_one_and_grow_by_one(self) -> None:
        """The n-th event has the number n, and `append` says so."""
        stream = EventStream("a")
        before = (stream.end, stream.oldest, stream.visible)

        assert [1, 2, 3] == [stream.append(delta(str(n))) for n in range(3)]
        assert (0, 1, 0) == before
        assert (3, 1, 3) == (stream.end, stream.oldest, stream.visible)

    def test_reading_from_a_number(self) -> None:
        """`read(after)` gives what is numbered above it, with the number of the first."""
        stream = EventStream("a")
        for n in range(1, 6):
            stream.append(delta(str(n)))
        cases = {after: stream.read(after, limit=2) for after in (0, 3, 4, 5)}

        assert {0: (1, ["1", "2"]), 3: (4, ["4", "5"]), 4: (5, ["5"]), 5: (6, [])} == {
            after: (first, texts([event for event, _ in entries])) for after, (first, entries) in cases.items()
        }

    def test_each_stream_has_an_epoch_of_its_own(self) -> None:
        """Numbers of one stream mean nothing in another."""
        assert EventStream("a").epoch != EventStream("a").epoch

    def test_an_event_is_encoded_once_for_all_readers(self) -> None:
        """What is read is the event and its JSON, the same object for everyone."""
        stream = EventStream("a")
        stream.append(delta("hello"))
        (_, [(event, first)]), (_, [(_, second)]) = stream.read(0), stream.read(0)

        assert first is second
        assert event == decode_event(first)


class TestBound:
    def test_the_oldest_go_when_it_is_full(self) -> None:
        """Bytes are bounded; numbers go on, and the newest events are those that stay."""
        stream = EventStream("a", max_bytes=1000)
        for n in range(100):
            stream.append(delta(f"{n:03}"))
        first, entries = stream.read(0)
        statistics = stream.statistics()

        assert 100 == stream.end
        assert first == stream.oldest > 1
        assert [f"{n:03}" for n in range(first - 1, 100)] == texts([event for event, _ in entries])
        assert sum(len(data) for _, data in entries) == statistics.bytes <= 1000

    def test_one_event_is_kept_however_large(self) -> None:
        """A stream that has spoken always holds its last word."""
        stream = EventStream("a", max_bytes=10)
        stream.append(delta("x" * 1000))
        stream.append(delta("y" * 1000))

        assert (2, 2) == (stream.oldest, stream.end)
        assert ["y" * 1000] == texts([event for event, _ in stream.read(0)[1]])

    @settings(deadline=None, derandomize=True, database=None)
    @given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 2000))
    def test_whatever_comes(self, sizes: list[int], max_bytes: int) -> None:
        """Numbers without gaps, bytes as counted and within the bound, for any sizes."""
        stream = EventStream("a", max_bytes=max_bytes)
        for size in sizes:
            stream.append(delta("x" * size))
        first, entries = stream.read(0, limit=10_000)

        assert len(sizes) == stream.end
        assert first + len(entries) - 1 == stream.end
        assert stream.statistics().bytes == sum(len(data) for _, data in entries)
        assert len(entries) <= 1 or stream.statistics().bytes <= max_bytes

    def test_statistics(self) -> None:
        """What a person or a metric asks of a stream."""
        stream = EventStream("a")
        stream.append(delta("x"))
        (_, [(_, data)]) = stream.read(0)

        assert StreamStatistics("a", stream.epoch, 1, 1, 1, len(data), 0) == stream.statistics()


class TestBadEvents:
    def test_what_had_to_be_changed_is_told(self) -> None:
        """The event stays, mended; a warning of the same run says what was wrong; the number is the event's own."""
        stream = EventStream("a")
        number = stream.append(delta("\ud800", path=("child",)))
        decoded = [decode_event(data) for _, data in stream.read(0)[1]]
        warning = next(event for event in decoded if isinstance(event, Warned))

        assert ["\ufffd"] == texts(decoded)
        assert ("r1", ("child",), "event_changed") == (warning.run, warning.agent_path, warning.code)
        assert "content_delta" in warning.text
        assert "surrogates" in warning.text
        assert isinstance(decoded[number - 1], ContentDelta)
        assert 1 == stream.statistics().faults

    def test_the_terminal_event_stays_the_last(self) -> None:
        """Also where the terminal event itself had to be changed (R4)."""
        stream = EventStream("a")
        log = RunLog(stream, "r1")
        log.emit(begin())
        log.emit(RunFailed(run="r1", error=ErrorInfo("x", "\ud800"), summary=SUMMARY))
        types = [event.type for event, _ in stream.read(0)[1]]

        assert ["run_started", "warning", "run_failed"] == types
        assert 3 == log.last

    def test_a_bad_warning_makes_no_other(self) -> None:
        """A fault of a warning is counted, and that is all."""
        stream = EventStream("a")
        stream.append(Warned(run="r1", code="c", text="\ud800"))
        stream.append(AgentSpawned(agent="a", name="\ud800"))

        assert 2 == stream.end == stream.statistics().faults

    def test_nothing_makes_append_raise(self) -> None:
        """Whatever an event holds, the one who emits goes on."""

        class Liar:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        stream = EventStream("a")
        stream.append(ContentDelta(run="r1", message="m", text=Liar()))  # type: ignore[arg-type]
        data = stream.read(0)[1][-1][1]

        assert b'{"type":"content_delta","run":"r1"}' == data
