"""Stop conditions at the places where a run may end or go on, and beside finalization (S1, S2, S5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from actors import (
    ContinuationResponse,
    Run,
    StopRun,
    StopState,
    is_step_count,
    tool,
)
from actors.models.scripted import ScriptedTurn, call, reply
from protocol.errors import StopConditionError
from protocol.events import ToolStarted
from protocol.result import RunResult
from protocol.turns import ToolMessage
from tests.support.play import Played, event_of, play
from tests.support.scripts import Bench, Trickle, calls_while_on
from tests.support.specs import DECLINE, DISCARD, Answers, agent

CALL = reply("", call("t", {}, id="a"))


@attrs.define
class Asked:
    """A condition that stops after step `at`, and keeps the numbers of the steps that it was asked after."""

    at: int | None = None
    steps: list[int] = attrs.field(factory=list)

    def __call__(self, state: StopState) -> str | None:
        self.steps.append(state.step_number)
        return "met" if state.step_number == self.at else None


def test_a_condition_sees_the_results_of_the_step() -> None:
    """Case PRE-03, S2: it is asked when the results are there, before the model is asked again."""
    seen: list[str] = []

    def is_told_to_stop(state: StopState) -> bool:
        seen.extend(result.text for result in state.steps[-1].results)
        return "STOP" in seen

    bench = Bench()
    played = play(agent([CALL, "must not be asked"], bench.tool(value="STOP"), stop_when=[is_told_to_stop]))
    last = played.messages[-1]

    assert (["STOP"], 1, {"t": 1}) == (seen, len(played.asked), bench.runs)
    assert isinstance(last, ToolMessage)
    assert [("a", "STOP")] == [(result.call, result.text) for result in last.results]
    assert ("stop_condition", "is_told_to_stop") == (played.result.stopped_by, played.result.stop_reason)


async def stops() -> str:
    """End the run."""
    raise StopRun("That is all.")


async def ends() -> str:
    """End the run."""
    return "over"


ASKED: dict[str, tuple[list[ScriptedTurn], dict[str, Any], list[int]]] = {
    "results": ([CALL, "done"], {}, [0]),
    "an error result": ([reply("", call("x", {}, id="a")), "done"], {}, [0]),
    "a cut turn with calls": ([reply("", call("t", {}, id="a"), finish="length"), "done"], {}, [0]),
    "an empty turn": (["", "done"], {}, [0]),
    "a malformed turn": ([reply("", finish="malformed"), "done"], {}, [0]),
    "continue_when": (["one", "done"], {"continue_when": lambda s: "More." if len(s.steps) == 1 else None}, [0]),
    "a complaint": (["bad", "done"], {"check_answer": lambda text: "No." if text == "bad" else None}, [0]),
    "discarded calls": (
        [CALL, reply("", call("t", {}, id="b")), "done"],
        {"max_tool_iterations": 1, "continuation": Answers(DISCARD)},
        [0, 1],
    ),
    "the last allowed call": ([CALL], {"max_llm_calls": 1}, [0]),
    "a window that is full": (
        [CALL, "final"],
        {"max_tool_iterations": 1, "tool_iteration_limit_finalization": ""},
        [0],
    ),
    "an answer": (["done"], {}, []),
    "a cut answer": ([reply("half", finish="length")], {}, []),
    "a blocked answer": ([reply("half", finish="content_filter")], {}, []),
    "an empty turn, the last": ([""], {"max_reasks": 0}, []),
    "StopRun": ([reply("", call("stops", {}, id="a"))], {}, []),
    "ends_run": ([reply("", call("ends", {}, id="a"))], {}, []),
    "a limit of tool calls": ([reply("", call("t", {}, id="a"), call("t", {}, id="b"))], {"max_tool_calls": 1}, []),
    "a decline": (
        [CALL, reply("", call("t", {}, id="b")), "final"],
        {"max_tool_iterations": 1, "continuation": lambda _: DECLINE},
        [0],
    ),
    "the final call": (["final"], {"max_llm_calls": 1, "llm_call_limit_finalization": ""}, []),
}


@pytest.mark.parametrize("name", ASKED)
def test_where_conditions_are_asked(name: str) -> None:
    """S2: after every step that another call would follow, and nowhere else; no step is skipped."""
    script, options, steps = ASKED[name]
    condition = Asked()
    tools = [Bench().tool(), tool(stops), tool(ends, ends_run=True)]
    played = play(agent(list(script), *tools, stop_when=[condition], **options))

    assert steps == condition.steps
    assert None is played.error
    assert "met" != played.result.stop_reason


@pytest.mark.parametrize("name", [name for name, (_, _, steps) in ASKED.items() if steps])
def test_where_a_condition_ends_the_run(name: str) -> None:
    """S2, section 7: it is the end of the run wherever it was asked: no call follows, no limit is told."""
    script, options, steps = ASKED[name]
    changed = {
        key: Answers(DISCARD) if key == "continuation" and name == "discarded calls" else value
        for key, value in options.items()
    }
    played = play(agent(list(script), Bench().tool(), stop_when=[Asked(steps[-1])], **changed))
    limit = played.result.limit

    assert ("stop_condition", "met", False, None) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.answered,
        played.result.finalized,
    )
    assert (steps[-1] + 1, None) == (len(played.asked), limit)
    assert (played.result.steps[-1].finish_reason or "stop") == played.result.finish_reason


def test_waiting_messages_do_not_hide_a_step() -> None:
    """S2: an answer that a waiting message keeps from being the last one is a step like any other."""
    condition = Asked()

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.steer("And?")

    played = play(agent(Trickle([["o", 1.0, "ne"], ["two"]]), stop_when=[condition]), act=act)

    assert ([0], "two") == (condition.steps, played.result.text)


def test_a_run_that_its_caller_stops_asks_no_condition() -> None:
    """S2, M2: it ends at the boundary anyway, and it was the caller who ended it."""
    condition = Asked(0)

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.stop("enough")

    played = play(agent(calls_while_on(), Bench().tool(seconds=1), stop_when=[condition]), act=act)

    assert ([], "caller", "enough") == (condition.steps, played.result.stopped_by, played.result.stop_reason)


def test_every_condition_is_asked_after_one_has_been_met() -> None:
    """S2: all run, in list order; the first that matches is the reason, whatever later ones say or raise."""
    order: list[str] = []

    def named(name: str, verdict: Any) -> Callable[[StopState], Any]:
        def condition(_state: StopState) -> Any:
            order.append(name)
            return verdict

        return condition

    async def slow(_state: StopState) -> str:
        await trio.sleep(1)
        order.append("slow")
        return "slow"

    conditions = [named("no", None), slow, named("yes", "yes"), named("last", True)]
    played = play(agent([CALL, "never"], Bench().tool(), stop_when=conditions))

    assert (["no", "slow", "yes", "last"], "slow") == (order, played.result.stop_reason)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_fails_is_an_error_although_another_is_met(place: int) -> None:
    """S2: the others have run; then the run fails, with the partial result, wherever in the list it stands."""
    met, after = Asked(0), Asked(0)

    def broken(_state: StopState) -> bool:
        raise ZeroDivisionError

    conditions: list[Any] = [met, after]
    conditions.insert(place, broken)
    played = play(agent([CALL, "never"], Bench().tool(), stop_when=conditions))

    assert (StopConditionError, ZeroDivisionError) == (
        type(played.error),
        type(played.error.__cause__ if played.error else None),
    )
    assert ([0], [0], 1) == (met.steps, after.steps, len(played.asked))
    assert ("failure", 1, None) == (played.result.stopped_by, len(played.result.steps), played.result.stop_reason)


def test_of_two_that_fail_the_first_is_told() -> None:
    """S2: in list order."""

    def first(_state: StopState) -> bool:
        raise ZeroDivisionError

    def second(_state: StopState) -> bool:
        raise KeyError

    played = play(agent([CALL, "never"], Bench().tool(), stop_when=[first, second]))

    assert isinstance(played.error.__cause__ if played.error else None, ZeroDivisionError)


def test_a_failing_condition_is_not_made_up_for_by_finalize_on_stop() -> None:
    """S2, S6: a condition that raises fails the run; there is nothing to finalize."""

    def broken(_state: StopState) -> bool:
        raise ZeroDivisionError

    played = play(agent([CALL, "never"], Bench().tool(), stop_when=[broken], finalize_on_stop=""))

    assert (StopConditionError, 1) == (type(played.error), len(played.asked))


def test_a_cancel_during_a_condition_is_a_cancel() -> None:
    """S2: `Cancelled` is no failure of the condition."""

    async def waits(_state: StopState) -> bool:
        await trio.sleep_forever()

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.cancel("enough")

    played = play(agent([CALL, "never"], Bench().tool(), stop_when=[waits]), act=act)

    assert ("cancel", "enough", 1) == (played.result.stopped_by, played.result.stop_reason, len(played.result.steps))


def text_of(result: RunResult) -> tuple[str, bool]:
    return result.text, result.answered


def test_the_text_of_a_stopped_run_is_what_was_said() -> None:
    """Section 7: the visible texts of all turns, parted by a blank line; it is no answer."""
    script = [reply("First.", call("t", {}, id="a")), reply("Second.", call("t", {}, id="b")), "never"]
    played: Played = play(agent(script, Bench().tool(), stop_when=[is_step_count(2)]))

    assert ("First.\n\nSecond.", False) == text_of(played.result)


def test_after_a_gate_that_approves_conditions_are_asked_as_ever() -> None:
    """S2: the pending calls run as a round of the next window, and then conditions are asked."""
    condition = Asked(1)
    script = [CALL, reply("", call("t", {}, id="b")), "never"]
    gate = Answers(ContinuationResponse("approve"))
    played = play(agent(script, Bench().tool(), stop_when=[condition], max_tool_iterations=1, continuation=gate))

    assert ([0, 1], 1, "met") == (condition.steps, len(gate.asked), played.result.stop_reason)
