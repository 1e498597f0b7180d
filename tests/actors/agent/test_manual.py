"""A loop of the user's own: its functions, and what they say to wrong use."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

from actors import (
    Loop,
    Run,
    append_exchange,
    evaluate_stop,
    execute_tools,
    generate_step,
    has_tool_call,
    is_loop_finished,
    should_continue,
    unanswered_calls,
)
from actors.models.scripted import call, reply
from protocol.errors import HookError, RunFailedError, SpecError, StopConditionError
from protocol.events import RunFailed, ToolFinished
from protocol.turns import AssistantMessage, ToolMessage, UserMessage

from ...support.play import Stage, perform, play
from ...support.scripts import Bench, calls_until, calls_while_on
from ...support.specs import DECLINE, agent


async def rest(loop: Loop) -> None:
    """The loop as the engine has it."""
    while should_continue(loop):
        await generate_step(loop)
        await execute_tools(loop) if unanswered_calls(loop.messages) else None
        await append_exchange(loop)


def test_what_the_functions_return() -> None:
    """A turn, results in call order, and views of what is stored and in hand."""
    seen: list[Any] = []

    async def loop(loop: Loop) -> None:
        seen.append([type(message) for message in loop.messages])
        turn = await generate_step(loop)
        assert turn is not None
        seen.append([called.id for called in turn.calls])
        seen.append([called.id for called in unanswered_calls(loop.messages)])
        seen.append([(result.call, result.text) for result in await execute_tools(loop)])
        await append_exchange(loop)
        seen.append([type(message) for message in loop.messages])
        seen.append([(step.number, len(step.results)) for step in loop.steps])
        seen.append(unanswered_calls(loop.messages))
        await rest(loop)

    bench = Bench()
    turns = [reply("", call("slow", {}, id="a"), call("t", {}, id="b")), "done"]
    played = play(agent(turns, bench.tool("slow", "s", seconds=1), bench.tool("t", "x")), loop=loop)

    assert [
        [UserMessage],
        ["a", "b"],
        ["a", "b"],
        [("a", "s"), ("b", "x")],
        [UserMessage, AssistantMessage, ToolMessage],
        [(0, 2)],
        (),
    ] == seen
    assert ["b", "a"] == [event.call for event in played.all(ToolFinished)]
    assert "done" == played.result.text


def test_after_the_end_they_do_nothing() -> None:
    """Once the run has come to its end, every function returns at once and changes nothing."""
    seen: list[Any] = []

    async def loop(loop: Loop) -> None:
        await rest(loop)
        seen.append(await generate_step(loop))
        seen.append(await execute_tools(loop))
        await append_exchange(loop, {"x": 1})
        seen.append(await evaluate_stop(loop))
        loop.stop("too late")
        seen.append(should_continue(loop))

    played = play(agent(["done"]), loop=loop)

    assert [None, (), None, False] == seen
    assert ("model", 1, None) == (
        played.result.stopped_by,
        played.result.counters.llm_calls,
        played.result.stop_reason,
    )


def test_a_kept_loop_is_dead() -> None:
    """A loop that outlives its function drives nothing any more."""
    kept: list[Loop] = []

    async def early(loop: Loop) -> None:
        kept.append(loop)

    async def scene(stage: Stage) -> Any:
        played = await stage.play(await stage.spawn(agent(["done"])), loop=early)
        return played, await generate_step(kept[0]), should_continue(kept[0])

    played, turn, goes_on = perform(scene)

    assert (None, False) == (turn, goes_on)
    assert 0 == played.result.counters.llm_calls


def test_stop_is_a_stop_condition() -> None:
    """The run ends with the loop's reason, as by a condition."""

    async def loop(loop: Loop) -> None:
        while should_continue(loop):
            await generate_step(loop)
            await execute_tools(loop)
            await append_exchange(loop)
            if len(loop.steps) == 2:
                loop.stop("two are enough")

    played = play(agent(calls_while_on(), Bench().tool()), loop=loop)

    assert ("stop_condition", "two are enough", 2) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.counters.steps,
    )


def test_conditions_are_the_agents() -> None:
    """`evaluate_stop` asks them, and says why; whether to stop is the loop's own decision."""
    said: list[str | None] = []

    async def loop(loop: Loop) -> None:
        while should_continue(loop):
            await generate_step(loop)
            await execute_tools(loop)
            await append_exchange(loop)
            said.append(await evaluate_stop(loop))

    played = play(agent(calls_until(2), Bench().tool(), stop_when=[has_tool_call("t")]), loop=loop)

    assert ["tool 't' was called", "tool 't' was called", None] == said
    assert ("model", "done") == (played.result.stopped_by, played.result.text)


@pytest.mark.parametrize("way", ["declined", "stopped"])
def test_where_no_condition_is_asked(way: str) -> None:
    """Before the final call, and where the caller has stopped the run, no condition is asked, and `stop` changes nothing."""
    asked: list[int] = []

    async def loop(loop: Loop) -> None:
        while should_continue(loop):
            await generate_step(loop)
            await execute_tools(loop) if unanswered_calls(loop.messages) else None
            await append_exchange(loop)
            if should_continue(loop):
                await evaluate_stop(loop)
            if way == "declined" and len(loop.steps) > 1:
                loop.stop("not now")

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        if way == "stopped":
            run.stop("enough")

    spec = agent(
        calls_while_on(),
        Bench().tool(seconds=1),
        stop_when=[lambda state: asked.append(state.step_number)],
        max_tool_iterations=1,
        continuation=lambda _request: DECLINE,
    )
    played = play(spec, loop=loop, act=act)

    if way == "declined":
        assert ([0], "final", "model") == (asked, played.result.text, played.result.finalized)
    else:
        assert ([], "caller") == (asked, played.result.stopped_by)


