"""Ending a run from outside: stop, cancel, leaving its block; and following it (M2, R1, R4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from actors import AgentSpec, Run
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError
from protocol.events import ContentDelta, RunCancelled, RunEvent, StepFinished, ToolFinished, ToolStarted
from protocol.turns import UserMessage
from tests.support.play import Stage, event_of, perform, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent


def slow(bench: Bench | None = None, **options: object) -> AgentSpec:
    """One tool call of 60 seconds, then an answer; the same for each run."""
    script = [reply("", call("t", {}, id="a")), "done", reply("", call("t", {}, id="b")), "done again"]
    return agent(script, (bench or Bench()).tool(seconds=60), **options)


def test_stop_finishes_the_step_in_hand() -> None:
    """M2: the tool that runs is finished and its exchange stored; no further model call; stopped by the caller."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        await trio.sleep(10)
        run.stop("lunch")

    played = play(slow(), act=act)

    assert ("caller", "lunch", "tool_calls", False) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.finish_reason,
        played.result.answered,
    )
    assert "ok" == played.only(ToolFinished).status
    assert (1, 60.0) == (len(played.asked), played.seconds)
    assert played.error is None


def test_stop_during_the_last_answer_leaves_it_an_answer() -> None:
    """M2: the step in hand is finished: if it is the answer, the run is answered, by the model."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.stop("lunch")

    result = play(agent(Trickle([["yes", 3.0]])), act=act).result

    assert ("yes", True, "model", None) == (result.text, result.answered, result.stopped_by, result.stop_reason)


def test_stop_before_the_first_model_call() -> None:
    """M2: stopped at once, no model is asked; the prompt stays stored."""

    async def scene(stage: Stage) -> None:
        one = await stage.spawn(agent(["never"]))
        async with stage.run(one) as run:
            run.stop("changed my mind")
            result = await run.result()

        assert ("caller", 0, "changed my mind") == (
            result.stopped_by,
            result.counters.llm_calls,
            result.stop_reason,
        )
        assert (UserMessage("go"),) == tuple(one.messages)

    perform(scene)


def test_a_second_stop_and_a_stop_after_the_end_change_nothing() -> None:
    """M2: the first reason stands; after the end a stop and a cancel have no effect."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.stop("first")
        run.stop("second")
        result = await run.result()
        run.stop("third")
        run.cancel("fourth")

        assert result is await run.result()

    assert "first" == play(slow(), act=act).result.stop_reason


def test_cancel_cuts_what_is_running() -> None:
    """M2, R4: `run_cancelled` at once; the tool that was entered is `interrupted`."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        await trio.sleep(10)
        run.cancel("no time")

    played = play(slow(), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert ("no time", 10.0) == (played.only(RunCancelled).reason, played.seconds)
    assert ("interrupted", True) == (played.only(ToolFinished).status, played.only(ToolFinished).started)
    assert ("cancel", "cancelled") == (played.result.stopped_by, played.result.finish_reason)


def test_cancel_wins_over_a_stop_that_waits() -> None:
    """M2: a stop waits for the step in hand, a cancel after it does not."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.stop("lunch")
        run.cancel("now")

    assert isinstance(play(slow(), act=act).error, RunCancelledError)


def leave_by_return(_run: Run) -> None:
    return


def leave_by_raising(_run: Run) -> None:
    raise ValueError("the caller's own")


@pytest.mark.parametrize("how", [leave_by_return, leave_by_raising])
@pytest.mark.parametrize("inside", [ToolStarted, StepFinished])
def test_leaving_the_block_cancels_and_waits_for_the_end(how: Callable[[Run], None], inside: type[RunEvent]) -> None:
    """M2: leaving `async with agent.run()` before the end cancels the run and waits for its terminal event."""

    async def scene(stage: Stage) -> Run:
        one = await stage.spawn(slow())
        left: list[Run] = []
        try:
            async with stage.run(one) as run:
                left.append(run)
                await event_of(run, inside)
                how(run)
        except ValueError as error:
            assert "the caller's own" == str(error)
        assert left[0].over
        with pytest.raises(RunCancelledError, match="block was left"):
            await left[0].result()
        return left[0]

    perform(scene)


def test_a_caller_that_is_cancelled_takes_its_run_along() -> None:
    """M2: a timeout around the block cancels the run, and the block still waits for its terminal event."""

    async def scene(stage: Stage) -> None:
        one = await stage.spawn(slow())
        with trio.move_on_after(5) as scope:
            async with stage.run(one) as run:
                await run.result()

        assert scope.cancelled_caught
        assert run.over
        assert "idle" == one.statistics().state

    perform(scene)


def test_leaving_the_iteration_does_not_end_the_run() -> None:
    """M2: leaving the `async for` changes nothing."""

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ToolStarted):
                break

    assert "done" == play(slow(), act=act).result.text


def test_every_reader_sees_every_event() -> None:
    """R1: a run is a sequence of events: readers that come late, or twice, see the same from its first one."""

    async def scene(stage: Stage) -> None:
        one = await stage.spawn(slow())
        async with stage.run(one) as run:
            early = [event async for event in run]
            late = [event async for event in run.events()]

        assert early == late
        assert ("run_started", "run_finished") == (early[0].type, early[-1].type)  # type: ignore[union-attr]

    perform(scene)
