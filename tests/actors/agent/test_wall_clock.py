"""`wall_clock_seconds` cuts what is running: a reply, tools, a final call, a child (B5, F8)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from actors import Budget, Limits, RunResult
from actors.models.scripted import call, reply
from actors.tools import tool
from protocol.errors import LimitReachedError
from protocol.events import ContentDelta, LimitReached, RunEvent, RunFinished, ToolFinished, Warned
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, TextPart, ToolMessage, Turn, UserMessage
from tests.support.costs import TEN, Prices, counted, spec
from tests.support.families import asks
from tests.support.play import Stage, numbered_events, perform, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent

TIME = LimitState("wall_clock", 10, 10.0)


def partial(text: str) -> AssistantMessage:
    return AssistantMessage((TextPart(text),), partial=True)


def test_a_reply_is_cut_and_its_text_is_kept() -> None:
    """B5, R3: cut in the middle of a stream: the text so far is in the result, and stored as partial."""
    played = play(agent(Trickle([["one ", 6.0, "two ", 6.0, "three"]]), wall_clock_seconds=10))
    result = played.result

    assert 10.0 == played.seconds
    assert ["one ", "two "] == [event.text for event in played.all(ContentDelta)]
    assert (UserMessage("go"), partial("one two ")) == played.messages
    assert ("one two ", False, "wall_clock", "deadline", TIME, None) == (
        result.text,
        result.answered,
        result.stopped_by,
        result.finish_reason,
        result.limit,
        result.finalized,
    )
    assert ["limit_reached", "run_finished"] == played.types[-2:]
    assert [TIME] == [event.limit for event in played.all(LimitReached)]
    assert TIME == played.only(RunFinished).summary.limit
    with pytest.raises(LimitReachedError, match="wall_clock"):
        result.raise_for_limit()


def test_a_reply_without_a_word_stores_nothing() -> None:
    """R3: nothing empty is stored; the call counts, for it was sent."""
    played = play(agent(Trickle([[20.0, "late"]]), wall_clock_seconds=10))

    assert (UserMessage("go"),) == played.messages
    assert ("", TIME, 1, 0) == (
        played.result.text,
        played.result.limit,
        played.result.counters.llm_calls,
        played.result.counters.steps,
    )


def test_the_texts_of_the_turns_before_stand_before_the_cut_one() -> None:
    """Section 7: the visible texts of all turns, in order, the cut one last."""
    script = Trickle([["first", reply("first", call("t", {}, id="a"))], ["second", 20.0]])
    played = play(agent(script, Bench().tool(), wall_clock_seconds=10))

    assert "first\n\nsecond" == played.result.text
    assert partial("second") == played.messages[-1]


def test_tools_end_timed_out() -> None:
    """B5: of the calls of the turn those in flight end `timed_out`, those that are done keep their results."""
    bench = Bench()
    calls = reply("look", call("quick", {}, id="q"), call("slow", {}, id="s"), call("slower", {}, id="r"))
    tools = [bench.tool("quick", seconds=1), bench.tool("slow", seconds=11), bench.tool("slower", seconds=50)]
    played = play(agent([calls], *tools, wall_clock_seconds=10))
    (message,) = [message for message in played.messages if isinstance(message, ToolMessage)]

    assert 10.0 == played.seconds
    assert [("q", "ok", True), ("s", "timed_out", True), ("r", "timed_out", True)] == [
        (result.call, result.status, result.entered) for result in message.results
    ]
    assert "Cut when the time of the run was over: it may have had an effect." == message.results[1].text
    assert 1 == len(played.result.steps)
    assert (TIME, "look", 3) == (played.result.limit, played.result.text, played.result.counters.tool_calls)


def test_calls_that_had_not_begun_are_not_run() -> None:
    """B5, R4: a call whose body was not entered is `not_run`, and no body counts for it."""
    calls = reply("", call("slow", {}, id="a"), call("slow", {}, id="b"))
    played = play(agent([calls], Bench().tool("slow", seconds=11), wall_clock_seconds=10, max_parallel_tools=1))
    statuses = {event.call: event.status for event in played.all(ToolFinished)}

    assert {"a": "timed_out", "b": "not_run"} == statuses
    assert 1 == played.result.counters.tool_calls


def test_a_tool_that_swallows_its_cancel_does_not_outlive_the_limit_for_long() -> None:
    """B5, R4: the run ends after the grace time; the tool's call has its result, whatever the tool does."""

    async def stubborn() -> str:
        """Do not listen."""
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        return "late"

    played = play(agent([reply("", call("stubborn", {}, id="a"))], tool(stubborn), wall_clock_seconds=10))

    assert (TIME, 10.0 + 5.0) == (played.result.limit, played.seconds)  # `cancel_grace_seconds`
    assert ["timed_out"] == [event.status for event in played.all(ToolFinished)]


