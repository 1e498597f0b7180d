"""The number of model calls is bounded by what the settings say, to the last one: the engine against a small model."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.models.scripted import call, reply
from protocol.events import ContinuationRequired
from protocol.gate import ContinuationRequest, ContinuationResponse
from protocol.turns import Turn
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import APPROVE, DECLINE, DISCARD, agent

from .arithmetic import Count, Kind, Plan, count, count_without_progress

house = settings(max_examples=150, deadline=None, derandomize=True, database=None)
RESPONSES = {"approve": APPROVE, "discard": DISCARD, "decline": DECLINE}
plans = st.builds(
    Plan,
    window=st.integers(1, 4),
    most_calls=st.none() | st.integers(1, 12),
    tool_final=st.booleans(),
    llm_final=st.booleans(),
    decisions=st.none() | st.lists(st.sampled_from(["approve", "discard", "decline"]), max_size=4).map(tuple),
)


def ended(played: Played) -> str:
    return "answer" if played.result.answered else played.result.stopped_by


@pytest.mark.slow
@house
@given(plans)
def test_windows_gate_and_finalization(plan: Plan) -> None:
    """A model that always asks for a tool makes exactly the calls and rounds that the settings come to."""
    answers = iter(plan.decisions or ())

    def provider(_request: ContinuationRequest) -> ContinuationResponse:
        return RESPONSES[next(answers, "decline")]

    spec = agent(
        calls_while_on(),
        Bench().tool(),
        max_tool_iterations=plan.window,
        max_llm_calls=plan.most_calls,
        tool_iteration_limit_finalization="" if plan.tool_final else None,
        llm_call_limit_finalization="" if plan.llm_final else None,
        continuation=None if plan.decisions is None else provider,
    )
    played = play(spec)
    counters = played.result.counters
    asked = tuple((event.max_iterations or 0, event.total_iterations) for event in played.all(ContinuationRequired))

    assert count(plan) == Count(counters.llm_calls, counters.tool_iterations, ended(played), asked)
    assert len(played.asked) == counters.llm_calls


@pytest.mark.slow
@house
@given(
    st.lists(st.sampled_from(["call", "empty", "malformed", "cut"]), max_size=8),
    st.integers(0, 3),
    st.none() | st.integers(1, 8),
)
def test_turns_without_progress(kinds: list[Kind], max_reasks: int, most_calls: int | None) -> None:
    """Turns that bring nothing are asked for again a few times in a row, within the model calls; then they are the end."""
    numbers = itertools.count(1)
    turns: dict[str, Turn] = {
        "empty": Turn((), "stop", "stop"),
        "malformed": Turn((), "malformed", "malformed"),
    }

    def turn(kind: Kind) -> Turn:
        if kind in turns:
            return turns[kind]
        return reply("", call("t", {}, id=f"c{next(numbers)}"), finish="length" if kind == "cut" else None)

    spec = agent(
        [*(turn(kind) for kind in kinds), "done"],
        Bench().tool(),
        max_llm_calls=most_calls,
        max_tool_iterations=20,
        max_reasks=max_reasks,
    )
    played = play(spec)
    counters, result = played.result.counters, played.result
    end = "answer" if result.answered else result.stopped_by if result.stopped_by != "model" else result.finish_reason
    expected = count_without_progress(kinds, max_reasks=max_reasks, most_calls=most_calls)

    assert expected == Count(counters.llm_calls, counters.tool_iterations, end)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(window=2), Count(3, 2, "tool_iterations")),
        (Plan(window=2, most_calls=2, llm_final=True), Count(2, 1, "answer")),
        (Plan(window=2, most_calls=1, tool_final=True), Count(1, 1, "llm_calls")),
        (Plan(window=2, decisions=()), Count(4, 2, "answer", ((2, 2),))),
        (Plan(window=2, most_calls=6, decisions=("discard",)), Count(6, 4, "llm_calls", ((2, 2),))),
        (Plan(window=2, most_calls=3, decisions=()), Count(3, 2, "llm_calls")),
        (Plan(window=2, most_calls=5, decisions=("approve",), llm_final=True), Count(5, 4, "answer", ((2, 2),))),
    ],
)
def test_the_small_model_knows_the_tables(plan: Plan, expected: Count) -> None:
    """Cells of the tables, by hand: the small model is not made after the engine."""
    assert expected == count(plan)
