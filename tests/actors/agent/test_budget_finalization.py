"""A final call before a limit ends the run, for each limit: when it is due, what it is told, what it comes to (F1-F3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from actors import FinalizationContext, StepOverrides, StepState
from actors.models.scripted import call, reply
from protocol.errors import RunFailedError
from protocol.events import Finalizing, LimitReached, RunFinished, StepStarted, Warned
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, TextPart, Turn, UserMessage
from protocol.usage import Usage
from tests.support.costs import TEN, Prices, spec
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on, results_in
from tests.support.specs import agent


def wants(answer: Any = "final") -> Callable[[ModelRequest], Turn]:
    """A model that calls a tool while there are any, then answers; each turn reports ten tokens."""

    def follow(request: ModelRequest) -> Turn:
        if request.tools_on:
            return reply("", call("t", {}, id=f"c{results_in(request.messages)}"), usage=TEN)
        return reply(answer, usage=TEN)

    return follow


@attrs.frozen
class Case:
    """A limit with its finalization: after how many rounds it is due, and with what numbers."""

    name: str
    option: str
    options: dict[str, Any]
    rounds: int
    max: float
    used: float
    reason: str
    tool_seconds: float = 0.0

    def __str__(self) -> str:
        return self.name

    @property
    def limit(self) -> LimitState:
        return LimitState(self.name, self.max, pytest.approx(self.used))  # type: ignore[arg-type]

    def play(self, script: Any = None, *, instruction: Any = "Sum up.", **options: Any) -> Played:
        tool = Bench().tool(seconds=self.tool_seconds)
        return play(spec(script or wants(), tool, **self.options, **{self.option: instruction}, **options))


BUDGET = "budget_finalization"
CASES = [
    Case("llm_calls", "llm_call_limit_finalization", {"max_llm_calls": 3}, 2, 3, 3, "max_llm_calls"),
    Case("tool_calls", "tool_iteration_limit_finalization", {"max_tool_calls": 2}, 2, 2, 2, "max_tool_calls"),
    # ten tokens a call: with 50, four rounds leave room for one call alone
    Case("total_tokens", BUDGET, {"max_total_tokens": 50}, 4, 50, 40, "budget"),
    Case("cost", BUDGET, {"max_cost": 0.5, "prices": Prices(call=0.1)}, 4, 0.5, 0.4, "budget"),
    # rounds of 25 seconds: the first step boundary of the last 30 seconds is that after the third
    Case("wall_clock", BUDGET, {"wall_clock_seconds": 100}, 3, 100, 75, "deadline", tool_seconds=25.0),
]
by_limit = pytest.mark.parametrize("case", CASES, ids=str)


@by_limit
def test_the_final_call_answers(case: Case) -> None:
    """F3, F6, section 7: limit, proactive answer. A normal answer with `limit` set and `finalized` "model"."""
    played = case.play()
    result = played.result

    assert ("final", True, "stop", case.name, case.limit, "model") == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    assert case.rounds == result.counters.tool_iterations
    assert [True] * case.rounds + [False] == [asked.tools_on for asked in played.asked]
    assert "Sum up." == played.asked[-1].tail
    assert AssistantMessage((TextPart("final"),)) == played.messages[-1]
    result.raise_for_limit()


@by_limit
def test_the_limit_is_told_once_directly_before_the_final_call(case: Case) -> None:
    """B6: `limit_reached`, `finalizing`, the final step, and no second `limit_reached` at the end."""
    played = case.play()
    at = played.types.index("limit_reached")

    assert [case.limit] == [event.limit for event in played.all(LimitReached)]
    assert ["limit_reached", "finalizing", "step_started"] == played.types[at : at + 3]
    assert case.limit == played.only(Finalizing).limit
    assert [False] * case.rounds + [True] == [event.final for event in played.all(StepStarted)]


@by_limit
def test_a_final_call_without_text_comes_to_the_fallback(case: Case) -> None:
    """F5, section 7: no answer came. The finish reason is the limit's, the text is built from the results."""
    empty = case.play(wants(""))
    result = empty.result

    assert (False, case.reason, case.name, case.limit, "fallback") == (
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    assert result.text.startswith(f"The limit of {case.max:g} ")
    assert result.text.endswith("\n- t: 1" * case.rounds)
    assert [case.limit] == [event.limit for event in empty.all(LimitReached)]


@by_limit
def test_a_final_call_that_fails_fails_the_run(case: Case) -> None:
    """F8: `run_failed` with the partial result; no fallback, and it is not tried again."""

    def follow(request: ModelRequest) -> Any:
        return wants()(request) if request.tools_on else ConnectionError("reset")

    played = case.play(follow, finalization_retry=True)

    assert isinstance(played.error, RunFailedError)
    assert case.rounds + 1 == len(played.asked)
    assert ("failure", None, case.rounds) == (
        played.result.stopped_by,
        played.result.finalized,
        played.result.counters.tool_iterations,
    )


@by_limit
@pytest.mark.parametrize("empty", ["", lambda _context: None, lambda _context: ""], ids=["empty", "None", "returns ''"])
def test_empty_is_the_built_in_instruction(case: Case, empty: Any) -> None:
    """F2: `""`, and a function that returns nothing, are the built-in text, which names the limit and its number."""
    tail = case.play(instruction=empty).asked[-1].tail

    assert tail is not None
    assert tail.startswith(f"You have reached the limit of {case.max:g} ")


@by_limit
def test_a_function_is_told_the_limit(case: Case) -> None:
    """F2: a function, async too, is asked once, with the limit, the run and its prompt."""
    seen: list[FinalizationContext] = []

    async def instruction(context: FinalizationContext) -> str:
        await trio.lowlevel.checkpoint()
        seen.append(context)
        return "Say it."

    played = case.play(instruction=instruction)

    assert [FinalizationContext(case.limit, played.run, (), "go", None)] == seen
    assert "Say it." == played.asked[-1].tail


def broken(_context: FinalizationContext) -> str:
    raise RuntimeError("no text today")


@by_limit
def test_a_function_that_fails_leaves_the_limit_as_it_would_be_without(case: Case) -> None:
    """F2: an error, and the run goes on as if that finalization were off; a warning says so, once."""
    played = case.play(instruction=broken)
    off = case.play(instruction=None)

    assert off.result.limit == played.result.limit
    assert (case.name, case.reason, None) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert ["finalization_failed"] == [event.code for event in played.all(Warned)]
    assert [] == played.all(Finalizing)
    assert len(off.asked) == len(played.asked)


def test_what_failed_for_one_limit_is_off_for_the_others_of_its_option() -> None:
    """F1, F2: tokens, cost and time are one option: its function is not asked again for the next of them."""
    seen: list[str] = []

    def instruction(context: FinalizationContext) -> str:
        assert context.limit is not None
        seen.append(context.limit.name)
        raise RuntimeError

    # at second 50, with 20 of 35 tokens used, no step and final call fit any more; at second 75 the last seconds begin
    agent = spec(
        wants(),
        Bench().tool(seconds=25),
        budget_finalization=instruction,
        max_total_tokens=35,
        wall_clock_seconds=100,
    )
    played = play(agent)

    assert ["total_tokens"] == seen
    assert "total_tokens" == played.result.stopped_by


def test_the_reserve_is_the_last_requests_input_and_the_cap_on_output() -> None:
    """F1: room is kept for the input that the last request had (8 + 2 reported) and for `max_tokens`."""

    def rounds_with(most: int) -> int:
        options: dict[str, Any] = {"max_total_tokens": most, "max_tokens": 5, "budget_finalization": ""}
        return play(spec(wants(), Bench().tool(), **options)).result.counters.tool_iterations

    # a step is 10 + 5 by its count, the final call 8 + 5: after two rounds 20 are used
    assert (2, 3) == (rounds_with(20 + 15 + 13 - 1), rounds_with(20 + 15 + 13))


def test_the_system_prompt_counts_for_the_next_step() -> None:
    """F1: what the next step will send holds the system prompt too: of 2500 tokens, two requests of 1000 are all."""
    script = calls_while_on()  # it reports no usage: what is charged is what was counted
    played = play(agent(script, Bench().tool(), system="x" * 4000, max_total_tokens=2500, budget_finalization=""))

    assert (2, "final", "model") == (len(played.asked), played.result.text, played.result.finalized)


def test_what_a_hook_put_in_place_of_the_conversation_counts_for_the_next_step() -> None:
    """F1, H2: a conversation that `prepare_step` has shortened is sent short, and needs no more room than that."""

    def shorten(state: StepState) -> StepOverrides | None:
        return StepOverrides(messages=(UserMessage("go"),)) if state.step_number == 1 else None

    half = Usage(500, 0, 0, 0, 0, complete=True)
    script = [reply("x" * 4000, call("t", {}, id="a")), reply("", call("t", {}, id="b"), usage=half), "done"]
    limits = {"max_total_tokens": 2500, "budget_finalization": ""}
    short = play(agent(script, Bench().tool(), prepare_step=shorten, **limits))
    long = play(agent(script, Bench().tool(), **limits))

    assert ("done", None) == (short.result.text, short.result.limit)
    assert "total_tokens" == long.result.stopped_by


def test_half_of_a_short_limit_is_for_work() -> None:
    """F1: the window is at most half of the limit: of 20 seconds, the last 10 and not all."""

    def rounds_with(**options: Any) -> int:
        agent = spec(wants(), Bench().tool(seconds=3), budget_finalization="", **options)
        return play(agent).result.counters.tool_iterations

    assert 4 == rounds_with(wall_clock_seconds=20)  # 12 seconds: the first boundary at or after 10
    assert 6 == rounds_with(wall_clock_seconds=20, finalization_window_seconds=3)  # 18: at or after 17
    assert 16 == rounds_with(wall_clock_seconds=78)  # 48: at or after 78 - 30


def test_the_window_begins_at_its_very_second() -> None:
    """F1: a boundary exactly where the window begins is in it."""
    played = play(spec(wants(), Bench().tool(seconds=35), budget_finalization="", wall_clock_seconds=100))

    assert LimitState("wall_clock", 100, 70.0) == played.result.limit


def test_no_boundary_in_the_window_is_no_final_call() -> None:
    """F1, B5: a round that begins before the window and takes all of it is cut; the run ends without a final call."""
    played = play(spec(wants(), Bench().tool(seconds=60), budget_finalization="", wall_clock_seconds=100))

    assert ("wall_clock", "deadline", None) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert ["ok", "timed_out"] == [step.results[0].status for step in played.result.steps]


def test_a_final_call_for_which_no_room_is_left_comes_to_the_fallback() -> None:
    """F5: a hook that makes the final request too big for the budget: nothing is sent, the fallback text ends the run."""
    played = play(
        spec(
            wants(),
            Bench().tool(),
            max_total_tokens=50,
            budget_finalization="",
            prepare_call=lambda config: config.replace(max_tokens=100 if config.step_number == 4 else None),
        )
    )

    assert (4, "total_tokens", "budget", "fallback") == (
        len(played.asked),
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert 1 == len(played.all(LimitReached))


TWO_DUE = [
    ({"max_llm_calls": 3, "max_tool_iterations": 2}, LimitState("llm_calls", 3, 3), "L"),
    ({"max_llm_calls": 3, "max_tool_calls": 2}, LimitState("llm_calls", 3, 3), "L"),
    ({"max_tool_iterations": 2, "max_tool_calls": 2}, LimitState("tool_iterations", 2, 2), "T"),
    ({"max_tool_iterations": 2, "max_total_tokens": 30}, LimitState("tool_iterations", 2, 2), "T"),
    ({"max_tool_calls": 2, "max_total_tokens": 30}, LimitState("tool_calls", 2, 2), "T"),
    ({"max_llm_calls": 3, "max_total_tokens": 30}, LimitState("llm_calls", 3, 3), "L"),
]


@pytest.mark.parametrize(("options", "limit", "text"), TWO_DUE)
def test_where_limits_share_a_final_call_the_one_whose_text_is_used_is_told(
    options: dict[str, Any], limit: LimitState, text: str
) -> None:
    """Section 6: `limit` is the one whose instruction was used: the last call over a window over bodies over the rest."""
    texts: dict[str, Any] = {
        "llm_call_limit_finalization": "L",
        "tool_iteration_limit_finalization": "T",
        "budget_finalization": "B",
    }
    played = play(spec(wants(), Bench().tool(), **options, **texts))

    assert (limit, text) == (played.result.limit, played.asked[-1].tail)
    assert [limit] == [event.limit for event in played.all(LimitReached)]
    assert limit == played.only(RunFinished).summary.limit
