"""Tools that fail their run: `FailRun` cancels the siblings, and nothing runs on (T6)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from actors import FailRun, PendingTool, StopRun, open_runtime, tool
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.errors import RunFailedError
from protocol.events import RunFailed, ToolStarted, Warned
from protocol.history import first_fault
from tests.support.deciders import results, statuses
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent


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


@pytest.mark.parametrize("parallel", [None, 1])
def test_fail_run_cancels_the_siblings_and_nothing_runs_on(parallel: int | None) -> None:
    """PAR-10, T6: siblings are cancelled and answered, the exchange is stored, then `run_failed`; nothing grows after."""
    ticks: list[float] = []

    async def work() -> str:
        for _ in range(10):
            await trio.sleep(1)
            ticks.append(trio.current_time())
        return "worked"

    cause = ValueError("boom")
    bad = Bench().tool("bad", FailRun(cause), seconds=3.5)
    order = ("bad", "w") if parallel == 1 else ("w", "bad")

    async def scene(stage: Stage) -> tuple[Played, int, int]:
        spec = agent([turn(*order)], tool(work, name="w", description="Work."), bad, max_parallel_tools=parallel)
        played = await stage.play(await stage.spawn(spec))
        before = len(ticks)
        await trio.sleep(100)
        return played, before, len(ticks)

    played, before, after = perform(scene)

    assert isinstance(played.error, RunFailedError)
    assert cause is played.error.__cause__
    assert ((0, 0) if parallel == 1 else (3, 3)) == (before, after)
    assert ("not_run" if parallel == 1 else "interrupted") == statuses(played)["w"]
    assert ("error", "ValueError: boom") == results(played)["bad"]
    assert ["step_finished", "run_failed"] == played.types[-2:]
    assert ("tool_failed_run", "failure") == (played.only(RunFailed).error.code, played.result.stopped_by)
    assert "boom" not in played.only(RunFailed).error.message
    assert 1 == len(played.asked)


def test_the_conversation_goes_on_after_a_failed_run() -> None:
    """R2, T6: the stored exchange is whole."""
    values: list[Any] = [FailRun(ValueError("boom")), "fine"]

    async def scene(stage: Stage) -> list[Played]:
        async def body() -> Any:
            await trio.lowlevel.checkpoint()
            value = values.pop(0)
            if isinstance(value, Exception):
                raise value
            return value

        script = [reply("", call("t", {}, id=id)) for id in ("a", "b")]
        one = await stage.spawn(agent([*script, "ok"], tool(body, name="t", description="T.")))
        return [await stage.play(one), await stage.play(one)]

    first, second = perform(scene)

    assert isinstance(first.error, RunFailedError)
    assert ({"a": "error", "b": "ok"}, "ok") == (statuses(second), second.result.text)


def test_the_first_of_two_failures_is_the_runs() -> None:
    """T6: one cause; the other call keeps its own error."""
    first, second = ValueError("first"), KeyError("second")

    async def stubborn() -> str:
        try:
            await trio.sleep_forever()
        finally:
            raise FailRun(second)

    bad = Bench().tool("bad", FailRun(first), seconds=1)
    played = play(agent([turn("s", "bad")], tool(stubborn, name="s", description="S."), bad))

    assert played.error is not None
    assert first is played.error.__cause__


def test_siblings_that_fail_while_they_are_cancelled_do_not_hide_the_cause() -> None:
    """T6: what a sibling's own tasks raise in their clean-up is its own; the run fails by the first cause."""
    cause = ValueError("boom")

    async def untidy() -> str:
        async def child() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError("clean-up")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(trio.sleep_forever)
        return "never"

    bad = Bench().tool("bad", FailRun(cause), seconds=1)
    played = play(agent([turn("u", "bad")], tool(untidy, name="u", description="U."), bad))

    assert played.error is not None
    assert (cause, "tool_failed_run") == (played.error.__cause__, played.only(RunFailed).error.code)
    assert {"u": "interrupted", "bad": "error"} == statuses(played)


def test_stop_run_beside_a_failure_is_a_failure() -> None:
    """T6: `FailRun` wins over what would have ended the run well."""
    played = play(
        agent([turn("stop", "bad")], Bench().tool("stop", StopRun("x")), Bench().tool("bad", FailRun(KeyError())))
    )

    assert isinstance(played.error, RunFailedError)
    assert "failure" == played.result.stopped_by


async def test_a_thread_cannot_be_cancelled_and_is_said_to_run_on() -> None:
    """T6, T4: the run fails at once; the thread is abandoned, reported by `warning`, and its result is dropped."""
    leave, entered = threading.Event(), threading.Event()

    def block() -> str:
        """Block."""
        entered.set()
        leave.wait(10)
        return "late"

    async def bad() -> str:
        """Fail."""
        while not entered.is_set():  # noqa: ASYNC110  a thread sets it
            await trio.sleep(0.001)
        raise FailRun(ValueError("boom"))

    try:
        async with open_runtime() as runtime:
            one = await runtime.spawn(agent([turn("block", "bad")], tool(block), tool(bad)))
            async with one.run("go") as run:
                with pytest.raises(RunFailedError) as caught:
                    await run.result()
                events = [event async for event in run]
            abandoned = runtime.statistics().tool_threads.abandoned
            leave.set()
    finally:
        leave.set()
    (step,) = caught.value.partial.steps

    assert ["interrupted", "error"] == [result.status for result in step.results]
    assert (["thread_abandoned"], 1) == ([e.code for e in events if isinstance(e, Warned)], abandoned)
    assert 2 == len([event for event in events if isinstance(event, ToolStarted)])
    assert first_fault(one.messages) is None


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("parallel", [None, 1])
def test_a_failure_before_a_sibling_is_entered_keeps_it_out(parallel: int | None, *, hooked: bool) -> None:
    """T6: not even the part of a body before its first wait runs once the run has failed."""
    entered: list[str] = []

    async def bad() -> str:
        entered.append("bad")
        raise FailRun(ValueError("boom"))

    async def good() -> str:
        entered.append("good")
        await trio.lowlevel.checkpoint()
        return "good"

    async def through(_call: PendingTool, proceed: Any) -> Any:
        return await proceed()

    names = ("b1", "good", "b2")
    tools = [tool(bad, name="b1"), tool(good, name="good"), tool(bad, name="b2")]
    for order in range(10):
        entered.clear()
        around = through if hooked else None
        played = play(agent([turn(*names)], *tools, max_parallel_tools=parallel, around_tool=around), order=order)

        assert 1 == entered.count("bad")
        assert ("good" in entered) == ("good" in [event.name for event in played.all(ToolStarted)])
        assert entered.index("bad") == len(entered) - 1
        assert isinstance(played.error, RunFailedError)
