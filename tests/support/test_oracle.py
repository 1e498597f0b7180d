"""The oracle finds each fault that is put into a stream of events that was right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import msgspec
import pytest

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, Run
from protocol.events import (
    ContinuationRequired,
    ContinuationResolved,
    Event,
    Finalizing,
    LimitReached,
    MessageDelivered,
    MessageQueued,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage

from .conversation import history_faults, summary_faults
from .oracle import check_events, event_faults
from .play import Played, event_of, play
from .scripts import Bench, calls_while_on
from .strict import StrictModel

E = TypeVar("E", bound=Event)
Edit = Callable[[list[Event]], object]


def a_run() -> Played:
    """Two rounds, an approval that discards, a steering message, a decline, and the final call."""
    answers = iter([
        ContinuationResponse("approve", discard_tool_calls=True, grant=1),
        ContinuationResponse("decline"),
    ])

    def decide(_request: ContinuationRequest) -> ContinuationResponse:
        return next(answers)

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.steer("be brief")

    spec = AgentSpec(
        model=StrictModel(calls_while_on()),
        tools=[Bench().tool(seconds=1)],
        max_tool_iterations=1,
        continuation=decide,
    )
    return play(spec, act=act)


@pytest.fixture(scope="module")
def played() -> Played:
    return a_run()


def numbered(events: Sequence[Event]) -> list[tuple[int, Event]]:
    return list(enumerate(events, start=1))


def nth(events: list[Event], kind: type[E], number: int = 1) -> int:
    return [place for place, event in enumerate(events) if isinstance(event, kind)][number - 1]


def remove(kind: type[Event], number: int = 1) -> Edit:
    return lambda events: events.pop(nth(events, kind, number))


def twice(kind: type[Event], number: int = 1) -> Edit:
    return lambda events: events.insert(nth(events, kind, number), events[nth(events, kind, number)])


def swap(kind: type[Event], number: int = 1) -> Edit:
    """The event and the one after it change places."""

    def edit(events: list[Event]) -> None:
        place = nth(events, kind, number)
        events[place], events[place + 1] = events[place + 1], events[place]

    return edit


def change(kind: type[Event], number: int = 1, **fields: object) -> Edit:
    def edit(events: list[Event]) -> None:
        place = nth(events, kind, number)
        events[place] = msgspec.structs.replace(events[place], **fields)

    return edit


def change_summary(**fields: object) -> Edit:
    def edit(events: list[Event]) -> None:
        end = events[-1]
        assert isinstance(end, RunFinished)
        events[-1] = msgspec.structs.replace(end, summary=attrs.evolve(end.summary, **fields))  # type: ignore[arg-type]

    return edit


def test_the_events_of_a_run_are_right(played: Played) -> None:
    """Nothing is found in the events of a real run."""
    check_events(numbered(played.events))


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (remove(RunStarted), "is not run_started"),
        (twice(RunStarted), "a second start"),
        (remove(RunFinished), "has no terminal event"),
        (twice(RunFinished), "an event after the end of its run"),
        (swap(StepFinished, 5), "an event after the end of its run"),
        (remove(ToolFinished), "calls without an end"),
        (twice(ToolFinished), "is finished"),
        (twice(ToolRequested), "was requested before"),
        (remove(ToolRequested), "is None"),
        (remove(ToolStarted), "started=True, but c1 is requested"),
        (twice(ToolStarted), "c1 is started"),
        (change(ToolFinished, started=False), "started=False, but c1 is started"),
        (change(ToolFinished, status="not_run"), "not_run after a start"),
        (change(ToolFinished, status="denied"), "denied after a start"),
        (change(ToolFinished, 2, status="ok"), "ok without a start"),
        (change(ToolFinished, 2, status="interrupted"), "interrupted without a start"),
        (change(ToolFinished, text=""), "a result without text"),
        (remove(ContinuationResolved), "requests are still open"),
        (twice(ContinuationResolved), "is not open"),
        (twice(ContinuationRequired), "was asked before"),
        (remove(ContinuationRequired), "is not open"),
        (change(ContinuationRequired, tool_calls=()), "it asks about [], pending are ['c2']"),
        (remove(LimitReached), "no limit_reached directly before it"),
        (twice(LimitReached), "this one's limit is None"),
        (swap(LimitReached), "no limit_reached directly before it"),
        (remove(StepFinished), "step 0 has not finished"),
        (remove(StepStarted, 2), "the step in hand is None"),
        (change(StepStarted, 2, step=5), "the next step is 1"),
        (change(StepStarted, 3, final=True), "no step in which tools may be requested"),
        (remove(MessageDelivered), "messages still wait"),
        (remove(MessageQueued), "does not wait"),
        (change(StepFinished, agent_path=("child",)), "agent_path is ('child',)"),
        (change_summary(answered=True, text=" "), "an answer without text"),
        (change_summary(stopped_by="failure"), "stopped_by"),
        (change_summary(limit=None), "finalized without a limit"),
    ],
)
def test_each_fault_is_found(played: Played, edit: Edit, told: str) -> None:
    """One event too few, too many, misplaced or changed is found and named."""
    events: list[Event] = list(played.events)
    edit(events)

    assert told in "; ".join(event_faults(numbered(events)))


def test_counters_are_counted_again(played: Played) -> None:
    """The terminal event's counters are held against the events."""
    events: list[Event] = list(played.events)
    change_summary(counters=attrs.evolve(played.result.counters, steps=9, tool_calls=9))(events)

    assert [
        f"{len(events)} run_finished: 9 steps, 5 finished",
        f"{len(events)} run_finished: 9 tool calls, 2 started",
    ] == event_faults(numbered(events))


