"""Models are closed when nobody uses them any more, and not before: by the agent that asked them, or whose runs did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors import AgentSpec, StepOverrides, ask_model, handoff, open_runtime, sub_agent, tool
from actors.agent import current_run
from actors.models.scripted import Scripted, call, reply

Clock = trio.testing.MockClock


class Holding(Scripted):
    """A model that holds something open from its first call on."""

    def __init__(self, script: Any, **options: Any) -> None:
        super().__init__(script, **options)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()


def asks_twice(name: str, arguments: dict[str, Any] | None = None) -> list[Any]:
    return [reply("", call(name, arguments or {})), reply("", call(name, arguments or {})), "done"]


async def test_the_model_of_a_sub_agent_outlives_its_tasks(autojump_clock: Clock) -> None:
    """Its connections are used again by the next task; it is closed when the agent that gives them has ended."""
    expert = Holding(lambda _request: "known")
    inner = Holding(
        lambda request: reply("", call("ask_expert", {"task": "x"})) if len(request.messages) < 2 else "told"
    )
    below = AgentSpec(model=inner, name="middle", tools=[sub_agent(AgentSpec(model=expert, name="expert"))])
    root = Holding(asks_twice("ask_middle", {"task": "x"}))
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(model=root, name="root", tools=[sub_agent(below)]))
        other = await runtime.spawn(AgentSpec(model=Scripted([]), name="other"))
        async with agent.run("go") as run:
            await run.result()
        between = [root.closed, inner.closed, expert.closed]
        agent.stop()
        await agent.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        after = [root.closed, inner.closed, expert.closed]

        assert not other.stopped.is_set()

    assert 2 == len(expert.requests)
    assert ([0, 0, 0], [1, 1, 1]) == (between, after)
    assert [1, 1, 1] == [root.closed, inner.closed, expert.closed]


def by_a_tool(model: Holding) -> dict[str, Any]:
    async def consult() -> str:
        """Ask."""
        return (await ask_model("Hm?", model=model)).text

    return {"tools": [tool(consult)], "model": Scripted(asks_twice("consult"))}


def by_a_hook(model: Holding) -> dict[str, Any]:
    return {"model": Scripted(["never"]), "prepare_step": lambda _state: StepOverrides(model=model)}


def by_a_hand_off(model: Holding) -> dict[str, Any]:
    target = AgentSpec(model=model, name="target")
    return {"model": Scripted([reply("", call("transfer_to_target", {"reason": "x"}))]), "tools": [handoff(target)]}


@pytest.mark.parametrize("use", [by_a_tool, by_a_hook, by_a_hand_off])
async def test_a_model_that_a_run_has_asked_is_closed_with_its_agent(
    use: Callable[[Holding], dict[str, Any]], autojump_clock: Clock
) -> None:
    """Whoever brought it in: once, and not while the agent may ask it again."""
    model = Holding(lambda _request: "fine")
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(**use(model)))
        async with agent.run("go") as run:
            await run.result()
        await trio.testing.wait_all_tasks_blocked()
        between = model.closed

    assert model.requests
    assert (0, 1) == (between, model.closed)


async def test_a_model_that_another_agent_uses_stays_open(autojump_clock: Clock) -> None:
    """The last one closes it."""
    model = Holding(lambda _request: "fine")
    async with open_runtime() as runtime:
        first, second = [await runtime.spawn(AgentSpec(**by_a_tool(model))) for _ in range(2)]
        for agent in (first, second):
            async with agent.run("go") as run:
                await run.result()
        counts: list[int] = []
        for agent in (first, second):
            agent.stop()
            await agent.stopped.wait()
            await trio.testing.wait_all_tasks_blocked()
            counts.append(model.closed)

    assert [0, 1] == counts


async def test_an_agent_that_a_tool_spawned_keeps_its_model(autojump_clock: Clock) -> None:
    """It may outlive the run, and even the agent, in which it was made: its model is not closed under it."""
    model = Holding(lambda _request: "fine")
    made: list[Any] = []

    async def hire() -> str:
        """Make an agent that stays."""
        context = current_run.get()
        assert context is not None
        assert context.spawn is not None
        made.append(await context.spawn(AgentSpec(model=model, name="hired")))
        return "hired"

    async with open_runtime() as runtime:
        agent = await runtime.spawn(
            AgentSpec(model=Scripted([reply("", call("hire", {})), "done"]), tools=[tool(hire)])
        )
        async with agent.run("go") as run:
            await run.result()
        agent.stop()
        await agent.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        before = model.closed
        async with made[0].run("still there?") as run:
            result = await run.result()

    assert (0, "fine", 1) == (before, result.text, model.closed)


async def test_all_are_closed_within_one_bound(autojump_clock: Clock) -> None:
    """Side by side: one that does not come to an end of it does not keep the others from it."""

    class Stuck(Holding):
        async def aclose(self) -> None:
            await trio.sleep_forever()

    stuck, free = Stuck(["x"]), Holding(["fine"])
    async with open_runtime(stop_grace_seconds=3) as runtime:
        agent = await runtime.spawn(AgentSpec(**{**by_a_hook(free), "model": stuck}))
        async with agent.run("go") as run:
            await run.result()

    assert (1, 3.0) == (free.closed, trio.current_time())
