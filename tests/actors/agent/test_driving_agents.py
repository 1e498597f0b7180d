"""Agents and their runs: one at a time, in a queue, side by side, and none after the agent has been stopped."""

from __future__ import annotations

import pytest
import trio

from actors import Agent, AgentSpec, Run, open_runtime, remote
from actors.models.scripted import call, reply
from protocol.errors import AgentBusy, AgentStopped
from protocol.events import AgentSpawned, ContinuationRequired, Event, RunEvent, RunFinished, ToolStarted
from protocol.events import AgentStopped as AgentStoppedEvent
from protocol.turns import AssistantMessage, TextPart, UserMessage
from tests.support.play import Played, Stage, event_of, numbered_events, perform
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import agent


def slow(bench: Bench | None = None, **options: object) -> AgentSpec:
    """One tool call of 60 seconds, then an answer; the same for each run."""
    script = [reply("", call("t", {}, id="a")), "done", reply("", call("t", {}, id="b")), "done again"]
    return agent(script, (bench or Bench()).tool(seconds=60), **options)


def test_a_busy_agent_refuses_by_default() -> None:
    """Section 1: one run per agent at a time; `refuse` says so at once and harms nothing."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(slow(name="ann"))

        async def act(run: Run) -> None:
            await event_of(run, ToolStarted)
            with pytest.raises(AgentBusy, match="agent ann has a run going on"):
                async with one.run("me too"):
                    raise AssertionError

        return await stage.play(one, act=act)

    played = perform(scene)

    assert ("done", ["go"]) == (
        played.result.text,
        [m.text for m in played.messages if isinstance(m, UserMessage)],
    )


def test_queued_runs_follow_one_after_the_other() -> None:
    """Section 1: with `queue` the second run starts when the first has ended; histories do not mix."""

    async def scene(stage: Stage) -> tuple[list[Played], Agent]:
        one = await stage.spawn(slow())
        played: list[Played] = []

        async def play_it(prompt: str) -> None:
            played.append(await stage.play(one, prompt, if_busy="queue"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play_it, "first")
            await trio.sleep(1)
            nursery.start_soon(play_it, "second")
            await trio.sleep(1)

            assert 1 == one.statistics().queued_runs
        return played, one

    (first, second), one = perform(scene)

    assert ["done", "done again"] == [first.result.text, second.result.text]
    assert [60.0, 119.0] == [first.seconds, second.seconds]
    assert ["first", "second"] == [m.text for m in one.messages if isinstance(m, UserMessage)]


def test_a_caller_may_leave_the_queue() -> None:
    """Section 1: who gives up waiting takes no turn; the next one gets it."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(slow())
        async with stage.run(one, "first") as run:
            with trio.move_on_after(5) as scope:
                async with one.run("impatient", if_busy="queue"):
                    raise AssertionError

            assert scope.cancelled_caught
            await run.result()
        return await stage.play(one, "third", if_busy="queue")

    played = perform(scene)

    assert "done again" == played.result.text
    assert "impatient" not in [m.text for m in played.messages if isinstance(m, UserMessage)]


def test_two_agents_share_nothing() -> None:
    """Two agents of one spec run at once: conversations, windows, requests and events stay apart."""

    async def scene(stage: Stage) -> list[Played]:
        bench = Bench()
        tool = bench.tool(seconds=3)
        specs = [
            agent(calls_while_on(answer), tool, max_tool_iterations=rounds, continuation=remote(timeout_seconds=60))
            for answer, rounds in (("one", 1), ("two", 2))
        ]
        agents = [await stage.spawn(spec) for spec in specs]
        played: list[Played] = []

        async def play_it(one: Agent, other: Agent) -> None:
            async def act(run: Run) -> None:
                asked = await event_of(run, ContinuationRequired)

                assert asked.request not in {request.request for request, _ in other.requests.pending()}

            played.append(await stage.play(one, act=act))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play_it, agents[0], agents[1])
            nursery.start_soon(play_it, agents[1], agents[0])
        for one in agents:
            runs = {event.run for _, event in await numbered_events(one) if isinstance(event, RunEvent)}

            assert 1 == len(runs)
        return played

    first, second = perform(scene)

    assert [("one", 63.0), ("two", 66.0)] == [(p.result.text, p.seconds) for p in (first, second)]
    assert [1, 2] == [p.result.counters.tool_iterations for p in (first, second)]
    assert AssistantMessage((TextPart("one"),)) not in second.messages


def test_who_waits_for_an_agent_that_is_stopped_is_told() -> None:
    """Each caller in the queue of an agent that is stopped gets `AgentStopped`, one after the other."""

    async def scene(stage: Stage) -> int:
        one = await stage.spawn(slow())
        told: list[str] = []

        async def wait() -> None:
            with pytest.raises(AgentStopped) as caught:
                async with one.run("me too", if_busy="queue"):
                    raise AssertionError
            told.append(str(caught.value))

        async with trio.open_nursery() as nursery, stage.run(one) as run:
            await event_of(run, ToolStarted)
            for _ in range(3):
                nursery.start_soon(wait)
            await trio.sleep(1)
            one.stop("closing time")
            await run.result()
        return len(told)

    assert 3 == perform(scene)


def test_an_agents_events_begin_with_its_spawn_and_end_with_its_stop() -> None:
    """The stream of an agent says when it takes runs and when no more, and why."""
    kept: list[Agent] = []

    async def scene(_stage: Stage) -> list[Event]:
        async with open_runtime() as runtime:
            stage = Stage(runtime)
            kept.append(await stage.spawn(agent(["yes"], name="ann")))
            await stage.play(kept[0])

        assert kept[0].stopped.is_set()
        assert "stopped" == kept[0].statistics().state
        return [event for _, event in await numbered_events(kept[0])]

    first, *_, last = perform(scene)

    assert AgentSpawned(agent=kept[0].id, name="ann") == first
    assert AgentStoppedEvent(agent=kept[0].id, reason="the runtime is being closed") == last


def test_an_agent_that_was_stopped_takes_no_run() -> None:
    """The run in hand ends at its next boundary; the next one is refused with the reason."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(slow(name="ann"))

        async def act(run: Run) -> None:
            await event_of(run, ToolStarted)
            one.stop("closing time")

        played = await stage.play(one, act=act)
        with pytest.raises(AgentStopped, match="agent ann has been stopped: closing time"):
            async with one.run("go"):
                raise AssertionError
        return played

    played = perform(scene)

    assert ("caller", "closing time", RunFinished) == (
        played.result.stopped_by,
        played.result.stop_reason,
        type(played.events[-1]),
    )
