"""`generate` and `stream`: one question, an agent and a runtime of its own, and nothing left behind."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import trio
import trio.testing

from actors import (
    AgentSpec,
    ContinuationResponse,
    external_tool,
    generate,
    is_loop_finished,
    open_runtime,
    remote,
    stream,
)
from actors.models import Scripted, call, reply
from protocol.errors import ModelError, RunFailedError, SpecError
from protocol.events import ContinuationRequired, Event, RunEvent, RunStarted
from protocol.model import ModelRequest
from protocol.turns import Turn

Clock = trio.testing.MockClock


async def look(place: str) -> str:
    """Look at a place."""
    await trio.sleep(1)
    return f"{place} is empty"


def looking(then: str = "done") -> Scripted:
    return Scripted([reply("", call("look", {"place": "the box"}, id="a")), then])


async def test_an_answer(autojump_clock: Clock) -> None:
    """One model call, one answer."""
    model = Scripted(["four"])
    result = await generate(model, "2 + 2?", system="Be brief.", temperature=0.5)

    assert ("four", True, 1) == (result.text, result.answered, result.counters.llm_calls)
    assert ("Be brief.", 0.5) == (model.requests[0].system, model.requests[0].temperature)


async def test_one_step_is_the_default(autojump_clock: Clock) -> None:
    """Its tool calls are executed and stored; a second model call is not made (S5)."""
    model = looking()
    result = await generate(model, "look", tools=[look])

    assert ("stop_condition", "maximum number of steps (1) reached", 1) == (
        result.stopped_by,
        result.stop_reason,
        len(model.requests),
    )
    assert ["the box is empty"] == [result.text for result in result.steps[0].results]
    assert 3 == len(result.messages)


@pytest.mark.parametrize("settings", [{"stop_when": [is_loop_finished()]}, {"max_steps": 5}])
async def test_more_steps(autojump_clock: Clock, settings: Any) -> None:
    """A condition of the caller's own takes the default's place, `max_steps` too, and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = await generate(looking("nothing"), "look", tools=[look], **settings)

    assert ("nothing", "model", 2) == (result.text, result.stopped_by, result.counters.steps)


async def test_a_limit_alone_leaves_the_default(autojump_clock: Clock) -> None:
    """Limits bound; they ask for no further step."""
    result = await generate(looking(), "look", tools=[look], max_llm_calls=9)

    assert ("stop_condition", 1) == (result.stopped_by, result.counters.llm_calls)


async def test_a_stream(autojump_clock: Clock) -> None:
    """Events as they come, and the result at the end: the same run."""
    async with stream(looking(), "look", tools=[look]) as run:
        types = [event.type async for event in run if isinstance(event, Event)]
        result = await run.result()

    assert [
        "run_started",
        "step_started",
        "tool_call_delta",
        "tool_requested",
        "tool_started",
        "tool_finished",
    ] == types[:6]
    assert ("run_finished", run.id) == (types[-1], result.run)


async def test_the_same_run(autojump_clock: Clock) -> None:
    """`generate` is `stream` waited for: the results are equal but for their ids."""
    one = await generate(looking(), "look", tools=[look])
    async with stream(looking(), "look", tools=[look]) as run:
        other = await run.result()

    assert one.summary() == other.summary()
    assert one.messages == other.messages


async def test_a_stream_that_is_left(autojump_clock: Clock) -> None:
    """Leaving the block cancels the run: it ends before the block does, and so does the tool."""
    left: list[str] = []

    async def slow() -> str:
        """Slow."""
        try:
            await trio.sleep(60)
        finally:
            left.append("tool")
        return ""

    async with stream(Scripted([reply("", call("slow", {}))]), "go", tools=[slow]) as run:
        await trio.sleep(1)
    left.append("block")

    assert (["tool", "block"], True, 1.0) == (left, run.over, trio.current_time())


async def test_a_caller_that_is_cancelled(autojump_clock: Clock) -> None:
    """A deadline around it ends all of it."""

    async def slowly(_request: ModelRequest) -> Turn:
        await trio.sleep(60)
        return reply("late")

    with trio.move_on_after(5) as scope:
        await generate(Scripted(slowly), "go")

    assert (True, 5.0) == (scope.cancelled_caught, trio.current_time())


