"""Runs that belong to no block: `agent.start()`."""

from __future__ import annotations

import pytest
import trio

from protocol.errors import AgentBusy, AgentStopped, SpecError
from tests.support.play import Stage, perform
from tests.support.specs import agent


def test_it_goes_on_by_itself() -> None:
    """Nobody holds the run; it comes to its end, and its first event is the one behind `before`."""

    async def scene(stage: Stage) -> tuple[str, int, str]:
        served = await stage.spawn(agent(["hello"]))
        run = await served.start("go")
        first = await anext(run.events())
        return (await run.result()).text, run.before, getattr(first, "type", "")

    assert ("hello", 1, "run_started") == perform(scene)


def test_what_run_refuses_start_refuses() -> None:
    """An empty prompt, a busy agent and a stopped one are told at once, as themselves."""

    async def scene(stage: Stage) -> None:
        gate = trio.Event()

        async def wait(_request: object) -> str:
            await gate.wait()
            return "done"

        served = await stage.spawn(agent(wait))
        with pytest.raises(SpecError):
            await served.start(" ")
        run = await served.start("go")
        with pytest.raises(AgentBusy):
            await served.start("again")
        gate.set()
        await run.result()
        served.stop()
        await served.stopped.wait()
        with pytest.raises(AgentStopped):
            await served.start("once more")

    perform(scene)


def test_it_ends_with_the_agent() -> None:
    """A stopped agent's run ends at its next boundary, and its host waits for it."""

    async def scene(stage: Stage) -> tuple[str, int]:
        served = await stage.spawn(agent(["one", "two", "three"], continue_when=lambda _state: "on"))
        run = await served.start("go")
        served.stop("enough")
        await served.stopped.wait()
        result = await run.result()
        return result.text, len(result.steps)

    assert ("one", 1) == perform(scene)
