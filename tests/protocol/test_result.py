"""What a run comes to, and the state that it can be taken up from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from protocol.codec import decode, encode
from protocol.errors import LimitReachedError
from protocol.events import ContinuationResolved, PendingCall
from protocol.limits import Counters, Limits, LimitState
from protocol.outcome import Outcome
from protocol.result import RunResult, StepResult
from protocol.run import (
    Asked,
    Cancelled,
    Failed,
    FinalCall,
    Finished,
    Kept,
    Pause,
    QueuedMessage,
    RunEnd,
    RunState,
    result_of,
)
from protocol.spending import Spending
from protocol.turns import (
    AssistantMessage,
    Hop,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Turn,
    Unfinished,
    UserMessage,
)
from protocol.usage import Usage

LIMIT = LimitState("tool_iterations", 2, 2)
USAGE = Usage(1, 2, 3, 4, 5, True)


def full_state() -> RunState:
    """A state with every field set."""
    call = ToolCall("c1", "add", '{"a":1}', None, "v1")
    turn = Turn(
        (TextPart("t"), ReasoningPart("r", "s"), call, OpaquePart("x", "{}", "c1")),
        "tool_calls",
        "tool_use",
        USAGE,
        "complete",
        "resp-1",
        3,
    )
    result = ToolResult("c1", "add", "ok", "1", True)
    limits = Limits(
        max_tool_iterations=2,
        max_llm_calls=5,
        max_tool_calls=6,
        max_total_tokens=7,
        max_cost=0.125,
        wall_clock_seconds=9,
    )
    state = RunState("run-1", "go", limits, ("child",))
    values: dict[str, Any] = {
        "window_max": 3,
        "step": 1,
        "window": 2,
        "tool_iterations": 4,
        "tool_calls": 5,
        "reasks": 1,
        "reask": "again",
        "reasked_as": "empty",
        "reservation": 7,
        "sent": True,
        "spent": Spending(USAGE, None, 7, 0.125),
        "turn": turn,
        "outcome": Outcome("calls", True, "why"),
        "results": {"c1": result},
        "counted": True,
        "uncontinued": LimitState("llm_calls", 5, 5),
        "resumed": AssistantMessage((TextPart("half"),), True),
        "decision": ContinuationResolved(run="run-1", request="q1", outcome="approved", by="me", granted=2),
        "offered": ("add", "look"),
        "open_request": "q1",
        "approvals": {"c1": Asked("q2", "d")},
        "stored": "turn",
        "closing": Finished("llm_calls", "stop", limit=LIMIT),
        "leaving": True,
        "entering": ["c1"],
        "pause": Pause("q3", (PendingCall("c1", "add", {"a": [1, None]}),), {"c1": result}),
        "overrun": LimitState("tool_calls", 6, 6),
        "tool_stop": "",
        "acting": "expert",
        "transfer": "another",
        "kept": Kept(None, (UserMessage("a"), AssistantMessage(turn.parts), ToolMessage((result,))), 3),
        "custom_data": {"seen": [1, 2.5, None, "ü"]},
        "continues": 2,
        "obeyed_choice": True,
        "spent_choice": True,
        "final": FinalCall(LIMIT, "say", True, "why", "length"),
        "final_calls": 1,
        "unfinalized": {"llm_calls"},
        "shown": ["he", "llo"],
        "texts": ["one"],
        "steps": [
            StepResult(
                0, "t", "r", (call,), (result,), "tool_calls", USAGE, 0.5, True, 0.25, (Hop("i", "length", USAGE),)
            )
        ],
        "steering": [QueuedMessage("m1", "also")],
        "stop_requested": "enough",
        "context_tokens": 6,
        "unfinished": Unfinished("token", "i", ("i",)),
        "step_began": 1.5,
    }
    for name, value in values.items():
        setattr(state, name, value)
    return state


def test_a_state_survives_being_written_down() -> None:
    """Everything in it encodes, and decodes to what it was."""
    state = full_state()

    assert state == decode(encode(state), RunState)


def test_every_field_was_tried() -> None:
    """The state above leaves no field at its default, whatever is added to it."""
    plain = RunState("run-1", "go", full_state().limits, ("child",))
    unset = [
        field.name
        for field in msgspec.structs.fields(RunState)
        if getattr(plain, field.name) == getattr(full_state(), field.name)
    ]

    assert ["run", "prompt", "limits", "agent_path"] == unset


RESULT = ToolResult("c1", "add", "not_run", "größe", False)
WRITTEN = (
    RunState("r", "go", Limits()),
    Pause("q", ()),
    Pause("q", (PendingCall("c1", "add", {"a": {"b": [True]}}), PendingCall("c2", "look", {})), {"c1": RESULT}),
    Kept(),
    Kept(system=None),
    Kept(system=""),
    Kept("be brief", (), 4),
    Kept(messages=(UserMessage("a"), AssistantMessage((TextPart("b"),), True), ToolMessage((RESULT,))), replaces=2),
    FinalCall(None),
    FinalCall(LimitState("cost", 0.5, 0.75), "say", True, "why", "length"),
    QueuedMessage("m1", "also"),
)


@pytest.mark.parametrize("value", WRITTEN, ids=lambda value: type(value).__name__)
def test_what_a_state_is_made_of_survives_too(value: Any) -> None:
    """Each part alone, with nothing set and with everything: what was not set is still not set, and `None` is `None`."""
    assert value == decode(encode(value), type(value))


def test_what_was_kept_is_told_from_what_was_taken_away() -> None:
    """A hook that set no system prompt, and one that took it away, are two (H2); so they are after a restart."""
    untouched, taken_away = (decode(encode(kept), Kept) for kept in (Kept(), Kept(system=None)))

    assert untouched.system is msgspec.UNSET
    assert taken_away.system is None


def test_a_state_can_be_changed_after_it_was_read() -> None:
    """What was decoded is a state like any other: its lists, sets and mappings grow on."""
    state = decode(encode(full_state()), RunState)
    state.unfinalized.add("cost")
    state.results["c2"] = RESULT
    state.texts.append("more")
    assert state.pause is not None
    state.pause.results["c2"] = RESULT

    assert {"llm_calls", "cost"} == state.unfinalized
    assert state == decode(encode(state), RunState)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ('{"run":"r","prompt":"go"}', "limits"),
        ('{"run":"r","prompt":"go","limits":{},"step":"one"}', r"\$\.step"),
        ('{"run":"r","prompt":"go","limits":{},"pause":{"request":"q"}}', r"calls.*\$\.pause"),
        ('{"run":"r","prompt":"go","limits":{},"final":{"limit":{"name":"x","max":1,"used":1}}}', r"\$\.final\.limit"),
    ],
)
def test_a_state_that_is_none_is_refused(data: str, where: str) -> None:
    """A broken or foreign file is named as such, with the place, and not run half."""
    with pytest.raises(msgspec.ValidationError, match=where):
        decode(data, RunState)


def fold(end: RunEnd | None, state: RunState | None = None) -> RunResult:
    state = state or RunState("r", "go", Limits(), texts=["one", "", "two"])
    return result_of(state, end, messages=(), usage=USAGE, llm_calls=3, cost=None, elapsed_seconds=1.5)


def test_an_answer_is_the_whole_text() -> None:
    """Only the model's whole answer, not what was said on the way."""
    result = fold(Finished("model", "stop", answer="the answer"))

    assert ("the answer", True, "model", "stop") == (
        result.text,
        result.answered,
        result.stopped_by,
        result.finish_reason,
    )