async def test_a_failure_leaves_as_itself(autojump_clock: Clock) -> None:
    """No group around it, and the partial result is in it."""
    with pytest.raises(RunFailedError, match="down") as error:
        await generate(Scripted([ModelError("down")]), "go")

    assert 1 == error.value.partial.counters.llm_calls


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"stop_when": []}, r"say \[is_loop_finished\(\)\]"),
        ({"max_steps": 0}, "max_steps must be an integer >= 1"),
        ({"max_llm_calls": "many"}, "max_llm_calls must be an integer >= 1"),
        ({"tools": "look"}, "tools must be a sequence"),
    ],
)
async def test_bad_settings(autojump_clock: Clock, settings: Any, told: str) -> None:
    """Said before anything is opened, as of any agent."""
    with pytest.raises(SpecError, match=told):
        await generate(Scripted(["never"]), "go", **settings)


async def test_an_empty_prompt(autojump_clock: Clock) -> None:
    """Refused as itself, out of the runtime."""
    with pytest.raises(SpecError, match="the prompt is empty"):
        await generate(Scripted(["never"]), " ")


async def test_a_setting_that_there_is_not(autojump_clock: Clock) -> None:
    """A misspelt setting is an error, not ignored."""
    with pytest.raises(TypeError, match="max_step"):
        await generate(Scripted(["never"]), "go", max_step=3)


async def test_tools_of_the_callers_own(autojump_clock: Clock) -> None:
    """`generate` returns at the pause; in a stream the results can be given, and the run goes on."""
    look_up = external_tool("look_up", "Look it up.", {"type": "object"})
    asks = reply("", call("look_up", {}, id="a"))
    paused = await generate(Scripted([asks]), "go", tools=[look_up])
    async with stream(Scripted([asks, "done"]), "go", tools=[look_up], max_steps=3) as run:
        await run.result()
        waiting = [pending.id for pending in run.pending]
        run.submit({"a": "found"})
        result = await run.result()

    assert ("pending_tools", False) == (paused.stopped_by, paused.answered)
    assert (["a"], "done") == (waiting, result.text)


async def test_a_gate_of_a_stream(autojump_clock: Clock) -> None:
    """All that a run can do, it can do here: a gate is decided through the handle."""
    model = Scripted([*[reply("", call("look", {"place": place}, id=place)) for place in ("a", "b")], "done"])
    async with stream(
        model, "go", tools=[look], stop_when=[is_loop_finished()], max_tool_iterations=1, continuation=remote()
    ) as run:
        async for event in run:
            if isinstance(event, ContinuationRequired):
                await run.decide(event.request, ContinuationResponse("approve"))
        result = await run.result()

    assert ("done", 2) == (result.text, result.counters.tool_iterations)


async def test_the_context_is_the_callbacks(autojump_clock: Clock) -> None:
    """`context` is passed to conditions and hooks untouched."""
    seen: list[Any] = []

    def condition(state: Any) -> bool:
        seen.append(state.context)
        return True

    await generate(looking(), "look", tools=[look], context="mine", stop_when=[condition])

    assert ["mine"] == seen


async def test_inside_a_tool(autojump_clock: Clock) -> None:
    """It is a run below the one whose tool asks: on its account, in its stream."""

    async def think() -> str:
        """Think."""
        return (await generate(Scripted(["thought"]), "think", name="thinker")).text

    async with open_runtime() as runtime:
        root = await runtime.spawn(AgentSpec(model=Scripted([reply("", call("think", {})), "done"]), tools=[think]))
        async with root.run("go") as run:
            events = [event async for event in run if isinstance(event, RunEvent)]
            result = await run.result()

    assert ("done", 3) == (result.text, result.counters.llm_calls)
    assert [(), ("thinker",)] == [event.agent_path for event in events if isinstance(event, RunStarted)]


class Closing(Scripted):
    """A model that holds something open."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_the_model_is_closed(autojump_clock: Clock) -> None:
    """What the model held open is closed with it, and no task is left."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    model = Closing(["four"])
    await generate(model, "2 + 2?")

    assert (1, tasks) == (model.closed, trio.lowlevel.current_statistics().tasks_living)
