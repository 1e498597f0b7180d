"""Following a stream: whatever is sent when, it is the log, whole, with what was left out or merged told by number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.eventlog import EventStream
from actors.gateway._follow import ALWAYS, FRAME_GOAL_BYTES, Following, FollowingLostError, Pressure
from actors.gateway._shared import SharedFrames
from protocol.codec import decode_event
from protocol.events import (
    AgentWarned,
    ContentDelta,
    Event,
    ReasoningDelta,
    RunStarted,
    StepFinished,
    ToolCallDelta,
    ToolFinished,
)
from protocol.usage import NO_USAGE

from .wired import numbers_are_whole

DELTAS = {"content_delta", "reasoning_delta", "tool_call_delta"}
quick = settings(max_examples=150, deadline=None)


def finished(run: str) -> StepFinished:
    return StepFinished(run=run, step=1, finish_reason="stop", usage=NO_USAGE)


runs = st.sampled_from(["r1", "r2"])
messages = st.sampled_from(["m1", "m2"])
texts = st.text(max_size=30)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(ContentDelta, run=runs, message=messages, text=texts),
    st.builds(ContentDelta, run=runs, message=messages, text=texts, agent_path=st.just(("child",))),
    st.builds(ReasoningDelta, run=runs, message=messages, text=texts),
    st.builds(ToolCallDelta, run=runs, message=messages, text=texts, index=st.integers(0, 1), name=st.sampled_from(["", "t"])),
    st.builds(finished, runs),
    st.builds(ToolFinished, run=runs, call=texts, name=texts, status=st.just("ok"), started=st.just(True), text=texts),
    st.builds(AgentWarned, agent=texts, code=texts, text=texts),
    st.builds(RunStarted, run=runs, agent=texts, model=texts, prompt=texts),
)  # fmt: skip
filters: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"deltas": st.booleans(), "types": st.none() | st.frozensets(st.sampled_from(["content_delta", "run_started", "tool_finished"]))}
)  # fmt: skip


def follow(stream: EventStream, after: int = 0, frames: SharedFrames | None = None, **options: Any) -> Following:
    return Following("a", stream, after, (frames or SharedFrames()).of(stream), **options)


@attrs.define
class Taken:
    """What a client got: it checks the numbers of each message against those before."""

    seq: int
    events: list[tuple[int, dict[str, Any]]] = attrs.field(factory=list)

    def take(self, message: bytes | None) -> None:
        if message is None:
            return
        params = json.loads(message)["params"]

        assert self.seq + 1 == params["seq"]
        for event in params["events"]:
            self.events.append((self.seq + 1, event))
            self.seq += event.get("n", 1)


def drain(
    following: Following, taken: Taken, *, now: float = 0, room: int = 2**20, pressure: Pressure = Pressure.NONE
) -> None:
    while following.behind:
        before = following._looked
        taken.take(following.take(now, room, pressure))

        assert following._looked > before


def stream_of(*given: Event, **options: Any) -> EventStream:
    stream = EventStream("a", **options)
    for event in given:
        stream.append(event)
    return stream


class TestWhole:
    @quick
    @given(st.lists(events, max_size=40), st.data(), filters)
    def test_attach_anywhere_and_cut_anywhere(
        self, given: list[Event], data: st.DataObject, wishes: dict[str, Any]
    ) -> None:
        """Wherever it begins, however it is cut and resumed: what is wanted comes once and as it is, the rest is counted."""
        stream = EventStream("a")
        start = data.draw(st.integers(0, len(given)))
        for event in given[:start]:
            stream.append(event)
        after = data.draw(st.integers(0, start))
        taken, now, frames = Taken(after), 0.0, SharedFrames()
        following = follow(stream, after, frames, **wishes)
        for event in given[start:]:
            stream.append(event)
            match data.draw(st.sampled_from(["wait", "take", "late", "cut"])):
                case "take":
                    taken.take(following.take(now, 2**20))
                case "late":
                    now += 1
                    taken.take(following.take(now, 2**20))
                case "cut":
                    following = follow(stream, taken.seq, frames, **wishes)
                case _:
                    pass
        stream.close()
        drain(following, taken)
        taken.take(following.take(now + 1, 2**20))
        wanted = [
            (number, event) for number, event in enumerate(given, 1) if number > after and is_wanted(event, **wishes)
        ]

        assert len(given) == taken.seq
        assert following.over
        assert wanted == [(number, decode(event)) for number, event in taken.events if event["type"] != "skipped"]

    @quick
    @given(st.lists(events, max_size=60), st.data())
    def test_merging_keeps_text_and_numbers(self, given: list[Event], data: st.DataObject) -> None:
        """Under pressure the texts of each message are the same, in the same order, and so is all that is no delta."""
        after = data.draw(st.integers(0, len(given)))
        taken, following = Taken(after), None
        stream = stream_of(*given[: data.draw(st.integers(after, len(given)))])
        following = follow(stream, after)
        drain(following, taken, pressure=Pressure.MERGE)
        for event in given[stream.end :]:
            stream.append(event)
        drain(following, taken, pressure=Pressure.MERGE)
        got = [decode(event) for _, event in taken.events]

        assert len(given) == taken.seq
        assert speech(given[after:]) == speech(got)
        assert [event for event in given[after:] if event.type not in DELTAS] == [
            event for event in got if event.type not in DELTAS
        ]

    @quick
    @given(st.lists(events, max_size=60))
    def test_thinning_drops_deltas_of_finished_messages_alone(self, given: list[Event]) -> None:
        """All else is there, and the numbers of what went are told."""
        stream = stream_of(*given)
        taken = Taken(0)
        following = follow(stream)
        stream.close()
        drain(following, taken, pressure=Pressure.THIN)
        taken.take(following.take(1, 2**20, Pressure.THIN))
        got = [decode(event) for _, event in taken.events if event["type"] != "skipped"]
        kept = [
            event
            for place, event in enumerate(given)
            if event.type not in DELTAS or not any(closes(later, event) for later in given[place:])
        ]

        assert len(given) == taken.seq
        assert [event for event in kept if event.type not in DELTAS] == [
            event for event in got if event.type not in DELTAS
        ]
        assert speech(kept) == speech(got)

    @quick
    @given(st.lists(events, max_size=30), st.lists(st.sampled_from(list(Pressure)), max_size=10), filters)
    def test_any_pressure_at_any_time(
        self, given: list[Event], pressures: list[Pressure], wishes: dict[str, Any]
    ) -> None:
        """Numbers stay whole while a client gets slower and faster, and in the end it has all."""
        stream, taken = EventStream("a"), Taken(0)
        following = follow(stream, **wishes)
        rest = iter(given)
        for number, pressure in enumerate(pressures):
            for event, _ in zip(rest, range(number % 4), strict=False):
                stream.append(event)
            taken.take(following.take(number, 2**20, pressure))
        for event in rest:
            stream.append(event)
        stream.close()
        drain(following, taken)
        taken.take(following.take(100, 2**20))
        always = [event for event in given if event.type in ALWAYS]

        assert stream.end == taken.seq
        assert following.lag_bytes == 0
        assert always == [decode(event) for _, event in taken.events if event["type"] in ALWAYS]


def is_wanted(event: Event, *, deltas: bool, types: frozenset[str] | None) -> bool:
    if event.type in ALWAYS:
        return True
    return (deltas or event.type not in DELTAS) and (types is None or event.type in types)


def decode(event: dict[str, Any]) -> Event:
    return decode_event(json.dumps(event))


def speech(given: list[Event]) -> list[tuple[Any, str, int]]:
    """Neighbouring deltas of one message as one: whose, the text, how many."""
    said: list[tuple[Any, str, int]] = []
    last: Any = None
    for event in given:
        if not isinstance(event, (ContentDelta, ReasoningDelta, ToolCallDelta)):
            last = None
            continue
        whose = (event.type, event.run, event.agent_path, event.message, getattr(event, "index", None))
        if whose == last:
            _, text, n = said.pop()
            said.append((whose, text + event.text, n + event.n))
        else:
            said.append((whose, event.text, event.n))
        last = whose
    return said


def closes(later: Event, delta: Event) -> bool:
    return isinstance(later, StepFinished) and later.run == getattr(delta, "run", None)


class TestMerge:
    def test_what_goes_on_is_one(self) -> None:
        """A merged delta says how many numbers it stands for; another message, run or kind begins anew."""
        stream = stream_of(*[ContentDelta(run="r", message="m", text=str(n)) for n in range(5)])
        stream.append(ReasoningDelta(run="r", message="m", text="hm"))
        stream.append(ContentDelta(run="r", message="m2", text="x"))
        taken = Taken(0)
        drain(follow(stream), taken, pressure=Pressure.MERGE)

        assert [(1, "01234", 5), (6, "hm", 1), (7, "x", 1)] == [
            (number, event["text"], event.get("n", 1)) for number, event in taken.events
        ]

    def test_a_call_keeps_its_name(self) -> None:
        """The name comes with the first delta, and stays with it."""
        stream = stream_of(*[
            ToolCallDelta(run="r", message="m", index=0, text=str(n), name="" if n else "t") for n in range(3)
        ])
        taken = Taken(0)
        drain(follow(stream), taken, pressure=Pressure.MERGE)

        assert [("t", "012", 3)] == [(event["name"], event["text"], event["n"]) for _, event in taken.events]

    def test_never_across_what_was_left_out(self) -> None:
        """Numbers between two deltas are told between them."""
        stream = EventStream("a")
        for _ in range(2):
            stream.append(ContentDelta(run="r", message="m", text="x"))
            stream.append(AgentWarned(agent="a", code="c", text="t"))
        taken = Taken(0)
        drain(follow(stream, types={"content_delta"}), taken, pressure=Pressure.MERGE)

        assert ["content_delta", "skipped", "content_delta", "skipped"] == [event["type"] for _, event in taken.events]

    def test_never_across_where_a_client_is(self) -> None:
        """Whoever has a part of a message is sent the rest of it, and no more."""
        stream = stream_of(*[ContentDelta(run="r", message="m", text=str(n)) for n in range(9)])
        texts = []
        for after in (0, 4, 8):
            taken = Taken(after)
            drain(follow(stream, after), taken, pressure=Pressure.MERGE)
            texts += [(number, event["text"], event.get("n", 1)) for number, event in taken.events]

        assert [(1, "012345678", 9), (5, "45678", 5), (9, "8", 1)] == texts


class TestFrames:
    def test_one_message_for_all_that_are_equally_far(self) -> None:
        """It is made once, and is the same object for everyone."""
        stream, frames = stream_of(AgentWarned(agent="a", code="c", text="t")), SharedFrames()
        first, second, third = (follow(stream, 0, frames).take(0, 2**20) for _ in range(3))

        assert first is second is third

    def test_a_message_has_its_length(self) -> None:
        """A frame's worth at a time, so that nobody else waits for long."""
        stream = stream_of(*[AgentWarned(agent="a", code="c", text="x" * 1000) for _ in range(300)], max_bytes=2**20)
        wishes: list[dict[str, Any]] = [{}, {"deltas": False}]
        for options in wishes:
            following, sizes = follow(stream, **options), []
            while following.behind:
                message = following.take(0, 2**20)
                assert message is not None
                sizes.append(len(message))

            assert max(sizes) <= FRAME_GOAL_BYTES + 2000
            assert 5 <= len(sizes) <= 7

    @pytest.mark.parametrize("options", [{}, {"deltas": False}])
    @pytest.mark.parametrize("size", [3000, 4000, 5000, 100_000])
    def test_an_event_that_fits_in_no_frame(self, size: int, options: dict[str, Any]) -> None:
        """It is cut, and says so; its number and what it is about stay."""
        stream = stream_of(
            ToolFinished(run="r", call="c", name="t", status="ok", started=True, text="x" * size),
            AgentWarned(agent="a", code="c", text="t"),
        )
        following, taken, sizes = follow(stream, frame_bytes=4096, **options), Taken(0), []
        while following.behind:
            message = following.take(0, 4094)
            assert message is not None
            sizes.append(len(message))
            taken.take(message)
        first = taken.events[0][1]

        assert max(sizes) <= 4096
        assert (2, "c", "ok") == (taken.seq, first["call"], first["status"])
        assert (size > 3900) == ("cut:" in first["text"])

    @pytest.mark.parametrize("options", [{}, {"deltas": False}])
    def test_where_there_is_no_room(self, options: dict[str, Any]) -> None:
        """It waits for the next frame, and is not cut."""
        stream = stream_of(AgentWarned(agent="a", code="c", text="x" * 3000))
        following = follow(stream, frame_bytes=4096, **options)
        small, whole = following.take(0, 2000), following.take(0, 4094)

        assert small is None
        assert whole is not None
        assert b"x" * 3000 in whole


