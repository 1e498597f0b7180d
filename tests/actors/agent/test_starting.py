"""Runs that nobody waits for: begun when the agent is free, whatever becomes of who wanted them."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors import AgentSpec, open_runtime
from actors.models.scripted import Scripted, call, reply
from protocol.errors import AgentBusy, AgentStopped, SpecError
from protocol.events import RunStarted
from tests.support.scripts import Bench

Clock = trio.testing.MockClock


def sleeper(turns: int = 1, seconds: float = 60) -> AgentSpec:
    script = [turn for n in range(turns) for turn in (reply("", call("t", {}, id=f"c{n}")), f"answer {n}")]
    return AgentSpec(model=Scripted(script), tools=[Bench().tool(seconds=seconds)])


async def test_a_run_of_no_block(autojump_clock: Clock) -> None:
    """It goes on to its end; another one is refused meanwhile, or waits."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(sleeper(2))
        first = await agent.start("go")
        with pytest.raises(AgentBusy):
            await agent.start("go")
        second = await agent.start("go", if_busy="queue")
        texts = [(await run.result()).text for run in (first, second)]

        assert ["answer 0", "answer 1"] == texts
        assert 120 == pytest.approx(trio.current_time(), abs=1)


async def test_who_does_not_wait(autojump_clock: Clock) -> None:
    """`begin` promises the run, and needs nobody to keep it."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(sleeper(2))
        first, second = agent.begin("go"), agent.begin("go", if_busy="queue")
        before = first.run
        await trio.sleep(200)
        runs = [await promise.wait() for promise in (first, second)]

        assert before is None
        assert ["answer 0", "answer 1"] == [(await run.result()).text for run in runs]


async def test_they_run_in_order(autojump_clock: Clock) -> None:
    """As they were promised, however many at once, and whoever among them is refused."""
    async with open_runtime() as runtime:
        for _ in range(10):  # the scheduler has an order of its own
            agent = await runtime.spawn(AgentSpec(model=Scripted(["ok"] * 9)))
            promises = [agent.begin(f"{n}", if_busy="refuse" if n in {0, 3} else "queue") for n in range(6)]
            with trio.move_on_after(0):
                await agent.start("given up", if_busy="queue")
            await trio.sleep(1)
            begun = [event.prompt for event, _ in agent.stream.read(0)[1] if isinstance(event, RunStarted)]

            assert ["0", "1", "2", "4", "5"] == begun
            assert isinstance(promises[3].refusal, AgentBusy)


async def test_who_stops_waiting(autojump_clock: Clock) -> None:
    """A `start` that is cancelled while it waits for its turn starts nothing."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(sleeper(2))
        await agent.start("go")
        with trio.move_on_after(1) as scope:
            await agent.start("go", if_busy="queue")
        await trio.sleep(200)

        assert scope.cancelled_caught
        assert 1 == len(agent.stream.runs)
        assert 0 == agent.statistics().queued_runs


@pytest.mark.parametrize("now", [False, True])
async def test_an_agent_that_stops(now: bool, autojump_clock: Clock) -> None:
    """What waits for its turn is refused, and so is what comes after."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(sleeper(2))
        run = await agent.start("go")
        promise = agent.begin("go", if_busy="queue")
        agent.stop("enough")
        if now:
            run.cancel()
        with pytest.raises(AgentStopped, match="enough"):
            await promise.wait()
        with pytest.raises(AgentStopped, match="enough"):
            agent.begin("go")


@pytest.mark.parametrize("prompt", ["", "  "])
async def test_a_prompt_that_says_nothing(prompt: str, autojump_clock: Clock) -> None:
    """It is refused at once."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(sleeper())
        with pytest.raises(SpecError, match="prompt"):
            await agent.start(prompt)


async def test_an_agent_that_nobody_waited_for(autojump_clock: Clock) -> None:
    """`spawn_soon` gives it at once; it takes runs when it is hosted, and stays."""
    async with open_runtime() as runtime:
        agent = runtime.spawn_soon(sleeper())
        with pytest.raises(AgentStopped):
            agent.begin("go")
        await agent.hosted.wait()
        result = await (await agent.start("go")).result()

        assert "answer 0" == result.text
        assert (agent,) == runtime.agents
