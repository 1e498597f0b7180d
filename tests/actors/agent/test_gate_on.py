"""The gate asked about other limits than the window: `gate_on`, at a step boundary, with no pending calls (G1, G3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from actors import ContinuationRequest, ContinuationResponse, Run, remote
from actors.models.scripted import call, reply
from protocol.errors import ContinuationProviderError, RunCancelledError
from protocol.events import ContinuationRequired, ContinuationResolved, Finalizing, LimitReached
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import ToolMessage, Turn, UserMessage
from tests.support.costs import TEN, Prices, spec
from tests.support.play import Played, event_of, play
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


@attrs.frozen
class Case:
    """A limit that the gate is asked about."""

    name: str
    options: dict[str, Any]
    max: float
    asked_at: tuple[float, ...]
    """What is used at the first question, and at the second if the first is approved."""
    unit: str
    """As the texts of a decline call it."""
    reason: str
    tool_seconds: float = 0.0
    has_final_call: bool = True
    """Whether the limit leaves room for the final call after a decline."""

    def __str__(self) -> str:
        return self.name + ("" if self.has_final_call else ", no room")

    def limit(self, question: int = 0) -> LimitState:
        return LimitState(self.name, self.max * (question + 1), pytest.approx(self.asked_at[question]))  # type: ignore[arg-type]

    def play(self, continuation: Any, script: Any = None, *, bench: Bench | None = None, **options: Any) -> Played:
        tool = (bench or Bench()).tool(seconds=self.tool_seconds)
        act = options.pop("act", None)
        settings = {"max_steps": 99, **self.options, **options}
        agent = spec(script or wants(), tool, gate_on={self.name}, continuation=continuation, **settings)
        return play(agent, act=act)


RESERVED: dict[str, Any] = {"budget_finalization": ""}
CASES = [
    # before the last allowed call
    Case("llm_calls", {"max_llm_calls": 3}, 3, (2, 5), "llm call", "max_llm_calls"),
    # when the next step could enter one more body
    Case("tool_calls", {"max_tool_calls": 2}, 2, (2, 4), "call", "max_tool_calls"),
    # when the next request would exceed it, ten tokens each
    Case("total_tokens", {"max_total_tokens": 35}, 35, (30, 70), "total token", "budget", has_final_call=False),
    Case("cost", {"max_cost": 0.35, "prices": Prices(call=0.1)}, 0.35, (0.3, 0.7), "cost", "budget", 0.0, False),
    # the same where room for a final call is kept
    Case("total_tokens", {"max_total_tokens": 35, **RESERVED}, 35, (20, 60), "total token", "budget"),
    Case("cost", {"max_cost": 0.35, "prices": Prices(call=0.1), **RESERVED}, 0.35, (0.2, 0.6), "cost", "budget"),
    # in the last thirty seconds
    Case("wall_clock", {"wall_clock_seconds": 100}, 100, (75, 175), "wall clock", "deadline", 25.0),
]
by_limit = pytest.mark.parametrize("case", CASES, ids=str)
with_final_call = pytest.mark.parametrize("case", [case for case in CASES if case.has_final_call], ids=str)


@by_limit
def test_the_gate_is_asked_at_the_boundary(case: Case) -> None:
    """G1, G2: the question names the limit with its numbers, has no pending calls, and offers the limit's own value."""
    answers = Answers(DECLINE)
    played = case.play(answers)
    (question,) = answers.asked

    assert [question] == played.all(ContinuationRequired)
    assert (case.limit(), (), "", None) == (
        question.limit,
        question.tool_calls,
        question.text,
        question.max_iterations,
    )
    assert (case.max, case.max, ("approve", "decline")) == (
        question.default_grant,
        question.max_grant,
        question.decisions,
    )
    assert isinstance(played.messages[-3], ToolMessage) or not case.has_final_call


@by_limit
def test_approve_grants_the_limit_once_more(case: Case) -> None:
    """G3, G4: the limit is raised by its own value, nothing else is reset; the next question has the new numbers."""
    answers = Answers(APPROVE, DECLINE)
    played = case.play(answers)

    assert [case.limit(0), case.limit(1)] == [question.limit for question in answers.asked]
    assert [case.limit(0), case.limit(1)] == [event.limit for event in played.all(LimitReached)]
    assert case.limit(1) == played.result.limit


@by_limit
def test_approved_and_then_answered_is_an_answer(case: Case) -> None:
    """Section 7: after an approval the run may end as if there had been no limit: none is in the result."""
    rounds = len(case.play(Answers(DECLINE)).result.steps)
    played = case.play(Answers(APPROVE), wants(rounds))

    assert ("final", "model", "stop", None, None, True) == (
        played.result.text,
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.limit,
        played.result.finalized,
        played.result.answered,
    )
    assert [case.limit()] == [event.limit for event in played.all(LimitReached)]
    assert [] == played.all(Finalizing)


@by_limit
def test_an_answer_within_the_limit_asks_nobody(case: Case) -> None:
    """G1: where the run ends before the limit, there is no question."""
    played = case.play(Answers(), wants(1))

    assert ("final", None) == (played.result.text, played.result.limit)
    assert [] == played.all(ContinuationRequired)


