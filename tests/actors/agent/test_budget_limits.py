"""Each limit of a run, at its edge and one beyond, and what the run comes to (section 6, section 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from actors import Limits
from actors.models.scripted import call, reply
from protocol.errors import LimitReachedError
from protocol.events import Finalizing, LimitReached, RunFinished
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import ToolMessage, Turn
from tests.support.costs import TEN, Prices, spec
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench, results_in


def wants(rounds: int | None, answer: str = "done") -> Callable[[ModelRequest], Turn]:
    """A model that says a word and calls a tool, for so many rounds; each turn reports ten tokens. `None`: without end."""

    def follow(request: ModelRequest) -> Turn:
        done = results_in(request.messages)
        if not request.tools_on or done == rounds:
            return reply(answer, usage=TEN)
        return reply(f"round {done}", call("t", {}, id=f"c{done}"), usage=TEN)

    return follow


@attrs.frozen
class Case:
    """A limit that three rounds of one call each, and nothing more, fit into."""

    name: str
    options: dict[str, Any]
    max: float
    reason: str
    fits: int
    """Rounds after which an answer still fits."""
    runs: int
    """Bodies that run where the model never stops."""
    tool_seconds: float = 0.0

    def __str__(self) -> str:
        return self.name

    def play(self, rounds: int | None, bench: Bench | None = None, **options: Any) -> Played:
        tool = (bench or Bench()).tool(seconds=self.tool_seconds)
        return play(spec(wants(rounds), tool, **self.options, **options))

    @property
    def reached(self) -> LimitState:
        return LimitState(self.name, self.max, pytest.approx(self.max))  # type: ignore[arg-type]


CASES = [
    Case("llm_calls", {"max_llm_calls": 3}, 3, "max_llm_calls", 2, 3),
    Case("tool_calls", {"max_tool_calls": 3, "max_llm_calls": 9}, 3, "max_tool_calls", 3, 3),
    Case("total_tokens", {"max_total_tokens": 30}, 30, "budget", 2, 3),
    Case("cost", {"max_cost": 0.3, "prices": Prices(call=0.1)}, 0.3, "budget", 2, 3),
    Case("wall_clock", {"wall_clock_seconds": 30}, 30, "deadline", 2, 3, tool_seconds=10.0),
]
by_limit = pytest.mark.parametrize("case", CASES, ids=str)


@by_limit
def test_using_exactly_the_allowance_is_no_overrun(case: Case) -> None:
    """B6: a run that answers within its limit, the last of it used, is told of no limit."""
    played = case.play(case.fits)
    result = played.result

    assert [] == played.all(LimitReached)
    assert ("done", True, "stop", "model", None, None) == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    result.raise_for_limit()


@by_limit
def test_one_beyond_ends_the_run_there(case: Case) -> None:
    """B1, B4, B5, B6, section 7: limit, nothing asked. What fits has been done, and one thing more has not."""
    bench = Bench()
    played = case.play(None, bench)
    result = played.result

    assert {"t": case.runs} == bench.runs
    assert [case.reached] == [event.limit for event in played.all(LimitReached)]
    assert ["limit_reached", "run_finished"] == played.types[-2:]
    assert (case.name, case.reason, case.reached, None, False, None) == (
        result.stopped_by,
        result.finish_reason,
        result.limit,
        result.finalized,
        result.answered,
        result.stop_reason,
    )
    assert [f"round {number}" for number in range(len(result.steps))] == result.text.split("\n\n")
    assert case.runs == sum(step.results[0].status in {"ok", "timed_out"} for step in result.steps)
    with pytest.raises(LimitReachedError, match=case.name) as raised:
        result.raise_for_limit()
    assert result is raised.value.partial


@by_limit
def test_the_terminal_event_says_the_limit_too(case: Case) -> None:
    """Section 7: the summary of `run_finished` and the result have the same limit."""
    played = case.play(None)

    assert played.result.limit == played.only(RunFinished).summary.limit


def test_of_a_turn_that_exceeds_the_tool_calls_the_first_ones_run() -> None:
    """B4: the first k in call order run, the rest are `not_run` and say why; then the limit, the exchange stored."""
    bench = Bench()
    calls = [call(name, {}, id=name) for name in "abcd"]
    played = play(spec([reply("", *calls)], *[bench.tool(name) for name in "abcd"], max_tool_calls=3))
    results = played.result.steps[0].results

    assert dict.fromkeys("abc", 1) == bench.runs
    assert ["ok", "ok", "ok", "not_run"] == [result.status for result in results]
    assert "Not run: the limit of 3 tool calls was reached." == results[3].text
    assert ToolMessage(results) == played.messages[-1]
    assert LimitState("tool_calls", 3, 3) == played.result.limit
    assert (3, 1, 1) == (
        played.result.counters.tool_calls,
        played.result.counters.llm_calls,
        played.result.counters.tool_iterations,
    )


def test_calls_that_do_not_run_are_no_tool_calls() -> None:
    """B4: only bodies that are entered count: not an unknown tool, not bad arguments."""
    bench = Bench()
    bad = reply("", call("nope", {}, id="a"), call("t", {"extra": 1}, id="b"), call("t", {}, id="c"))
    played = play(spec([bad, "done"], bench.tool(), max_tool_calls=1))

    assert ["error", "error", "ok"] == [result.status for result in played.result.steps[0].results]
    assert ("done", None, 1) == (played.result.text, played.result.limit, played.result.counters.tool_calls)


def test_a_request_that_would_exceed_the_tokens_is_not_sent() -> None:
    """B1: the request's tokens and its cap on output must fit beside what is used: 10 + 11 do, 10 + 12 do not."""
    fits = play(spec(wants(1), Bench().tool(), tokens=6, max_tokens=5, max_total_tokens=21))
    does_not = play(spec(wants(1), Bench().tool(), tokens=6, max_tokens=6, max_total_tokens=21))

    assert (2, None) == (len(fits.asked), fits.result.limit)
    assert (1, LimitState("total_tokens", 21, 10)) == (len(does_not.asked), does_not.result.limit)
    assert (1, "budget") == (does_not.result.counters.llm_calls, does_not.result.finish_reason)


