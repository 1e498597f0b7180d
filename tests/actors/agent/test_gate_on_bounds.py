"""`gate_on`: grants and their bounds, several limits at once, and where nobody is asked (G1, G3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors import Budget, ContinuationRequest, ContinuationResponse, always
from actors.models.scripted import call, reply
from protocol.errors import SpecError
from protocol.events import ContinuationRequired
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.costs import TEN, Prices, spec
from tests.support.play import play
from tests.support.scripts import Bench, results_in
from tests.support.specs import APPROVE, DECLINE, Answers


def wants(rounds: int | None = None) -> Callable[[ModelRequest], Turn]:
    """A model that calls a tool, for so many rounds; each turn reports ten tokens. `None`: while there are tools."""

    def follow(request: ModelRequest) -> Turn:
        done = results_in(request.messages)
        if not request.tools_on or done == rounds:
            return reply("final", usage=TEN)
        return reply("", call("t", {}, id=f"c{done}"), usage=TEN)

    return follow


def test_the_clock_stands_still_while_the_gate_is_asked() -> None:
    """B5: 75 seconds of work, an hour less a bit of waiting, and 25 more of work: no limit is met."""

    async def slow(_request: ContinuationRequest) -> ContinuationResponse:
        await trio.sleep(500)
        return ContinuationResponse("approve", grant=1)

    agent = spec(
        wants(3),
        Bench().tool(seconds=25),
        wall_clock_seconds=100,
        gate_on={"wall_clock"},
        continuation=slow,
        finalization_window_seconds=25,
    )
    played = play(agent)

    assert ("final", None, 575.0) == (played.result.text, played.result.limit, played.seconds)


def test_a_grant_is_in_the_limits_unit() -> None:
    """G3: `grant` raises the limit by so many calls, and no more than that."""
    answers = Answers(ContinuationResponse("approve", grant=2), ContinuationResponse("approve", grant=1), DECLINE)
    played = play(spec(wants(), Bench().tool(), max_llm_calls=3, gate_on={"llm_calls"}, continuation=answers))

    assert [(3, 2), (5, 4), (6, 5)] == [(q.limit.max, q.limit.used) for q in answers.asked]
    assert [3, 3, 3] == [q.default_grant for q in answers.asked]
    assert 6 == len(played.asked)


def test_a_grant_that_is_too_small_is_asked_again() -> None:
    """G1: as long as the next step would exceed the limit, the question is asked."""
    answers = Answers(*[ContinuationResponse("approve", grant=4)] * 3)
    played = play(spec(wants(1), Bench().tool(), max_total_tokens=10, gate_on={"total_tokens"}, continuation=answers))

    assert [(10, 10), (14, 10), (18, 10)] == [(q.limit.max, q.limit.used) for q in answers.asked]
    assert "final" == played.result.text


def test_the_first_call_may_be_asked_about() -> None:
    """G1: where one call is all there is, the question comes before it."""
    answers = Answers(DECLINE)
    played = play(spec(wants(), Bench().tool(), max_llm_calls=1, gate_on={"llm_calls"}, continuation=answers))

    assert [(1, 0)] == [(q.limit.max, q.limit.used) for q in answers.asked]
    assert ("final", "max_llm_calls", 1) == (played.result.text, played.result.finish_reason, len(played.asked))


def test_nobody_is_asked_where_another_limit_leaves_no_room() -> None:
    """G1: the tokens are used up and are not on offer: a grant of money would not help, so nobody is asked for one."""
    played = play(
        spec(
            wants(),
            Bench().tool(),
            max_total_tokens=30,
            max_cost=3.0,
            prices=Prices(call=1.0),
            gate_on={"cost"},
            continuation=Answers(),
        )
    )

    assert LimitState("total_tokens", 30, 30) == played.result.limit


def test_where_the_bodies_of_a_budget_are_used_up_the_finalization_is_not_held_up_by_the_gate() -> None:
    """G1, F3: nobody is asked for what those above have not left; the final call answers, as it does without a gate."""
    played = play(
        spec(
            wants(),
            Bench().tool(),
            budget=Budget(max_tool_calls=2),
            gate_on={"tool_calls"},
            continuation=Answers(),
            tool_iteration_limit_finalization="",
            max_steps=9,
        )
    )

    assert ("final", "model", LimitState("tool_calls", 2, 2)) == (
        played.result.text,
        played.result.finalized,
        played.result.limit,
    )


def test_two_limits_are_asked_about_one_after_the_other() -> None:
    """G1: each limit that the next step would exceed has its question; both approved, the run goes on."""
    answers = Answers(APPROVE, APPROVE)
    played = play(
        spec(
            wants(3),
            Bench().tool(),
            max_llm_calls=3,
            max_tool_calls=2,
            gate_on={"llm_calls", "tool_calls"},
            continuation=answers,
        )
    )

    assert [("llm_calls", 2), ("tool_calls", 2)] == [(q.limit.name, q.limit.used) for q in answers.asked]
    assert ("final", None) == (played.result.text, played.result.limit)


def test_of_two_limits_a_decline_of_the_first_ends_it() -> None:
    """G5: after a decline nothing more is asked; the limit told is the one that was declined."""
    answers = Answers(DECLINE)
    options: dict[str, Any] = {"max_llm_calls": 3, "max_tool_calls": 2, "gate_on": ["tool_calls", "llm_calls"]}
    played = play(spec(wants(), Bench().tool(), continuation=answers, **options))

    assert LimitState("llm_calls", 3, 2) == played.result.limit
    assert 1 == len(answers.asked)


def test_the_gate_comes_before_the_finalization_of_the_same_limit() -> None:
    """G1: a limit named in `gate_on` is asked about first; its finalization text serves the final call after a decline."""
    options: dict[str, Any] = {"max_llm_calls": 3, "llm_call_limit_finalization": "Last one."}
    answers = Answers(APPROVE, DECLINE)
    played = play(spec(wants(), Bench().tool(), gate_on={"llm_calls"}, continuation=answers, **options))

    assert [(3, 2), (6, 5)] == [(q.limit.max, q.limit.used) for q in answers.asked]
    assert ("Last one.", "max_llm_calls") == (played.asked[-1].tail, played.result.finish_reason)


def test_always_does_not_ask_without_end() -> None:
    """R5: each approval lets at least one step be made, so that a policy that always approves cannot hang a run."""
    played = play(
        spec(wants(12), Bench().tool(), max_llm_calls=2, gate_on={"llm_calls"}, continuation=always(), max_steps=99)
    )

    assert ("final", 13, 6) == (
        played.result.text,
        len(played.asked),
        len(played.all(ContinuationRequired)),
    )


def test_names_that_are_no_limits_are_refused() -> None:
    """Section 6: `gate_on` takes the names of limits, and needs somebody to ask."""
    with pytest.raises(
        SpecError, match="gate_on must be a set of cost, llm_calls, tool_calls, total_tokens, wall_clock"
    ):
        spec([], gate_on={"money"}, continuation=always())
    with pytest.raises(SpecError, match="nobody is there to ask: set continuation="):
        spec([], gate_on={"cost"})