@with_final_call
def test_decline_leads_to_the_final_call(case: Case) -> None:
    """G5, section 7: gate declined: a system notification, the final call; finish reason the limit's."""
    played = case.play(Answers(DECLINE))
    result = played.result

    assert ("final", True, case.reason, case.name, case.limit(), "model") == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    notice = f"System notification: Maximum {case.unit} limit reached. Continuation declined."
    assert UserMessage(notice) == played.messages[-2]
    assert not played.asked[-1].tools_on
    assert (played.asked[-1].tail or "").startswith(f"You have reached the limit of {case.max:g} ")
    at = played.types.index("limit_reached")
    assert ["limit_reached", "continuation_required", "continuation_resolved", "finalizing", "step_started"] == (
        played.types[at : at + 5]
    )
    assert 1 == len(played.all(LimitReached))


@pytest.mark.parametrize("case", [case for case in CASES if not case.has_final_call], ids=str)
def test_decline_without_room_for_a_final_call_is_the_fallback(case: Case) -> None:
    """G5: where the budget has no room for the final call, the fallback text ends the run, and nothing is sent."""
    played = case.play(Answers(DECLINE))

    assert (3, False, case.reason, case.name, case.limit(), "fallback") == (
        len(played.asked),
        played.result.answered,
        played.result.finish_reason,
        played.result.stopped_by,
        played.result.limit,
        played.result.finalized,
    )


@with_final_call
def test_expiry_is_told_as_such(case: Case) -> None:
    """G5, G8: nobody answers in time: outcome `timed_out`, the texts say so, the final call follows."""
    played = case.play(remote(timeout_seconds=500))

    assert "timed_out" == played.only(ContinuationResolved).outcome
    assert UserMessage("System notification: Continuation request timed out.") == played.messages[-2]
    assert ("final", case.reason, case.limit(), "model") == (
        played.result.text,
        played.result.finish_reason,
        played.result.limit,
        played.result.finalized,
    )


@by_limit
def test_expiry_may_count_as_approval(case: Case) -> None:
    """G8: `on_timeout="approve"`: outcome still `timed_out`, effect "approved", and the run goes on."""
    rounds = len(case.play(Answers(DECLINE)).result.steps)
    played = case.play(remote(timeout_seconds=500, on_timeout="approve"), wants(rounds))
    resolved = played.only(ContinuationResolved)

    assert ("timed_out", "approved", case.max) == (resolved.outcome, resolved.effect, resolved.granted)
    assert ("final", None) == (played.result.text, played.result.limit)


@by_limit
def test_cancel_while_the_gate_is_asked(case: Case) -> None:
    """G10: the request is `cancelled`, then `run_cancelled`; nothing is asked of the model, no limit is told again."""

    async def act(run: Run) -> None:
        await event_of(run, ContinuationRequired)
        run.cancel("enough")

    played = case.play(remote(timeout_seconds=None), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert "cancelled" == played.only(ContinuationResolved).outcome
    assert ["limit_reached", "continuation_required", "continuation_resolved", "run_cancelled"] == played.types[-4:]
    assert None is played.result.limit


@by_limit
def test_stop_while_the_gate_is_asked(case: Case) -> None:
    """M2: a wait for a decision is cut at once: `stopped_by` the caller, not the limit."""

    async def act(run: Run) -> None:
        await event_of(run, ContinuationRequired)
        run.stop("enough")

    played = case.play(remote(timeout_seconds=None), act=act)

    assert ("caller", "enough", None, None) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.limit,
        played.result.finalized,
    )
    assert "cancelled" == played.only(ContinuationResolved).outcome


@by_limit
def test_a_provider_that_fails_fails_the_run(case: Case) -> None:
    """G7: the request is resolved `failed`, the run ends with `ContinuationProviderError`, the cause kept."""

    def broken(_request: ContinuationRequest) -> ContinuationResponse:
        raise RuntimeError("no")

    played = case.play(broken)

    assert isinstance(played.error, ContinuationProviderError)
    assert isinstance(played.error.__cause__, RuntimeError)
    assert "failed" == played.only(ContinuationResolved).outcome


@by_limit
def test_steering_of_an_approval_reaches_the_model(case: Case) -> None:
    """G6: on approve `message` is appended, before the next call of the model."""
    answers = Answers(ContinuationResponse("approve", message="Be brief."), DECLINE)
    played = case.play(answers)
    before = answers.asked[0].usage.total_tokens // 10

    assert "Be brief." == played.asked[before].texts[-1]
    assert 1 == played.messages.count(UserMessage("Be brief."))


@by_limit
def test_the_window_and_the_rounds_are_not_reset(case: Case) -> None:
    """G4: an approval of another limit leaves the window as it is."""
    rounds = len(case.play(Answers(DECLINE)).result.steps)
    played = case.play(Answers(APPROVE), wants(rounds))

    assert (rounds, rounds) == (played.result.counters.window, played.result.counters.tool_iterations)


@by_limit
def test_a_limit_that_is_not_named_is_not_asked_about(case: Case) -> None:
    """G1: `gate_on` is empty by default: other limits end the run, gate or no gate."""
    tool = Bench().tool(seconds=case.tool_seconds)
    played = play(spec(wants(), tool, max_tool_iterations=50, continuation=Answers(), **case.options))

    assert case.name == played.result.stopped_by
    assert [] == played.all(ContinuationRequired)
