"""Time that counts only while somebody works."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.stopwatch import Activity, Stopwatch

Deed: TypeAlias = Literal["start", "wait", "resume", "delegate", "take_back", "finish"]


@attrs.define
class Clock:
    """A clock that somebody sets."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        ([(0, "start")], 10),
        ([(3, "start")], 7),
        ([(0, "start"), (4, "finish")], 4),
        ([(0, "start"), (2, "wait")], 2),
        ([(0, "start"), (2, "wait"), (7, "resume")], 5),
        ([(0, "start"), (2, "wait"), (5, "finish")], 2),
        ([(0, "start"), (2, "wait"), (3, "wait"), (5, "resume"), (8, "resume")], 4),
        ([(0, "start"), (2, "delegate"), (6, "take_back")], 6),
        ([(0, "start"), (2, "delegate"), (3, "delegate"), (5, "take_back"), (9, "take_back")], 3),
        ([(0, "start"), (2, "wait"), (3, "delegate"), (5, "resume"), (8, "take_back")], 4),
        ([(0, "start"), (2, "delegate"), (3, "wait"), (5, "take_back"), (8, "resume")], 4),
        ([(0, "start"), (4, "finish"), (5, "wait"), (6, "resume"), (7, "delegate"), (8, "take_back")], 4),
        ([(0, "start"), (4, "finish"), (5, "start"), (6, "finish")], 4),
        ([(2, "wait"), (4, "start"), (7, "resume")], 3),
    ],
    ids=[
        "works on",
        "begins later",
        "is finished",
        "waits on",
        "waits and goes on",
        "is finished while it waits",
        "waits within a wait",
        "delegates",
        "delegates twice",
        "what it started outlasts its wait",
        "waits longer than what it started",
        "nothing counts after the end",
        "the end is for good",
        "waits before it has begun",
    ],
)
def test_what_one_activity_counts(deeds: list[tuple[int, Deed]], expected: int) -> None:
    """Of ten seconds, those in which it works itself: not those of a wait, nor those of a run that it has started."""
    clock = Clock()
    watch = Stopwatch(60, clock)
    activity = Activity((watch,))
    began = clock.now
    for second, deed in deeds:
        clock.now = began + second
        getattr(activity, deed)()
    clock.now = began + 10

    assert expected == watch.used


def test_an_activity_that_has_not_begun_counts_nothing() -> None:
    """Neither its making nor time before its start is work."""
    clock = Clock()
    watch = Stopwatch(5, clock)
    Activity((watch,))
    clock.now += 10

    assert (0.0, False, None) == (watch.used, watch.over, watch.deadline)


def test_several_at_once_count_once() -> None:
    """Two that work at the same time use one second per second; the watch stands still when the last one does."""
    clock = Clock()
    watch = Stopwatch(60, clock)
    first, second = Activity((watch,)), Activity((watch,))
    seen = []
    for seconds, deed in (
        (1, first.start),
        (2, second.start),
        (3, first.wait),
        (4, second.finish),
        (5, first.resume),
        (6, first.finish),
    ):
        clock.now += seconds
        deed()
        seen.append((watch.used, watch.deadline is not None))

    assert [(0, True), (2, True), (5, True), (9, False), (9, True), (15, False)] == seen


def test_one_activity_drives_all_its_watches() -> None:
    """The run's, its budget's and the tool's that started it: each has its own limit and its own sum."""
    clock = Clock()
    run, budget = Stopwatch(5, clock), Stopwatch(20, clock)
    ours, others = Activity((run, budget)), Activity((budget,))
    others.start()
    clock.now += 3
    ours.start()
    others.finish()
    clock.now += 5
    ours.wait()
    clock.now += 50

    assert [(5, True), (8, False)] == [(watch.used, watch.over) for watch in (run, budget)]


def test_a_tool_that_waits_for_its_agent_stands_still() -> None:
    """A tool's time stands still while the run that it started waits for a person, however deep that run is (N3)."""
    clock = Clock()
    outer, inner = Stopwatch(60, clock), Stopwatch(60, clock)
    body = Activity((outer,))
    body.start()
    clock.now += 1
    body.delegate()
    child = Activity((outer,))
    child.start()
    clock.now += 2
    child.wait()  # for its tools
    childs_body = Activity((outer, inner))
    childs_body.start()
    clock.now += 4
    childs_body.delegate()
    grandchild = Activity((outer, inner))
    grandchild.start()
    clock.now += 8
    grandchild.wait()  # for a person
    clock.now += 1000
    while_it_waits = outer.used, inner.used
    grandchild.resume()
    clock.now += 16
    grandchild.finish()
    childs_body.take_back()
    clock.now += 32
    childs_body.finish()
    child.resume()
    child.finish()
    body.take_back()
    clock.now += 64
    body.finish()

    assert [(15, 12), (127, 60)] == [while_it_waits, (outer.used, inner.used)]


