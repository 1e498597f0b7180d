"""Leaving `run.steps()`: by its end, by breaking out, by an error, and by `result()` (M1)."""

from __future__ import annotations

import pytest
import trio

from actors.models.scripted import call, reply
from protocol.errors import RunFailedError
from protocol.events import RunCancelled, RunEvent
from tests.actors.agent._stepping import asked, settle, two_rounds
from tests.support.play import Stage, perform
from tests.support.scripts import Bench, calls_until
from tests.support.specs import agent


def test_result_lets_the_loop_go() -> None:
    """M1: after some steps by hand, the rest runs by itself."""
    spec = two_rounds()

    async def scene(stage: Stage) -> str:
        async with stage.run(await stage.spawn(spec)) as run:
            async for _ in run.steps():
                break
            await settle()
            assert asked(spec) == 1
            return (await run.result()).text

    assert ("done", 3) == (perform(scene), asked(spec))


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_leaving_the_block_while_the_loop_is_held_does_not_hang(steps: int) -> None:
    """M1, M2: breaking out of the iteration and leaving cancels the run, at once."""
    spec = two_rounds()

    async def scene(stage: Stage) -> tuple[list[RunEvent], float]:
        began = trio.current_time()
        async with stage.run(await stage.spawn(spec)) as run:
            reader = run.steps()
            for _ in range(steps):
                await anext(reader)
        return [event async for event in run if isinstance(event, RunEvent)], trio.current_time() - began

    events, seconds = perform(scene)

    assert isinstance(events[-1], RunCancelled)
    assert (steps, 0.0) == (asked(spec), seconds)


def test_leaving_the_block_by_an_error_inside_the_iteration() -> None:
    """M1: the error comes out, and the run is over."""
    over: list[bool] = []

    async def scene(stage: Stage) -> None:
        ann = await stage.spawn(two_rounds())
        with pytest.raises(ZeroDivisionError):
            async with stage.run(ann) as run:
                async for _ in run.steps():
                    raise ZeroDivisionError
        over.append(run.over)

    perform(scene)

    assert [True] == over


def test_a_run_that_fails_ends_the_iteration() -> None:
    """M1: the finished steps are given; `result()` says why there are no more."""

    async def scene(stage: Stage) -> list[int]:
        ann = await stage.spawn(agent([reply("", call("t", {}, id="a")), RuntimeError("down")], Bench().tool()))
        async with stage.run(ann) as run:
            numbers = [step.number async for step in run.steps()]
            with pytest.raises(RunFailedError):
                await run.result()
            return numbers

    assert [0] == perform(scene)


def test_steps_of_a_run_that_is_over() -> None:
    """M1: all its steps are given, and nothing waits."""

    async def scene(stage: Stage) -> list[int]:
        async with stage.run(await stage.spawn(two_rounds())) as run:
            await run.result()
            return [step.number async for step in run.steps()]

    assert [0, 1, 2] == perform(scene)


def test_an_iteration_that_is_abandoned_in_a_timeout_can_be_taken_up_again() -> None:
    """M1: a caller who waited too long for a step loses none."""
    spec = agent(calls_until(2), Bench().tool(seconds=10))

    async def scene(stage: Stage) -> list[int]:
        async with stage.run(await stage.spawn(spec)) as run:
            reader = run.steps()
            with trio.move_on_after(1):
                await anext(reader)
            return [step.number async for step in reader]

    assert ([0, 1, 2], 3) == (perform(scene), asked(spec))
