"""Tools that end their run well: `ends_run`, `StopRun` (T6)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Run, StopRun, StopState, has_tool_call, tool
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.events import RunFinished, StepFinished
from tests.support.deciders import results, statuses
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.specs import APPROVE, agent


def turn(*names: str, text: str = "") -> Any:
    """One turn with a call of each tool, with the tool's name as its id."""
    return reply(text, *[call(name, {}, id=name) for name in names])


def ender(name: str = "done", *, value: Any = "bye", seconds: float = 0) -> Tool:
    """A tool with `ends_run`."""

    async def body() -> Any:
        await trio.sleep(seconds)
        if isinstance(value, Exception):
            raise value
        return value

    return tool(body, name=name, description="End.", ends_run=True)


def test_a_tool_that_ends_the_run_does_so_after_the_exchange() -> None:
    """T6: the results are stored, no model is asked again, and the run is the tool's."""
    bench = Bench()
    played = play(agent([turn("t", "done", text="working")], bench.tool(seconds=3), ender()))
    result = played.result

    assert ("tool", None, "tool_calls", False) == (
        result.stopped_by,
        result.limit,
        result.finish_reason,
        result.answered,
    )
    assert {"t": ("ok", "1"), "done": ("ok", "bye")} == results(played)
    assert (1, "working") == (len(played.asked), result.text)
    assert [StepFinished, RunFinished] == [type(event) for event in played.events[-2:]]


def test_a_tool_that_ends_the_run_and_fails_does_not() -> None:
    """T6: only a success ends it; the error goes back to the model."""
    played = play(agent([turn("done"), "sorry"], ender(value=ValueError("no"))))

    assert ("model", "sorry") == (played.result.stopped_by, played.result.text)


def test_a_tool_that_ends_the_run_and_times_out_does_not() -> None:
    """T6, T4: a timeout is no success either."""
    played = play(agent([turn("done"), "sorry"], ender(seconds=9), tool_timeout_seconds=3))

    assert ({"done": "timed_out"}, "model") == (statuses(played), played.result.stopped_by)


@pytest.mark.parametrize(
    ("said", "text", "result_text"),
    [("that is all", "that is all", "that is all"), ("", "", "The run is stopped."), ("\ud800", "\ufffd", "\ufffd")],
)
def test_stop_run_ends_the_run_with_its_text(said: str, text: str, result_text: str) -> None:
    """T6: the text closes the result; the call succeeded and its body was entered."""
    played = play(agent([turn("t")], Bench().tool(value=StopRun(said))))

    assert ("tool", text, "") == (played.result.stopped_by, played.result.text, played.result.stop_reason or "")
    assert {"t": ("ok", result_text)} == results(played)


def test_the_texts_of_the_turns_stand_before_the_one_that_ends_the_run() -> None:
    """Section 7: the visible texts of all turns, in order, parted by a blank line, then `StopRun`'s."""
    script = [turn("a", text="first"), turn("b", text="second")]
    played = play(agent(script, Bench().tool("a"), Bench().tool("b", StopRun("end"))))

    assert "first\n\nsecond\n\nend" == played.result.text


def test_several_tools_that_stop_the_run_are_all_heard() -> None:
    """T6: the siblings of a `StopRun` run to their end; texts stand in the order in which they came."""
    bench = Bench()
    one, two = bench.tool("one", StopRun("late"), seconds=5), bench.tool("two", StopRun("early"), seconds=1)
    played = play(agent([turn("one", "two", "t", "done")], one, two, bench.tool(seconds=9), ender(seconds=2)))

    assert ("early\n\nlate", 9.0) == (played.result.text, played.seconds)
    assert ["ok"] * 4 == list(statuses(played).values())


def test_no_condition_and_no_final_call_follow_a_tool_that_ends_the_run() -> None:
    """S2: where the run ends anyway, nothing is asked; `stop_reason` is empty."""
    asked: list[int] = []

    def look(_state: StopState) -> None:
        asked.append(1)

    spec = agent(
        [turn("done")],
        ender(),
        stop_when=[look, has_tool_call("done")],
        max_tool_iterations=1,
        tool_iteration_limit_finalization="",
    )
    played = play(spec)

    assert ("tool", None, [], None) == (
        played.result.stopped_by,
        played.result.stop_reason,
        asked,
        played.result.finalized,
    )


def test_steering_that_waits_when_a_tool_ends_the_run_is_undelivered() -> None:
    """Section 3: messages still waiting when a run ends are dropped, and said so."""

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.steer("one more thing")

    played = play(agent([turn("done")], ender(seconds=3)), act=act)

    assert ("tool", ("one more thing",)) == (played.result.stopped_by, played.result.undelivered)


def test_a_tool_may_end_the_run_in_the_round_that_a_gate_granted() -> None:
    """T6: the gate changes nothing about it."""
    script = [turn("t"), turn("done")]
    played = play(agent(script, Bench().tool(), ender(), max_tool_iterations=1, continuation=lambda _r: APPROVE))

    assert ("tool", 2) == (played.result.stopped_by, played.result.counters.tool_iterations)