class Watch:
    """A client of the log, as far as that knows one."""

    def __init__(self) -> None:
        self.lost: list[Following] = []
        self.news: list[Following] = []


class TestLag:
    def test_the_log_holds_what_a_client_has_not_got(self) -> None:
        """Up to a bound of its own: beyond it the client is given up, and told at once."""
        watch = Watch()
        stream = EventStream("a", max_bytes=1000)
        following = follow(stream, max_bytes=20_000, on_lost=watch.lost.append)
        following.begin()
        sizes = []
        for _ in range(400):
            stream.append(AgentWarned(agent="a", code="c", text="x" * 50))
            sizes.append(stream.statistics().bytes)
            if watch.lost:
                break
        held = max(sizes)
        with pytest.raises(FollowingLostError):
            following.take(0, 2**20)
        following.end()
        for _ in range(100):
            stream.append(AgentWarned(agent="a", code="c", text="x" * 50))

        assert 19_000 <= held <= 20_600
        assert stream.statistics().bytes <= 1000

    def test_one_that_keeps_up_costs_nothing(self) -> None:
        """The log is as long as it would be without it."""
        stream = EventStream("a", max_bytes=1000)
        following, taken = follow(stream), Taken(0)
        following.begin()
        for _ in range(200):
            stream.append(AgentWarned(agent="a", code="c", text="x" * 50))
            drain(following, taken)

        assert 200 == taken.seq
        assert stream.statistics().bytes <= 1000

    def test_what_was_there_does_not_count(self) -> None:
        """Whoever asks for the past gets it in peace: only what comes after makes a client slow."""
        given = [AgentWarned(agent="a", code="c", text="x" * 50) for _ in range(300)]
        stream = stream_of(*given)
        following, taken, lags = follow(stream, 10), Taken(10), []
        for event in given[:100]:
            stream.append(event)
            taken.take(following.take(0, 1000))
            lags.append((following.seq, following.lag_bytes))
        size = len(stream.read(300)[1][0][1])

        assert [(stream_lag(seq, 301 + place) * size) for place, (seq, _) in enumerate(lags)] == [
            lag for _, lag in lags
        ]
        assert numbers_are_whole(taken.events, 10)

    def test_news(self) -> None:
        """One that has looked at all is woken once, whatever comes."""
        watch = Watch()
        stream = EventStream("a")
        following = follow(stream, on_news=watch.news.append)
        following.rest()
        for _ in range(3):
            stream.append(AgentWarned(agent="a", code="c", text="t"))

        assert [following] == watch.news