def test_a_thread_that_does_not_listen_is_reported() -> None:
    """B5, T4: a tool's thread cannot be cut: the call ends `timed_out`, and a warning says that the thread still runs."""
    go_on, entered = threading.Event(), threading.Event()

    def blocking() -> str:
        """Hold on to the thread."""
        entered.set()
        go_on.wait()
        return "late"

    async def scene(stage: Stage) -> tuple[list[RunEvent], LimitState | None]:
        async def watch() -> str:
            """Let time pass once the thread is there."""
            while not entered.is_set():  # noqa: ASYNC110  a jumping clock does not wait for a thread
                await trio.lowlevel.checkpoint()
            await trio.sleep(60)
            return "never"

        calls = reply("", call("blocking", {}, id="a"), call("watch", {}, id="b"))
        hosted = await stage.spawn(agent([calls], tool(blocking), tool(watch), wall_clock_seconds=10))
        try:
            played = await stage.play(hosted)
        finally:
            go_on.set()
        return list(played.events), played.result.limit

    events, limit = perform(scene)

    assert TIME == limit
    assert [("thread_abandoned", "a")] == [(e.code, e.call) for e in events if isinstance(e, Warned)]
    assert {"a": "timed_out", "b": "timed_out"} == {e.call: e.status for e in events if isinstance(e, ToolFinished)}


def test_a_hook_is_cut_and_its_call_given_back() -> None:
    """B5, B1: a call whose request was never sent is not counted."""

    async def slow(_config: Any) -> Any:
        await trio.sleep(30)

    played = play(agent(["never"], prepare_call=slow, wall_clock_seconds=10))

    assert (TIME, 0, ()) == (played.result.limit, played.result.counters.llm_calls, played.asked)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"max_tool_iterations": 1, "tool_iteration_limit_finalization": ""}, "tool_iterations"),
        ({"max_llm_calls": 2, "llm_call_limit_finalization": ""}, "llm_calls"),
        ({"budget_finalization": "", "finalization_window_seconds": 5}, "wall_clock"),
    ],
)
def test_a_final_call_is_cut_too(options: dict[str, Any], first: str) -> None:
    """F8: a final call cut by the wall clock: that limit, with the text so far, no fallback text."""
    tool = Bench().tool(seconds=5)
    script = Trickle([["look", reply("look", call("t", {}, id="a"))], ["I think", 20.0]])
    played = play(agent(script, tool, wall_clock_seconds=10, **options))
    result = played.result

    assert [first, "wall_clock"] == [event.limit.name for event in played.all(LimitReached)]
    assert ("look\n\nI think", False, "wall_clock", "deadline", TIME, None) == (
        result.text,
        result.answered,
        result.stopped_by,
        result.finish_reason,
        result.limit,
        result.finalized,
    )
    assert partial("I think") == played.messages[-1]
    assert ["limit_reached", "run_finished"] == played.types[-2:]


def test_a_cut_reply_is_charged_what_had_arrived() -> None:
    """B1, B3: a call that was cut is settled with the estimate: its request and the text that had arrived."""
    budget = Budget(max_cost=100.0)
    script = Trickle([["12345678", 20.0]], profile=counted(10))
    played = play(agent(script, wall_clock_seconds=10, budget=budget, prices=Prices(token=1.0, models=("trickle",))))
    statistics = budget.statistics()

    assert (12, 12.0, None, 1, 0) == (
        statistics.estimated_tokens,
        statistics.estimated_cost,
        statistics.cost,
        statistics.llm_calls,
        statistics.open_reservations,
    )
    assert (None, False) == (played.result.cost, played.result.usage.complete)


@pytest.mark.parametrize("order", range(6))
def test_a_child_is_cut_with_its_caller(order: int) -> None:
    """B5, N3: the caller's time is its children's too; both say which limit it was, and the tool is `timed_out`."""

    async def scene(stage: Stage) -> Any:
        child = await stage.spawn(agent(Trickle([["half", 20.0]]), name="child"))
        script = [reply("", call("ask_child", {}, id="a"))]
        root = await stage.spawn(agent(script, asks(stage, child), wall_clock_seconds=10))
        played = await stage.play(root)
        told = [event for _, event in await numbered_events(root) if isinstance(event, LimitReached)]
        return played, child.messages[-1], [(event.agent_path, event.limit) for event in told]

    played, last, told = perform(scene, order=order)

    assert (TIME, 10.0) == (played.result.limit, played.seconds)
    assert [(("child",), TIME), ((), TIME)] == told
    assert ["timed_out"] == [result.status for result in played.result.steps[0].results]
    assert partial("half") == last