def test_a_condition_that_fails() -> None:
    """It fails the run as ever; the loop sees that the run does not go on."""

    def broken(_state: Any) -> None:
        raise ValueError("broken")

    said: list[Any] = []

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        await execute_tools(loop)
        await append_exchange(loop)
        said.append(await evaluate_stop(loop))
        said.append(should_continue(loop))

    played = play(agent(calls_while_on(), Bench().tool(), stop_when=[broken]), loop=loop)

    assert [None, False] == said
    assert isinstance(played.error, StopConditionError)


def test_a_hook_that_fails() -> None:
    """`generate_step` returns `None`: the run has its end."""
    said: list[Any] = []

    def broken(_config: Any) -> Any:
        raise ValueError("broken")

    async def loop(loop: Loop) -> None:
        said.append(await generate_step(loop))
        said.append(should_continue(loop))

    played = play(agent(["done"], prepare_call=broken), loop=loop)

    assert [None, False] == said
    assert isinstance(played.error, HookError)


def test_steps_hold_the_loop() -> None:
    """A reader of `run.steps()` holds `generate_step` as it holds the engine (M1)."""
    asked: list[int] = []

    async def scene(stage: Stage) -> None:
        spec = agent(calls_until(2), Bench().tool())
        agent_ = await stage.spawn(spec)
        async with stage.run(agent_, loop=rest) as run:
            async for _ in run.steps():
                await trio.sleep(5)
                asked.append(run.statistics().counters.llm_calls)

    perform(scene)

    assert [1, 2, 3] == asked


async def _generate_twice(loop: Loop) -> None:
    await generate_step(loop)
    await generate_step(loop)


async def _append_unanswered(loop: Loop) -> None:
    await generate_step(loop)
    await append_exchange(loop)


async def _append(loop: Loop, results: Any) -> None:
    await generate_step(loop)
    await append_exchange(loop, results)


async def _append_answered(loop: Loop) -> None:
    await generate_step(loop)
    await execute_tools(loop)
    await append_exchange(loop, {"a": 2})


async def _stop_inside(loop: Loop) -> None:
    await generate_step(loop)
    loop.stop("enough")


async def _evaluate_inside(loop: Loop) -> None:
    await generate_step(loop)
    await evaluate_stop(loop)


async def _stop(loop: Loop, reason: Any) -> None:
    loop.stop(reason)


async def _at_once(loop: Loop) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(generate_step, loop)
        nursery.start_soon(generate_step, loop)


def _plain(_loop: Loop) -> None:
    """No coroutine function."""


@pytest.mark.parametrize(
    ("loop", "told"),
    [
        (_generate_twice, "generate_step: the turn in hand is not stored yet: call append_exchange(loop) first"),
        (execute_tools, "execute_tools: there is no turn in hand: call generate_step(loop) first"),
        (append_exchange, "append_exchange: there is no turn in hand: call generate_step(loop) first"),
        (
            _append_unanswered,
            "append_exchange: a, b has no result: call execute_tools(loop) first, or give results= by",
        ),
        (partial(_append, results={"a": 1}), "append_exchange: b has no result: call execute_tools(loop) first"),
        (partial(_append, results={"a": 1, "c": 1}), "no result is wanted for c; wanted are a, b"),
        (partial(_append, results=[1]), "results must be a mapping from call ids to results; it is [1]"),
        (
            partial(_append, results={"a": 1, "b": object()}),
            "append_exchange: Tool 't' returned an object; it must return text",
        ),
        (_append_answered, "no result is wanted for a; wanted are none"),
        (evaluate_stop, "evaluate_stop: no step is finished yet, and nothing to stop: just return from the loop"),
        (_evaluate_inside, "evaluate_stop: the turn in hand is not stored yet"),
        (partial(_stop, reason="x"), "loop.stop: no step is finished yet"),
        (_stop_inside, "loop.stop: the turn in hand is not stored yet"),
        (partial(_stop, reason=" "), "loop.stop(reason): say why the run ends; it is ' '"),
        (_at_once, "generate_step: generate_step is still at work: a loop does one thing after the other"),
        (_plain, "loop must be an async function of a Loop: write `async def`"),
    ],
)
def test_wrong_use(loop: Any, told: str) -> None:
    """It fails the run with an error that says what is wrong and what would be right."""
    turn = reply("", call("t", {}, id="a"), call("t", {}, id="b"))
    played = play(agent([turn, "done"], Bench().tool(), stop_when=[is_loop_finished()]), loop=loop)

    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, SpecError)
    assert told in str(played.error)
    assert "loop_error" == played.only(RunFailed).error.code


def test_wrong_use_changes_nothing() -> None:
    """What was refused can be done right after."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        for wrong in ({}, {"b": 1}, {"a": object()}):
            with pytest.raises(SpecError):
                await append_exchange(loop, wrong)
        with pytest.raises(SpecError):
            await generate_step(loop)
        await execute_tools(loop)
        await execute_tools(loop)
        await append_exchange(loop)
        await rest(loop)

    bench = Bench()
    played = play(agent([reply("", call("t", {}, id="a")), "done"], bench.tool()), loop=loop)

    assert ("done", {"t": 1}) == (played.result.text, bench.runs)


def test_a_loop_must_be_a_function() -> None:
    """Said at the start, before there is a run."""

    async def scene(stage: Stage) -> None:
        agent_ = await stage.spawn(agent(["done"]))
        with pytest.raises(SpecError, match="loop must be an async function of a Loop, or None"):
            async with stage.run(agent_, loop="mine"):
                pass

    perform(scene)
