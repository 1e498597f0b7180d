"""`run.steps()` holds the loop: between two steps the caller may look, steer, override or stop (M1)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors import RunResult, StepOverrides
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError
from protocol.events import StepFinished
from protocol.result import StepResult
from protocol.turns import ToolMessage, UserMessage
from tests.actors.agent._stepping import asked, settle, two_rounds
from tests.support.play import Stage, perform
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent
from tests.support.strict import StrictModel


def test_no_model_call_is_made_before_the_next_step_is_asked_for() -> None:
    """M1: however long the caller takes between two steps, and before the first."""
    spec = two_rounds()
    counts: list[int] = []

    async def scene(stage: Stage) -> tuple[list[int], str]:
        async with stage.run(await stage.spawn(spec)) as run:
            reader = run.steps()
            await settle()
            counts.append(asked(spec))
            numbers: list[int] = []
            async for step in reader:
                await settle()
                numbers.append(step.number)
                counts.append(asked(spec))
            return numbers, (await run.result()).text

    assert ([0, 1, 2], "done") == perform(scene)
    assert [0, 1, 2, 3] == counts


def test_the_steps_are_those_of_the_result() -> None:
    """M1: each finished step once, in order, with its results; the last one too."""

    async def scene(stage: Stage) -> tuple[list[StepResult], RunResult]:
        async with stage.run(await stage.spawn(two_rounds())) as run:
            steps = [step async for step in run.steps()]
            return steps, await run.result()

    steps, result = perform(scene)

    assert result.steps == tuple(steps)
    assert ([1, 1, 0], "done") == ([len(step.results) for step in steps], steps[-1].text)


def test_the_exchange_is_stored_when_its_step_is_given() -> None:
    """M1: `run.messages` between two steps has the results of the one before."""

    async def scene(stage: Stage) -> list[int]:
        async with stage.run(await stage.spawn(two_rounds())) as run:
            lengths: list[int] = []
            async for step in run.steps():
                lengths.append(len(run.messages))
                if step.results:
                    assert isinstance(run.messages[-1], ToolMessage)
            return lengths

    assert [3, 5, 6] == perform(scene)


def test_steer_between_two_steps_is_read_by_the_next() -> None:
    """M1: a message queued while the loop is held is in the next request."""
    spec = two_rounds()

    async def scene(stage: Stage) -> None:
        async with stage.run(await stage.spawn(spec)) as run:
            async for step in run.steps():
                if step.number == 0:
                    run.steer("In French.")

    perform(scene)
    assert isinstance(spec.model, StrictModel)

    assert [["go"], ["go", "In French."], ["go", "In French."]] == [a.texts for a in spec.model.asked]
    assert UserMessage("In French.") == spec.model.asked[1].messages[-1]


def test_stop_between_two_steps_makes_no_further_call() -> None:
    """M1, M2: the iteration ends, the run is the caller's end."""
    spec = two_rounds()

    async def scene(stage: Stage) -> tuple[list[int], RunResult]:
        async with stage.run(await stage.spawn(spec)) as run:
            numbers = []
            async for step in run.steps():
                numbers.append(step.number)
                run.stop("seen enough")
            return numbers, await run.result()

    numbers, result = perform(scene)

    assert ([0], 1) == (numbers, asked(spec))
    assert ("caller", "seen enough") == (result.stopped_by, result.stop_reason)


def test_stop_ends_the_run_although_nobody_asks_for_more() -> None:
    """M1, M2: a held loop does not keep a stopped run from its end."""

    async def scene(stage: Stage) -> bool:
        async with stage.run(await stage.spawn(two_rounds())) as run:
            await anext(run.steps())
            run.stop()
            await trio.testing.wait_all_tasks_blocked()
            return run.over

    assert perform(scene)


def test_cancel_between_two_steps() -> None:
    """M1, M2: the iteration ends, `result()` says that the run was cancelled."""
    spec = two_rounds()

    async def scene(stage: Stage) -> list[int]:
        numbers = []
        async with stage.run(await stage.spawn(spec)) as run:
            async for step in run.steps():
                numbers.append(step.number)
                run.cancel("enough")
            with pytest.raises(RunCancelledError):
                await run.result()
        return numbers

    assert ([0], 1) == (perform(scene), asked(spec))


def test_events_never_hold_the_loop() -> None:
    """M1: a reader of events who takes his time holds up nobody."""
    spec = two_rounds()

    async def scene(stage: Stage) -> int:
        async with stage.run(await stage.spawn(spec)) as run:
            async for event in run:
                if isinstance(event, StepFinished):
                    await settle()
                    return asked(spec)
        return 0

    assert 3 == perform(scene)


def test_a_second_reader_is_given_the_steps_so_far() -> None:
    """M1: readers do not take steps from each other, and the loop goes where the foremost asks."""
    spec = two_rounds()

    async def scene(stage: Stage) -> tuple[list[int], list[int]]:
        async with stage.run(await stage.spawn(spec)) as run:
            first = run.steps()
            seen = [(await anext(first)).number for _ in range(2)]
            second = run.steps()
            again = [(await anext(second)).number for _ in range(2)]
            await settle()
            assert asked(spec) == 2
            return seen, again + [step.number async for step in second]

    assert ([0, 1], [0, 1, 2]) == perform(scene)


def test_the_final_call_is_a_step_that_is_asked_for() -> None:
    """M1, F3: the caller may look before the final call too."""
    spec = agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization="")
    counts: list[int] = []

    async def scene(stage: Stage) -> list[bool]:
        async with stage.run(await stage.spawn(spec)) as run:
            finals = []
            async for step in run.steps():
                await settle()
                finals.append(step.final)
                counts.append(asked(spec))
            return finals

    assert ([False, True], [1, 2]) == (perform(scene), counts)


def test_the_time_in_which_the_caller_looks_is_not_the_runs() -> None:
    """B5: `wall_clock_seconds` does not run while all that the run does is wait for its caller."""

    async def scene(stage: Stage) -> str:
        ann = await stage.spawn(agent(calls_until(2), Bench().tool(seconds=3), wall_clock_seconds=10.0))
        async with stage.run(ann) as run:
            async for _ in run.steps():
                await trio.sleep(100)
            return (await run.result()).text

    assert "done" == perform(scene)


def test_override_next_hides_the_tools_of_the_next_step() -> None:
    """M1, H3: what the caller hides between two steps cannot run in the next."""
    bench = Bench()
    spec = agent([*[reply("", call("t", {}, id=i)) for i in "abc"], "done"], bench.tool())

    async def scene(stage: Stage) -> list[str]:
        async with stage.run(await stage.spawn(spec)) as run:
            statuses: list[str] = []
            async for step in run.steps():
                statuses += [result.status for result in step.results]
                if step.number == 0:
                    run.override_next(StepOverrides(active_tools=[]))
            return statuses

    assert (["ok", "error", "ok"], {"t": 2}) == (perform(scene), bench.runs)