def test_a_childs_own_time_cuts_the_child_alone() -> None:
    """B5: a child with less time than its caller is cut by its own limit, and its caller goes on."""

    async def scene(stage: Stage) -> Any:
        child = await stage.spawn(agent(Trickle([["half", 20.0]]), name="child", wall_clock_seconds=5))
        results: list[RunResult] = []
        script = [reply("", call("ask_child", {}, id="a")), "done"]
        root = await stage.spawn(agent(script, asks(stage, child, into=results), wall_clock_seconds=10))
        return await stage.play(root), [result.limit for result in results]

    played, limits = perform(scene)

    assert [LimitState("wall_clock", 5, 5.0)] == limits
    assert ("done", None) == (played.result.text, played.result.limit)
    assert "half" == played.result.steps[0].results[0].text


def test_a_budgets_time_is_that_of_all_its_runs() -> None:
    """B0, B5: a budget's clock counts over runs: what the first used the second has not."""

    async def scene(stage: Stage) -> Any:
        budget = Budget(wall_clock_seconds=10, name="morning")
        script = [reply("", call("t", {}, id="a")), "one", reply("", call("t", {}, id="b")), "two"]
        hosted = await stage.spawn(agent(script, Bench().tool(seconds=6), budget=budget))
        first = await stage.play(hosted)
        await trio.sleep(1000)
        between = budget.statistics().work_seconds
        second = await stage.play(hosted)
        return first.result, between, second.result

    first, between, second = perform(scene)

    assert ("one", None, 6.0) == (first.text, first.limit, between)
    assert (TIME, "wall_clock") == (second.limit, second.stopped_by)
    assert 4.0 == second.elapsed_seconds


def test_a_budget_without_time_left_lets_no_call_out() -> None:
    """B5: a run that begins when the time is over ends at once, and asks nothing of the model."""

    async def scene(stage: Stage) -> Any:
        budget = Budget(wall_clock_seconds=10)
        hosted = await stage.spawn(agent(Trickle([["half", 20.0]]), budget=budget))
        return await stage.play(hosted), await stage.play(hosted, "again")

    first, second = perform(scene)

    assert (TIME, 10.0) == (first.result.limit, first.seconds)
    assert (TIME, 0.0, ()) == (second.result.limit, second.seconds, second.asked)


def test_two_runs_at_once_use_a_budgets_time_once() -> None:
    """B5: seconds in which at least one run works: two side by side for six seconds use six."""

    async def scene(stage: Stage) -> float | None:
        budget = Budget(wall_clock_seconds=10)

        async def one() -> None:
            script = [reply("", call("t", {}, id="a")), "one"]
            await stage.play(await stage.spawn(agent(script, Bench().tool(seconds=6), budget=budget)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        return budget.statistics().work_seconds

    assert 6.0 == perform(scene)


def test_the_limit_may_be_given_to_one_run() -> None:
    """R6: `run(limits=)` sets the time of that run."""

    async def scene(stage: Stage) -> LimitState | None:
        hosted = await stage.spawn(agent(Trickle([["half", 20.0]])))
        return (await stage.play(hosted, limits=Limits(wall_clock_seconds=10))).result.limit

    assert TIME == perform(scene)


def test_a_reply_in_time_is_not_cut() -> None:
    """B5: a run that ends before its time is up is told of no limit."""

    def follow(_request: ModelRequest) -> Turn:
        return reply("done", usage=TEN)

    played = play(spec(follow, wall_clock_seconds=0.001))

    assert ("done", None, []) == (played.result.text, played.result.limit, played.all(LimitReached))


def test_tools_are_timed_by_the_clock_that_is_shorter() -> None:
    """B5, T4: a tool's own timeout comes first where it is shorter, and the run goes on with its result."""
    script = [reply("", call("t", {}, id="a")), "done"]
    played = play(agent(script, Bench().tool(seconds=50), wall_clock_seconds=10, tool_timeout_seconds=3))

    assert ["timed_out"] == [result.status for result in played.result.steps[0].results]
    assert ("done", None) == (played.result.text, played.result.limit)
