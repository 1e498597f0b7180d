"""Stop conditions: when they run, which one wins, and the bound of an agent that has none (S1-S5)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio

from actors import AgentSpec, StopState, has_tool_call, is_loop_finished, is_step_count, max_steps
from actors.models.scripted import ScriptedTurn, call, reply
from protocol.errors import SpecError, StopConditionError
from protocol.events import LimitReached, RunFailed
from protocol.result import StepResult
from protocol.turns import ToolMessage
from protocol.usage import UNKNOWN_USAGE
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import DISCARD, Answers, agent
from tests.support.strict import StrictModel


def run_of(*conditions: Any, script: Any = None, bench: Bench | None = None, **options: Any) -> Played:
    tool = (bench or Bench()).tool()
    return play(agent(script or calls_while_on(), tool, stop_when=list(conditions), **options))


def test_a_condition_sees_the_state_after_the_results() -> None:
    """S1: steps, messages, usage, number of the step, time and context, with the results of the step in them."""
    seen: list[StopState] = []

    def look(state: StopState) -> bool:
        seen.append(state)
        return len(state.steps) == 2

    spec = agent(calls_while_on(), Bench().tool(seconds=3), stop_when=[look])
    played = play(spec, context={"for": "Ann"})
    first, second = seen

    assert (0, 1) == (first.step_number, second.step_number)
    assert [1, 2] == [len(first.steps), len(second.steps)]
    assert ("c1", "ok", "1") == (
        first.steps[0].results[0].call,
        first.steps[0].results[0].status,
        first.steps[0].results[0].text,
    )
    assert isinstance(first.messages[-1], ToolMessage)
    assert (3, 5) == (len(first.messages), len(second.messages))
    assert (3.0, 6.0) == (first.elapsed_seconds, second.elapsed_seconds)
    assert {"for": "Ann"} == first.context
    assert ("stop_condition", "look") == (played.result.stopped_by, played.result.stop_reason)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("enough", "enough"), (True, "condition"), (None, None), ("", None), (False, None)],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_verdict_means(verdict: Any, reason: str | None, is_async: bool) -> None:
    """S1: a text stops for that reason, True for the condition's name, the rest goes on; sync or async."""

    def condition(_state: StopState) -> Any:
        return verdict

    async def async_condition(_state: StopState) -> Any:
        await trio.sleep(1)
        return verdict

    async_condition.__name__ = "condition"
    chosen: Any = async_condition if is_async else condition
    result = run_of(chosen, script=calls_until(2)).result

    assert (reason, "model" if reason is None else "stop_condition") == (result.stop_reason, result.stopped_by)


def test_all_run_in_order_and_the_first_match_wins() -> None:
    """S2: every condition is asked every time; the first in the list that matches is the reason."""
    asked: list[str] = []

    def named(name: str, at: int) -> Any:
        def condition(state: StopState) -> str | None:
            asked.append(name)
            return name if state.step_number == at else None

        return condition

    result = run_of(named("a", 9), named("b", 1), named("c", 1)).result

    assert ("b", ["a", "b", "c"] * 2) == (result.stop_reason, asked)


def test_conditions_win_over_a_finalization_that_is_due() -> None:
    """S2: where a condition and a finalization are due after the same step, the condition ends the run."""
    played = run_of(is_step_count(1), max_tool_iterations=1, tool_iteration_limit_finalization="")

    assert ("stop_condition", None, None) == (
        played.result.stopped_by,
        played.result.limit,
        played.result.finalized,
    )
    assert ([], 1) == (played.all(LimitReached), len(played.asked))


def test_conditions_win_over_a_ledger_that_is_used_up() -> None:
    """S2: a condition that is met after the last allowed call is the reason, not the limit."""
    played = run_of(is_step_count(1), max_llm_calls=1)

    assert ("stop_condition", None) == (played.result.stopped_by, played.result.limit)