def test_a_limit_without_its_event_is_found(played: Played) -> None:
    """A run that a limit ended must say so directly before its terminal event, unless a gate had said it."""
    stop = AgentSpec(model=StrictModel(calls_while_on()), tools=[Bench().tool()], max_tool_iterations=1)
    events: list[Event] = list(play(stop).events)
    del events[nth(events, LimitReached)]

    assert "without limit_reached directly before it" in "; ".join(event_faults(numbered(events)))


def test_a_gap_in_the_numbers_is_found(played: Played) -> None:
    """Numbers run on by one."""
    events = numbered(played.events)
    del events[3]

    assert "the numbers have a gap" in "; ".join(event_faults(events))


def test_a_run_must_not_outlive_the_one_above_it(played: Played) -> None:
    """A run ends after all runs below it."""
    events: list[Event] = list(played.events)
    child = RunStarted(run="below", agent_path=("child",), agent="child", model="m", prompt="p")
    events.insert(4, child)

    assert "it ended before the runs below it: ['below']" in "; ".join(event_faults(numbered(events)))


def replaced(messages: Sequence[Message], place: int, *new: Message) -> list[Message]:
    return [*messages[:place], *new, *messages[place + 1 :]]


def test_the_conversation_of_a_run_is_right(played: Played) -> None:
    """Nothing is found in the conversation of a real run."""
    assert [] == history_faults(played.messages, played.events)


@pytest.mark.parametrize(
    ("place", "new", "told"),
    [
        (0, (), "'go' is not stored"),
        (0, (UserMessage(" "),), "message 0 is empty"),
        (1, (), "holds the results ['c1'], due are those of []"),
        (1, (AssistantMessage(()),), "is empty"),
        (2, (), "stored are the calls ['c2', 'c3', 'c4']"),
        (2, (ToolMessage((ToolResult("c1", "t", "ok", "2", True),)),), "stored is ('c1', 't', 'ok', '2', True)"),
        (2, (ToolMessage((ToolResult("c1", "t", "error", "1", True),)),), "stored is ('c1', 't', 'error', '1', True)"),
        (3, (), "'be brief' is not stored"),
    ],
)
def test_each_fault_of_a_conversation_is_found(played: Played, place: int, new: tuple[Message, ...], told: str) -> None:
    """A message that is missing, empty or not what the events said is found and named."""
    messages = replaced(played.messages, place, *new)

    assert told in "; ".join(history_faults(messages, played.events))


def test_calls_at_the_end_and_twice_are_found(played: Played) -> None:
    """A call without results, a repeated id and a partial message with calls are found."""
    asking = played.messages[1]
    assert isinstance(asking, AssistantMessage)
    partial = msgspec.structs.replace(asking, partial=True)
    found = "; ".join(history_faults([*played.messages, partial], played.events))

    assert "the calls ['c1'] have no results" in found
    assert "repeats the id 'c1'" in found
    assert "is partial and has calls" in found


def test_a_summary_that_differs_is_found(played: Played) -> None:
    """What was told and what was returned must be the same."""
    summary = played.result.summary()

    assert [] == summary_faults(summary, summary)
    assert ["text: told was 'final', returned was 'x'"] == summary_faults(summary, attrs.evolve(summary, text="x"))


def test_the_stage_lets_no_fault_pass() -> None:
    """A scene whose runs break a rule fails, whatever the scene itself looked at."""

    def complain(_request: ModelRequest) -> str:
        model.faults.append("made up")
        return "ok"

    model = StrictModel(complain)
    with pytest.raises(AssertionError, match="made up"):
        play(AgentSpec(model=model))


def test_the_run_of_these_tests_has_all_kinds(played: Played) -> None:
    """The run whose events are broken here has every kind of event that is broken."""
    kinds = {ToolStarted, ContinuationRequired, Finalizing, MessageDelivered, LimitReached}

    assert kinds <= {type(event) for event in played.events}