def test_a_call_that_cost_more_than_was_thought_is_the_last() -> None:
    """B1: what was reported counts: 20 of 15 tokens are used, told as they are, and no further call is made."""
    played = play(spec(wants(None), Bench().tool(), tokens=1, max_total_tokens=15))

    assert (2, LimitState("total_tokens", 15, 20)) == (len(played.asked), played.result.limit)


TWO_AT_ONCE = [
    # the account's own order: calls, tokens, cost
    ({"max_llm_calls": 3, "max_total_tokens": 30}, LimitState("llm_calls", 3, 3)),
    ({"max_total_tokens": 30, "max_cost": 0.3, "prices": Prices(call=0.1)}, LimitState("total_tokens", 30, 30)),
    # a used-up allowance of bodies is met when the calls of a turn are about to run, before the next model call
    ({"max_llm_calls": 4, "max_tool_calls": 3}, LimitState("tool_calls", 3, 3)),
    ({"max_llm_calls": 3, "max_tool_calls": 3}, LimitState("llm_calls", 3, 3)),
    ({"max_tool_iterations": 3, "max_tool_calls": 3}, LimitState("tool_iterations", 3, 3)),
    ({"max_tool_iterations": 3, "max_llm_calls": 4}, LimitState("tool_iterations", 3, 3)),
    ({"max_tool_iterations": 3, "max_total_tokens": 30}, LimitState("total_tokens", 30, 30)),
]


@pytest.mark.parametrize(("options", "limit"), TWO_AT_ONCE)
def test_of_two_limits_the_one_that_is_met_first_is_told(options: dict[str, Any], limit: LimitState) -> None:
    """B6: where two limits are used up, the one that changes the course is told, and that one alone."""
    played = play(spec(wants(None), Bench().tool(), **options))

    assert [limit] == [event.limit for event in played.all(LimitReached)]
    assert limit == played.result.limit


def test_the_window_of_a_gate_yields_to_a_used_up_budget() -> None:
    """G1: with no call left by tokens the gate is not asked; the calls are `not_run`, and the tokens are the limit."""
    asked: list[object] = []
    played = play(
        spec(wants(None), Bench().tool(), max_total_tokens=20, max_tool_iterations=1, continuation=asked.append)
    )

    assert [] == asked
    assert LimitState("total_tokens", 20, 20) == played.result.limit
    assert ["ok", "not_run"] == [step.results[0].status for step in played.result.steps]
    assert "Not run: the limit of 20 tokens was reached." == played.result.steps[1].results[0].text


NO_LIMIT: dict[str, Any] = dict.fromkeys((
    "max_llm_calls",
    "max_tool_calls",
    "max_total_tokens",
    "max_cost",
    "wall_clock_seconds",
))


def test_none_is_no_limit() -> None:
    """Section 6: `None` is no limit, wherever it stands."""
    played = play(spec(wants(15), Bench().tool(seconds=100), **NO_LIMIT))

    assert (16, None, True) == (len(played.asked), played.result.limit, played.result.answered)


@pytest.mark.parametrize("field", ["max_llm_calls", "max_tool_calls", "max_total_tokens"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3"])
def test_a_count_that_is_none_is_refused(field: str, value: Any) -> None:
    """Section 6: an integer of 1 or more, else a `ValueError` at construction that says so."""
    with pytest.raises(ValueError, match=f"{field} must be an integer >= 1, or None for no limit; it is {value!r}"):
        spec([], **{field: value})


@pytest.mark.parametrize("field", ["max_cost", "wall_clock_seconds"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), True, "3"])
def test_an_amount_that_is_none_is_refused(field: str, value: Any) -> None:
    """Section 6: a finite number above 0, else a `ValueError` at construction that says so."""
    with pytest.raises(ValueError, match=f"{field} must be a number above 0, or None for no limit; it is {value!r}"):
        spec([], prices=Prices(call=1.0), **{field: value})


def test_a_limit_of_one_run_takes_the_place_of_the_agents() -> None:
    """R6, B0: limits hold per run; those given to `run()` hold for that run alone."""

    async def scene(stage: Stage) -> list[LimitState | None]:
        agent = await stage.spawn(spec(wants(None), Bench().tool(), max_llm_calls=2))
        limits = (None, Limits(max_total_tokens=10), None)
        return [(await stage.play(agent, limits=given)).result.limit for given in limits]

    assert [
        LimitState("llm_calls", 2, 2),
        LimitState("total_tokens", 10, 10),
        LimitState("llm_calls", 2, 2),
    ] == perform(scene)


def test_no_limit_leads_to_a_final_call_unless_asked() -> None:
    """F1: finalization is off by default, for every limit."""
    finalizing = [event for case in CASES for event in case.play(None).all(Finalizing)]

    assert [] == finalizing