@pytest.mark.parametrize(
    ("turn", "steps"),
    [
        (reply("", call("t", {}, id="a")), 1),
        (reply("", call("nowhere", {}, id="a")), 1),
        (reply("", call("t", {}, id="a"), finish="length"), 1),
        (reply(""), 1),
        (reply("", finish="malformed"), 1),
    ],
    ids=["ran", "unknown", "cut", "empty", "malformed"],
)
def test_no_step_that_another_call_would_follow_is_skipped(turn: ScriptedTurn, steps: int) -> None:
    """S2: conditions run after results of any kind and after a turn that would be asked again."""
    played = run_of(is_step_count(steps), script=[turn, "never asked"])

    assert ("stop_condition", 1) == (played.result.stopped_by, len(played.asked))


@pytest.mark.parametrize(
    "script",
    [["yes"], [reply("half", finish="length")], [reply("", finish="content_filter")]],
    ids=["answer", "cut", "blocked"],
)
def test_where_the_run_ends_anyway_no_condition_is_asked(script: list[ScriptedTurn]) -> None:
    """S2: a natural end asks nobody, and its `stop_reason` is not a condition's."""
    asked: list[int] = []

    def condition(state: StopState) -> bool:
        asked.append(state.step_number)
        return True

    result = run_of(condition, script=script).result

    assert ([], "model") == (asked, result.stopped_by)
    assert result.stop_reason in {None, "content_filter"}


def test_one_that_raises_does_not_keep_the_others_from_running() -> None:
    """S2: all run; then the run fails with `StopConditionError`, the cause and the partial result."""
    asked: list[str] = []
    cause = RuntimeError("k3y")

    def broken(_state: StopState) -> bool:
        raise cause

    def exits(_state: StopState) -> bool:
        raise SystemExit(3)

    def after(_state: StopState) -> bool:
        asked.append("after")
        return True

    played = run_of(broken, after)

    assert ["after"] == asked
    assert isinstance(played.error, StopConditionError)
    assert cause is played.error.__cause__
    assert "stop_condition_error" == played.only(RunFailed).error.code
    assert "k3y" not in repr(played.events)
    assert (1, 1) == (played.error.partial.counters.tool_iterations, len(played.error.partial.steps))
    assert isinstance(run_of(exits).error, StopConditionError)


@pytest.mark.parametrize("verdict", [3, ["x"], object()], ids=["int", "list", "object"])
def test_what_is_no_verdict_fails_the_run(verdict: object) -> None:
    """S1: a condition of the wrong kind is its author's error, with the type in the cause."""

    def wrong(_state: StopState) -> Any:
        return verdict

    played = run_of(wrong)

    assert isinstance(played.error, StopConditionError)
    assert type(verdict).__name__ in str(played.error.__cause__)


def test_a_condition_that_hangs_fails_the_run_in_bounded_time() -> None:
    """S1: an async condition is bounded by `callback_timeout_seconds`."""

    async def hangs(_state: StopState) -> bool:
        await trio.sleep_forever()

    played = run_of(hangs, callback_timeout_seconds=7.0)

    assert isinstance(played.error, StopConditionError)
    assert (7.0, trio.TooSlowError) == (played.seconds, type(played.error.__cause__))


def test_the_texts_of_the_built_in_conditions() -> None:
    """S4: the reasons read as documented."""
    assert "maximum number of steps (3) reached" == run_of(is_step_count(3)).result.stop_reason
    assert "maximum number of steps (3) reached" == run_of(max_steps(3)).result.stop_reason
    assert "tool 't' was called" == run_of(has_tool_call("x", "t")).result.stop_reason


def test_is_step_count_is_exact_and_max_steps_is_not() -> None:
    """S3: `is_step_count(n)` fires at exactly n steps, `max_steps(n)` at n or more."""

    def fires(condition: Any, steps: int) -> bool:
        made = [StepResult(n, "", "", (), (), "stop", UNKNOWN_USAGE, 0.0) for n in range(steps)]
        state = StopState(steps=made, messages=[], usage=UNKNOWN_USAGE, step_number=steps - 1, elapsed_seconds=0.0)
        return bool(condition(state))

    assert [False, True, False] == [fires(is_step_count(2), steps) for steps in (1, 2, 3)]
    assert [False, True, True] == [fires(max_steps(2), steps) for steps in (1, 2, 3)]