def test_without_an_answer_all_visible_texts_are_there() -> None:
    """In order, parted by a blank line, then the runtime's own text (section 7)."""
    finished = Finished("tool_iterations", "max_iterations", limit=LIMIT, finalized="fallback", closing_text="closing")
    result = fold(finished)

    assert "one\n\ntwo\n\nclosing" == result.text
    assert not result.answered
    assert LIMIT == result.limit


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (Failed(ValueError("x"), "model_error", "told"), ("failure", "model_error", None)),
        (Cancelled("enough"), ("cancel", "cancelled", "enough")),
    ],
)
def test_a_partial_result_says_how_it_ended(end: RunEnd, expected: tuple[str, str, str | None]) -> None:
    """A failed or cancelled run has a result too: what it had come to."""
    result = fold(end)

    assert expected == (result.stopped_by, result.finish_reason, result.stop_reason)
    assert not result.answered
    assert "one\n\ntwo" == result.text


def test_a_paused_run_has_a_result() -> None:
    """It says that it waits for its caller, with the finish reason of the last step that is closed (section 7)."""
    begun, full = fold(None), fold(None, full_state())

    assert [("pending_tools", "stop"), ("pending_tools", "tool_calls")] == [
        (result.stopped_by, result.finish_reason) for result in (begun, full)
    ]
    assert ("one\n\ntwo", False) == (begun.text, begun.answered)


@pytest.mark.parametrize("cost", [None, 0.0, 1.5])
def test_an_unknown_cost_stays_unknown(cost: float | None) -> None:
    """Unknown is not 0 (B3)."""
    state = RunState("r", "go", Limits())
    result = result_of(state, None, messages=(), usage=USAGE, llm_calls=1, cost=cost, elapsed_seconds=0.0)

    assert cost == result.cost == result.summary().cost


def test_counters_and_undelivered_messages_come_from_the_state() -> None:
    """What was counted and what still waits is what the caller reads."""
    result = fold(Cancelled("enough"), full_state())

    assert Counters(steps=1, llm_calls=3, tool_iterations=4, window=2, tool_calls=5) == result.counters
    assert ("also",) == result.undelivered
    assert (6, USAGE, None, 1.5) == (result.context_tokens, result.usage, result.cost, result.elapsed_seconds)
    assert LIMIT == result.limit


def test_the_summary_is_the_result_without_its_bulk() -> None:
    """What the terminal event carries is the result, field by field, without messages and steps."""
    result = fold(Finished("model", "stop", answer="a"))
    summary = result.summary()

    assert {"run", "steps", "messages", "undelivered", "unfinished"} == {f.name for f in RunResult.__attrs_attrs__} - {
        f.name for f in type(summary).__attrs_attrs__
    }
    for field in type(summary).__attrs_attrs__:
        assert getattr(result, field.name) == getattr(summary, field.name)


@pytest.mark.parametrize(
    ("answer", "limit", "raises"),
    [(None, LIMIT, True), ("whole", LIMIT, False), (None, None, False), ("whole", None, False)],
)
def test_a_limit_is_an_error_only_where_it_is_asked_for(
    answer: str | None, limit: LimitState | None, raises: bool
) -> None:
    """`raise_for_limit` raises exactly where a limit was reached and no whole answer came."""
    result = fold(Finished("tool_iterations", "max_iterations", answer=answer, limit=limit))
    if not raises:
        result.raise_for_limit()
        return
    with pytest.raises(LimitReachedError, match=r"the limit tool_iterations \(2\) was reached, used 2") as caught:
        result.raise_for_limit()

    assert result is caught.value.partial
