"""What a run comes to, and the state that it can be taken up from."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.codec import decode, encode
from protocol.errors import LimitReachedError
from protocol.events import ContinuationResolved
from protocol.limits import Counters, Limits, LimitState
from protocol.outcome import Outcome
from protocol.result import RunResult, StepResult
from protocol.run import Cancelled, Failed, FinalCall, Finished, QueuedMessage, RunEnd, RunState, result_of
from protocol.turns import OpaquePart, ReasoningPart, TextPart, ToolCall, ToolResult, Turn
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
    state = RunState("run-1", "go", Limits(max_tool_iterations=2, max_llm_calls=5), ("child",))
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
        "spent": USAGE,
        "turn": turn,
        "outcome": Outcome("calls", True, "why"),
        "results": {"c1": result},
        "counted": True,
        "decision": ContinuationResolved(run="run-1", request="q1", outcome="approved", by="me", granted=2),
        "open_request": "q1",
        "final": FinalCall(LIMIT, "say", True),
        "final_calls": 1,
        "unfinalized": {"llm_calls"},
        "shown": ["he", "llo"],
        "texts": ["one"],
        "steps": [StepResult(0, "t", "r", (call,), (result,), "tool_calls", USAGE, 0.5, True)],
        "steering": [QueuedMessage("m1", "also")],
        "stop_requested": "enough",
        "context_tokens": 6,
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
    plain = RunState("run-1", "go", Limits(max_tool_iterations=2, max_llm_calls=5), ("child",))
    unset = [
        field.name
        for field in RunState.__attrs_attrs__
        if getattr(plain, field.name) == getattr(full_state(), field.name)
    ]

    assert ["run", "prompt", "limits", "agent_path"] == unset


def fold(end: RunEnd, state: RunState | None = None) -> RunResult:
    state = state or RunState("r", "go", Limits(), texts=["one", "", "two"])
    return result_of(state, end, messages=(), usage=USAGE, llm_calls=3, elapsed_seconds=1.5)


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

    assert {"run", "steps", "messages", "undelivered"} == {f.name for f in RunResult.__attrs_attrs__} - {
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
