"""What calls are charged: reported, estimated or unknown; prices; and calls that failed or never left (B1, B3)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from actors import Budget, ContinuationRequest, ContinuationResponse, StepOverrides
from actors.models.scripted import Scripted, call, reply
from protocol.errors import ModelError, ModelServerError, ModelUnreachable, PriceUnknown, RunFailedError, SpecError
from protocol.events import RunFinished, StepFinished
from protocol.ledger import AccountStatistics
from protocol.limits import LimitState
from protocol.model import Model, ModelEmit, ModelRequest, RequestSent, TextDelta
from protocol.turns import TextPart, Turn
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.costs import TEN, Prices, counted, spec
from tests.support.families import asks
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent
from tests.support.strict import StrictModel

PLENTY: dict[str, Any] = {"max_total_tokens": 10_000, "max_cost": 100.0}
DOLLAR = Prices(token=1.0)
"""A dollar for each token."""


def charged(script: Any, *, tokens: int = 10, prices: Any = DOLLAR, **options: Any) -> tuple[Played, AccountStatistics]:
    """One run under a budget of its own, and what the budget was charged."""
    budget = Budget(**PLENTY)
    played = play(spec(script, Bench().tool(), tokens=tokens, budget=budget, prices=prices, **options))
    return played, budget.statistics()


def tool_turn(id: str, usage: Usage = UNKNOWN_USAGE, text: str = "") -> Turn:
    return reply(text, call("t", {}, id=id), usage=usage)


# ------------------------------------------------------------ usage that is missing


def test_a_call_without_usage_is_charged_an_estimate_and_marked() -> None:
    """B3: the request's tokens and a quarter of the reply's bytes; usage and cost stay unknown, and are not 0."""
    played, statistics = charged(["12345678"])
    result = played.result

    assert (12, 12.0, None) == (statistics.estimated_tokens, statistics.estimated_cost, statistics.cost)
    assert (0, False, None) == (result.usage.total_tokens, result.usage.complete, result.cost)
    assert UNKNOWN_USAGE == result.usage
    assert (None, UNKNOWN_USAGE) == (result.steps[0].cost, result.steps[0].usage)
    assert UNKNOWN_USAGE == played.only(StepFinished).usage
    assert (None, False) == (played.only(RunFinished).summary.cost, played.only(RunFinished).summary.usage.complete)


def test_a_reported_zero_is_zero() -> None:
    """B3: a server that reports 0 is believed: nothing is estimated, the cost is known and 0."""
    zero = Usage(0, 0, 0, 0, 0, complete=True)
    played, statistics = charged([reply("12345678", usage=zero)])

    assert (0, 0.0, 0.0) == (statistics.estimated_tokens, statistics.estimated_cost, statistics.cost)
    assert (zero, True, 0.0, 0) == (
        played.result.usage,
        played.result.usage.complete,
        played.result.cost,
        played.result.context_tokens,
    )


@pytest.mark.parametrize(
    ("usage", "estimated"),
    [
        (Usage(7, None, None, None, None), 5),  # 12 in all, 7 reported
        (Usage(None, None, None, 2, None), 10),
        (Usage(50, None, None, None, None), 0),  # more than was thought: what was reported counts
    ],
)
def test_usage_in_part_is_charged_up_to_the_estimate(usage: Usage, estimated: int) -> None:
    """B3: what is missing of a part report is estimated, what was reported is not charged twice."""
    played, statistics = charged([reply("12345678", usage=usage)])

    assert (estimated, usage) == (statistics.estimated_tokens, statistics.usage)
    assert (None, False) == (played.result.cost, played.result.usage.complete)


def test_one_call_without_usage_makes_the_sum_incomplete() -> None:
    """B3: `usage.total_tokens` sums what is known, `usage.complete` says whether that is all; the cost is unknown."""
    played, statistics = charged([tool_turn("a", TEN), tool_turn("b"), reply("done", usage=TEN)])

    assert (20, False, None) == (played.result.usage.total_tokens, played.result.usage.complete, played.result.cost)
    assert [10.0, None, 10.0] == [step.cost for step in played.result.steps]
    assert 11 == statistics.estimated_tokens  # 10 for the request, and 1 for the three bytes of "t" and "{}"


def test_missing_usage_counts_against_the_limit() -> None:
    """BUD, B3: a server that reports nothing is no way around a budget: eleven tokens a turn, and 30 are two turns."""
    turns = [tool_turn(id) for id in "abcd"]
    played = play(spec(turns, Bench().tool(), max_total_tokens=31))

    assert (2, LimitState("total_tokens", 31, 22)) == (len(played.asked), played.result.limit)
    assert 0 == played.result.usage.total_tokens


def test_without_a_limit_nothing_is_estimated() -> None:
    """B3: estimates are for limits: where there is none, what is unknown stays out of the books."""
    budget = Budget(max_llm_calls=5)
    played = play(agent(["12345678"], budget=budget))

    assert (0, None) == (budget.statistics().estimated_tokens, played.result.cost)
    assert UNKNOWN_USAGE == played.result.usage


def test_a_run_that_made_no_call_has_cost_nothing() -> None:
    """B3: no call at all is known to have cost nothing, and its usage is complete."""
    played = play(spec(["never"], max_total_tokens=5))

    assert (0.0, True, 0) == (played.result.cost, played.result.usage.complete, played.result.usage.total_tokens)


# ------------------------------------------------------------ cost


def test_the_cost_stands_in_step_result_and_question() -> None:
    """Section 7, G2: `StepResult.cost`, `RunResult.cost` and `ContinuationRequired.cost`, the turn in hand included."""
    asked: list[ContinuationRequest] = []

    def decide(request: ContinuationRequest) -> ContinuationResponse:
        asked.append(request)
        return ContinuationResponse("approve")

    script = [tool_turn("a", TEN), tool_turn("b", TEN), reply("done", usage=TEN)]
    played, statistics = charged(script, max_tool_iterations=1, continuation=decide)

    assert [(20.0, 20)] == [(request.cost, request.usage.total_tokens) for request in asked]
    assert [10.0, 10.0, 10.0] == [step.cost for step in played.result.steps]
    assert (30.0, 30.0, 30.0) == (played.result.cost, statistics.cost, played.only(RunFinished).summary.cost)


def test_without_prices_the_cost_is_unknown() -> None:
    """B3: unknown prices: cost unknown, never 0."""
    played = play(spec([tool_turn("a", TEN), reply("done", usage=TEN)], Bench().tool()))

    assert (None, [None, None], True) == (
        played.result.cost,
        [step.cost for step in played.result.steps],
        played.result.usage.complete,
    )


def test_a_model_without_a_price_may_run_where_cost_is_not_limited() -> None:
    """B3: the cost of that call, and of the run, is unknown; nothing fails."""
    other = StrictModel([reply("done", usage=TEN)], name="other", profile=counted())
    settings = spec(
        [],
        Bench().tool(),
        prices=DOLLAR,
        prepare_step=lambda state: StepOverrides(model=other) if state.step_number else None,
    )
    played = play(attrs.evolve(settings, model=Scripted([tool_turn("a", TEN)], name="strict")))

    assert ("done", None, [10.0, None]) == (
        played.result.text,
        played.result.cost,
        [step.cost for step in played.result.steps],
    )


def test_the_costs_of_children_are_the_callers_too() -> None:
    """B2: `cost` and `usage` are of the run and of all it started."""

    async def scene(stage: Stage) -> Any:
        child = await stage.spawn(spec([reply("c", usage=TEN)], name="child", prices=DOLLAR))
        script = [reply("", call("ask_child", {}, id="a"), usage=TEN), reply("done", usage=TEN)]
        root = await stage.spawn(spec(script, asks(stage, child), prices=DOLLAR))
        return (await stage.play(root)).result

    result = perform(scene)

    assert (30.0, 30, [10.0, 10.0]) == (result.cost, result.usage.total_tokens, [step.cost for step in result.steps])


# ------------------------------------------------------------ requests that are not sent


def test_bud_05() -> None:
    """BUD-05: a request of 200000 tokens at 10 dollars the million costs 2: above what is left, refused before sending."""
    prices = Prices(token=10 / 1_000_000)
    played = play(spec(["never"], tokens=200_000, max_cost=1.0, max_tokens=100, prices=prices))

    assert () == played.asked
    assert ("cost", "budget", LimitState("cost", 1.0, 0.0), 0, 0.0) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.limit,
        played.result.counters.llm_calls,
        played.result.cost,
    )
    assert ["run_started", "step_started", "limit_reached", "run_finished"] == played.types


def test_the_cap_on_output_is_part_of_what_a_call_may_cost() -> None:
    """BUD-05, B1: the floor price is that of the request and of `max_tokens`: 10 + 5 dollars do not fit in 14."""

    def sent(most: float) -> int:
        return len(play(spec([reply("x", usage=TEN)], max_cost=most, max_tokens=5, prices=DOLLAR)).asked)

    assert (0, 1) == (sent(14.0), sent(15.0))


def test_what_a_hook_makes_of_the_request_is_what_is_reserved() -> None:
    """B1: tokens and cost are reserved after the hooks, when the request is known."""
    played = play(
        spec(["never"], max_cost=20.0, prices=DOLLAR, prepare_call=lambda config: config.replace(max_tokens=11))
    )

    assert (LimitState("cost", 20.0, 0.0), ()) == (played.result.limit, played.asked)


def test_max_cost_needs_prices() -> None:
    """B3: a limit that nobody could hold is refused at construction; the text says what to give."""
    with pytest.raises(SpecError, match=r"max_cost needs prices: .* give prices=Prices\(\{\.\.\.\}\)"):
        spec([], max_cost=1.0)
    with pytest.raises(SpecError, match="max_cost: prices has no price for model 'strict'"):
        spec([], max_cost=1.0, prices=Prices(token=1.0, models=("another",)))


def test_a_budget_of_money_needs_prices_when_a_run_begins() -> None:
    """B3: the same for a budget, which does not know its agents."""

    async def scene(stage: Stage) -> None:
        hosted = await stage.spawn(spec([], budget=Budget(max_cost=1.0)))
        with pytest.raises(SpecError, match="max_cost needs prices"):
            async with stage.run(hosted):
                pass

    perform(scene)


def test_a_model_without_a_price_is_not_called_where_cost_is_limited() -> None:
    """B3: a model that a hook put in place of the priced one: `PriceUnknown` names it, and it is not called."""
    other = StrictModel(["never"], name="other", profile=counted())
    script = [tool_turn("a", TEN)]
    played = play(
        spec(
            script,
            Bench().tool(),
            max_cost=100.0,
            prices=DOLLAR,
            prepare_step=lambda state: StepOverrides(model=other) if state.step_number else None,
        )
    )

    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, PriceUnknown)
    assert "the price of model 'other' is unknown and the cost is limited: give prices= one for it" == str(played.error)
    assert [] == other.asked
    assert (1, 10.0) == (played.result.counters.llm_calls, played.result.cost)


# ------------------------------------------------------------ calls that failed, or never left


class Failing:
    """A model that fails on the way: before the request is sent, or after, with some text shown or none."""

    def __init__(self, error: Exception, *, sends: bool, text: str = "", name: str = "strict") -> None:
        self.error, self.sends, self.text = error, sends, text
        self.name = name
        self.profile = counted()

    async def turn(self, _request: ModelRequest, emit: ModelEmit) -> Turn:
        if self.sends:
            emit(RequestSent())
        if self.text:
            emit(TextDelta(self.text))
        raise self.error


def failed_with(model: Model, **options: Any) -> tuple[Played, AccountStatistics]:
    """One run of that model, and what its budget was charged."""
    budget = Budget(**PLENTY)
    played = play(attrs.evolve(spec([]), model=model, budget=budget, prices=DOLLAR, **options))
    return played, budget.statistics()


@pytest.mark.parametrize("error", [ModelUnreachable("refused"), ConnectionError("refused"), ModelError("bug")])
def test_a_call_whose_request_never_left_is_given_back(error: Exception) -> None:
    """B1: not counted, not charged, nothing left open; the usage is complete and the cost is 0."""
    played, statistics = failed_with(Failing(error, sends=False))

    assert (0, 0, 0.0, 0) == (
        statistics.llm_calls,
        statistics.estimated_tokens,
        statistics.cost,
        statistics.open_reservations,
    )
    assert (0, True, 0.0) == (
        played.result.counters.llm_calls,
        played.result.usage.complete,
        played.result.cost,
    )


@pytest.mark.parametrize(("text", "estimated"), [("", 10), ("12345678", 12)])
@pytest.mark.parametrize("error", [ModelServerError("down", status=500), ConnectionError("reset")])
def test_a_failed_call_is_charged_the_estimate(error: Exception, text: str, estimated: int) -> None:
    """B1, B3: sent, failed, nothing reported: its request, and what of the reply had arrived."""
    played, statistics = failed_with(Failing(error, sends=True, text=text))

    assert (1, estimated, float(estimated), None, 0) == (
        statistics.llm_calls,
        statistics.estimated_tokens,
        statistics.estimated_cost,
        statistics.cost,
        statistics.open_reservations,
    )
    assert (1, None, False) == (played.result.counters.llm_calls, played.result.cost, played.result.usage.complete)


def test_a_failed_call_is_charged_what_it_reported() -> None:
    """B1: a lost reply that had reported its usage is charged that, and no estimate."""
    lost = ModelError("reset", partial=Turn((TextPart("12345678"),), usage=TEN, end="lost"))
    played, statistics = failed_with(Failing(lost, sends=True, text="1234"))

    assert (0, 10.0, TEN) == (statistics.estimated_tokens, statistics.cost, statistics.usage)
    assert (10.0, TEN) == (played.result.cost, played.result.usage)


def test_a_failed_call_of_a_swapped_model_is_charged_that_models_price() -> None:
    """B1, H2: the estimate is at the price of the model that was called, not of the agent's own."""

    class Dear(Prices):
        def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
            return (5.0 if model == "dear" else 1.0) * (input_tokens + output_tokens)

    dear = Failing(ModelServerError("down", status=500), sends=True, name="dear")
    budget = Budget(**PLENTY)
    settings = spec([], prices=Dear(), budget=budget, prepare_step=lambda _state: StepOverrides(model=dear))
    play(attrs.evolve(settings, model=Scripted([], name="strict")))

    assert 50.0 == budget.statistics().estimated_cost


def test_a_failed_call_counts_against_the_next_run() -> None:
    """B1: what a failed call was charged is gone from the budget."""
    budget = Budget(max_total_tokens=15)

    async def scene(stage: Stage) -> LimitState | None:
        down = await stage.spawn(spec([ConnectionError("reset")], budget=budget))
        await stage.play(down)
        return (await stage.play(await stage.spawn(spec(["never"], name="second", budget=budget)))).result.limit

    assert LimitState("total_tokens", 15, 10) == perform(scene)
