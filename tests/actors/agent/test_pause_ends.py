"""What ends a pause, and what follows it: stop, cancel, conditions, the final call, time (T7, M2, S2)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import FailRun, Run, StopState, has_tool_call
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError
from protocol.events import RunFinished, RunPaused, RunResumed
from tests.actors.agent._pauses import asker, asks, gives
from tests.support.deciders import results, statuses
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench
from tests.support.specs import APPROVE, Answers, agent


def test_stop_while_paused_ends_the_run_with_what_was_given() -> None:
    """M2: the pause is cut at once; given results are stored, the others are `not_run`; `result()` is the end."""
    ends: list[str] = []

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"b": "two"})
        run.stop("lunch")
        ends.append((await run.result()).stopped_by)

    played = play(agent(asks("a", "b"), asker()), act=act)

    assert (["caller"], "lunch") == (ends, played.result.stop_reason)
    assert {"a": ("not_run", "Not run: the run was stopped."), "b": ("ok", "two")} == results(played)
    assert ([], RunFinished) == (played.all(RunResumed), type(played.events[-1]))
    assert 1 == len(played.asked)


def test_stop_before_the_pause_pauses_nobody() -> None:
    """M2: a stop that came while the turn's other calls ran asks the caller for nothing."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"))

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.stop("lunch")

    played = play(agent([turn], asker(), bench.tool(seconds=3)), act=act)

    assert ("caller", []) == (played.result.stopped_by, played.all(RunPaused))
    assert {"a": "not_run", "b": "ok"} == statuses(played)


def test_cancel_while_paused_keeps_what_was_given() -> None:
    """M2, R3: given results are stored with the exchange; `result()` raises, it does not return the pause again."""
    ends: list[str] = []

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"b": "two"})
        run.cancel("enough")
        with pytest.raises(RunCancelledError) as caught:
            await run.result()
        ends.append(caught.value.partial.stopped_by)

    played = play(agent(asks("a", "b"), asker()), act=act)

    assert ["cancel"] == ends
    assert {"a": "not_run", "b": "ok"} == statuses(played)
    assert ["step_finished", "run_cancelled"] == played.types[-2:]


def test_an_agent_that_is_stopped_while_paused_ends_its_run() -> None:
    """M2: the pause does not hold up the closing of an agent."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(agent(asks("a"), asker()))

        async def act(run: Run) -> None:
            await event_of(run, RunPaused)
            one.stop("closing time")

        return await stage.play(one, act=act)

    played = perform(scene)

    assert {"a": "not_run"} == statuses(played)


def test_leaving_the_block_while_paused_cancels_the_run() -> None:
    """M2: a pause is no end."""

    async def scene(stage: Stage) -> Any:
        one = await stage.spawn(agent(asks("a"), asker()))
        async with stage.run(one) as run:
            paused = await run.result()
        return paused.stopped_by, run.over, len(one.messages)

    assert ("pending_tools", True, 3) == perform(scene)


def test_conditions_are_asked_after_the_last_given_result() -> None:
    """S2, T7: a condition on an external call fires once, when its result is there."""
    asked: list[int] = []

    def counts(state: StopState) -> None:
        asked.append(len(state.steps[-1].results))

    spec = agent(asks("a", "b"), asker(), stop_when=[counts, has_tool_call("ask")])
    played = play(spec, act=gives(a=1, b=2))

    assert ([2], "stop_condition", "tool 'ask' was called") == (
        asked,
        played.result.stopped_by,
        played.result.stop_reason,
    )
    assert 1 == len(played.asked)


def test_a_due_final_call_follows_the_last_given_result() -> None:
    """T7, F3: section 3 goes on at 10: conditions, then the final call."""
    spec = agent(asks("a", then="final"), asker(), max_tool_iterations=1, tool_iteration_limit_finalization="")
    played = play(spec, act=gives(a=1))

    assert ("model", "final") == (played.result.finalized, played.result.text)
    assert [True, False] == [asked.tools_on for asked in played.asked]


def test_a_pause_is_a_round_of_its_window() -> None:
    """The gate counts a turn of external calls like any other; pending ones are asked about before they pause."""
    gate = Answers(APPROVE)
    script = [*asks("a")[:1], *asks("b")]

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"a": 1})
        await event_of(run, RunPaused, nth=2)
        run.submit({"b": 2})

    played = play(agent(script, asker(), max_tool_iterations=1, continuation=gate), act=act)

    assert [(1, ("b",))] == [(r.total_iterations, tuple(c.id for c in r.tool_calls)) for r in gate.asked]
    assert 2 == played.result.counters.tool_iterations


def test_steering_comes_after_the_given_results() -> None:
    """M3: what is said during a pause is heard at the next boundary."""

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.steer("hurry")
        run.submit({"a": 1})

    played = play(agent(asks("a"), asker()), act=act)

    assert ["go", "hurry"] == played.asked[1].texts


def test_the_wall_clock_stands_still_during_a_pause() -> None:
    """B5: waiting for the caller is no work; the work before and after it counts."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"))
    script = [turn, reply("", call("t", {}, id="c")), "ok"]

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        await trio.sleep(1000)
        run.submit({"a": 1})

    played = play(agent(script, asker(), bench.tool(seconds=4), wall_clock_seconds=10), act=act)
    short = play(agent(script, asker(), bench.tool(seconds=4), wall_clock_seconds=7), act=act)

    assert ("model", 1008.0) == (played.result.stopped_by, played.seconds)
    assert ("wall_clock", 1007.0) == (short.result.stopped_by, short.seconds)


@pytest.mark.parametrize(("value", "asked"), [("yes", 1), (ValueError("no"), 2)], ids=["succeeded", "failed"])
def test_an_external_tool_may_end_the_run(value: Any, asked: int) -> None:
    """T6, T7: `ends_run` counts where the result is one; an error goes back to the model."""
    played = play(agent(asks("a"), asker(ends_run=True)), act=gives(a=value))

    assert asked == len(played.asked)
    assert ("tool" if asked == 1 else "model") == played.result.stopped_by


def test_external_calls_are_no_bodies() -> None:
    """B4: `max_tool_calls` counts bodies entered; what the caller does itself is none."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"), call("ask", {}, id="c"))
    played = play(agent([turn, "ok"], asker(), bench.tool(), max_tool_calls=1, max_steps=5), act=gives(a=1, c=2))

    assert ("ok", {"a": "ok", "b": "ok", "c": "ok"}) == (played.result.text, statuses(played))


def test_a_tool_that_fails_the_run_does_not_pause_it() -> None:
    """T6, T7: nobody is asked for results that no model will read."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"))
    played = play(agent([turn], asker(), bench.tool(value=FailRun(ValueError("boom")))))

    assert ([], {"a": "not_run", "b": "error"}) == (played.all(RunPaused), statuses(played))
    assert played.error is not None