def stream_lag(seq: int, end: int) -> int:
    """How many events a client is behind, of those that came after it attached at 300."""
    return end - max(seq, 300)


class TestSkipped:
    @pytest.mark.parametrize(("later", "told"), [(0.1, False), (0.6, True)])
    def test_told_in_time(self, later: float, told: bool) -> None:
        """Not at once, but before a second is over."""
        stream = stream_of(AgentWarned(agent="a", code="c", text="t"))
        following = follow(stream, types=())
        first = following.take(10.0, 2**20)
        second = following.take(10.0 + later, 2**20)

        assert first is None
        assert told == (second is not None)
        assert (following.due < 11) == (not told)

    def test_told_before_what_is_wanted(self) -> None:
        """In one message, in the order of their numbers."""
        stream = stream_of(AgentWarned(agent="a", code="c", text="t"))
        following, taken = follow(stream, types={"run_started"}), Taken(0)
        taken.take(following.take(0, 2**20))
        stream.append(RunStarted(run="r", agent="a", model="m", prompt="p"))
        stream.append(AgentWarned(agent="a", code="c", text="t"))
        taken.take(following.take(0, 2**20))

        assert [(1, "skipped"), (2, "run_started"), (3, "skipped")] == [
            (number, event["type"]) for number, event in taken.events
        ]

    def test_each_event_is_looked_at_once(self) -> None:
        """However long nothing is told."""
        stream = EventStream("a")
        looked: list[int] = []
        read: Callable[..., Any] = stream.read

        def watched(after: int, limit: int = 1000) -> Any:
            looked.append(limit)
            return read(after, limit)

        stream.read = watched  # type: ignore[method-assign]
        following = follow(stream, types=())
        for _ in range(100):
            stream.append(AgentWarned(agent="a", code="c", text="t"))
            following.take(0, 2**20)

        assert 100 == sum(looked)