@pytest.mark.parametrize(
    ("used", "over"), [(0.0, False), (4.999, False), (5.0, True), (5.0 - 1e-9, True), (5.001, True)]
)
def test_when_a_limit_is_reached(used: float, over: bool) -> None:
    """At its last second, and not before; a rounding of the clock is no second."""
    clock = Clock(now=0.0)
    watch = Stopwatch(5.0, clock)
    watch.begin()
    clock.now = used

    assert over is watch.over


def test_the_deadline_moves_with_the_waits() -> None:
    """While somebody works it says when the limit will be reached; whoever watches is told each time it changes."""
    clock = Clock(now=0.0)
    watch = Stopwatch(10, clock)
    told: list[float | None] = []
    watch.watchers.append(lambda: told.append(watch.deadline))
    activity, other = Activity((watch,)), Activity((watch,))
    activity.start()
    clock.now = 3
    activity.wait()
    activity.wait()
    clock.now = 100
    activity.resume()
    activity.resume()
    other.start()
    clock.now = 102
    other.finish()
    watch.extend(5)
    activity.finish()
    watch.extend(1)

    assert [10, None, 107, 112, None, None] == told
    assert (5, 16) == (watch.used, watch.limit)


def test_a_limit_that_was_reached_is_open_again_after_a_grant() -> None:
    """What was used stays used: the grant is added to the limit."""
    clock = Clock(now=0.0)
    watch = Stopwatch(2, clock)
    watch.begin()
    clock.now = 3
    seen = [(watch.over, watch.deadline)]
    watch.extend(2)
    seen.append((watch.over, watch.deadline))
    clock.now = 4
    seen.append((watch.over, watch.deadline))

    assert [(True, 2), (False, 4), (True, 4)] == seen


def test_a_watcher_may_leave_while_it_is_told() -> None:
    """The others are told all the same."""
    watch = Stopwatch(5, Clock())
    told: list[str] = []

    def leave() -> None:
        told.append("leaves")
        watch.watchers.remove(leave)

    watch.watchers += [leave, lambda: told.append("stays")]
    watch.begin()
    watch.end()

    assert ["leaves", "stays", "stays"] == told


DEEDS: tuple[Deed, ...] = ("start", "wait", "resume", "delegate", "take_back", "finish")


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 2), st.sampled_from([*DEEDS, "look"]), st.sampled_from(["first", "both"])
        ),
        max_size=40,
    )
)
def test_what_is_used_is_the_time_in_which_anybody_works(deeds: list[tuple[int, int, str, str]]) -> None:
    """The measure of the union of all working intervals, second by second, whatever comes in whatever order."""
    clock = Clock(now=0.0)
    watches = {"first": Stopwatch(7, clock), "both": Stopwatch(1000, clock)}
    driven = [("first", "both"), ("both",), ("first", "both")]
    activities = [Activity(tuple([watches[name] for name in names])) for names in driven]
    depth = [{"start": 0, "wait": 0, "delegate": 0, "finish": 0} for _ in activities]
    seconds = {"first": 0, "both": 0}
    for wait, who, deed, looked_at in deeds:
        for _ in range(wait):
            clock.now += 1
            for name in seconds:
                seconds[name] += any(
                    name in names and d["start"] and not (d["wait"] or d["delegate"] or d["finish"])
                    for names, d in zip(driven, depth, strict=True)
                )
        mine = depth[who]
        undone = {"resume": "wait", "take_back": "delegate"}.get(deed)
        if deed == "look":
            watch = watches[looked_at]
            assert seconds[looked_at] == watch.used
            assert (seconds[looked_at] >= watch.limit) is watch.over
            continue
        if undone is not None:
            if not mine[undone] or not mine["start"]:
                continue  # nobody gives back what nobody took
            mine[undone] -= 1
        elif deed in {"wait", "delegate"} and not mine["start"]:
            continue
        else:
            mine[deed] += 1
        getattr(activities[who], deed)()

    assert seconds == {name: watch.used for name, watch in watches.items()}
    for name, watch in watches.items():
        left = None if watch.deadline is None else watch.deadline - clock.now
        assert left is None or left == watch.limit - seconds[name]