def test_has_tool_call_sees_any_outcome_but_discarded() -> None:
    """S2, S3: a call that failed counts, one that the gate discarded does not."""
    failing = Bench().tool("bad", ValueError("no"))
    script = [reply("", call("bad", {}, id="a")), "never asked"]
    failed = play(agent(script, failing, stop_when=[has_tool_call("bad")]))
    gate = Answers(DISCARD)
    script = [reply("", call("t", {}, id="a")), reply("", call("s", {}, id="b")), "done"]
    bench = Bench()
    spec = agent(
        script,
        bench.tool(),
        bench.tool("s"),
        max_tool_iterations=1,
        continuation=gate,
        stop_when=[has_tool_call("s")],
    )
    discarded = play(spec)

    assert "tool 'bad' was called" == failed.result.stop_reason
    assert ("done", None) == (discarded.result.text, discarded.result.stop_reason)


def test_is_loop_finished_never_fires() -> None:
    """S3: the run ends when the model does."""
    result = run_of(is_loop_finished(), script=calls_until(30)).result

    assert ("done", 31) == (result.text, result.counters.steps)


@pytest.mark.parametrize(
    "make",
    [lambda: is_step_count(0), lambda: max_steps(-1), lambda: is_step_count(True), lambda: has_tool_call()],
)
def test_conditions_that_cannot_be_right(make: Any) -> None:
    """S3: a count below 1 and no name at all are refused where they are made."""
    with pytest.raises(SpecError):
        make()


def test_the_default_bound_is_twenty_steps_and_says_so_when_it_cuts(caplog: pytest.LogCaptureFixture) -> None:
    """S5: without any bound of its own an agent stops after 20 steps, with a reason, and one warning is logged."""
    played = play(agent(calls_while_on(), Bench().tool(), name="ann"))

    assert ("stop_condition", "maximum number of steps (20) reached", 20) == (
        played.result.stopped_by,
        played.result.stop_reason,
        len(played.asked),
    )
    assert [(logging.WARNING, True, True)] == [
        (record.levelno, "steps=20" in record.getMessage(), "ann" in record.getMessage())
        for record in caplog.records
        if record.name == "onward.agent.spec"
    ]


def test_the_default_bound_is_silent_where_it_does_not_cut(caplog: pytest.LogCaptureFixture) -> None:
    """S5: an answer in the twentieth step is no cut."""
    played = play(agent(calls_until(19), Bench().tool()))

    assert ("done", 20, []) == (played.result.text, len(played.asked), caplog.records)


@pytest.mark.parametrize(
    "options",
    [{"stop_when": [is_loop_finished()]}, {"max_steps": 30}, {"max_tool_iterations": 30}, {"max_llm_calls": 30}],
)
def test_any_bound_of_its_own_takes_the_default_away(options: dict[str, Any]) -> None:
    """S5: where the agent sets a bound, twenty steps are none."""
    assert "done" == play(agent(calls_until(25), Bench().tool(), **options)).result.text


def test_max_steps_is_shorthand_and_stop_when_wins() -> None:
    """S5: `max_steps=n` is `max_steps(n)`; beside `stop_when` it is ignored, and a DeprecationWarning says so."""
    short = play(agent(calls_while_on(), Bench().tool(), max_steps=3))
    with pytest.warns(DeprecationWarning, match="max_steps is ignored because stop_when is set") as caught:
        spec = AgentSpec(
            model=StrictModel(calls_while_on()), tools=[Bench().tool()], max_steps=3, stop_when=[is_step_count(5)]
        )

    assert (3, "maximum number of steps (3) reached") == (len(short.asked), short.result.stop_reason)
    assert 5 == len(play(spec).asked)
    assert __file__ == caught[0].filename
