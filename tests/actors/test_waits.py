"""Agents, their tools and actors that wait for each other in a circle are refused; whoever merely waits for his turn is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, Runtime, Tool, open_runtime, start_agent, sub_agent
from actors.agent import Starting
from actors.kit import Ask, AskCycle, Mailbox
from actors.models import Scripted, call, reply
from protocol.model import ModelRequest
from protocol.turns import ToolMessage, Turn


@attrs.frozen(eq=False)
class Do(Ask[str]):
    """Do this, and tell what came of it."""

    work: Callable[[], Awaitable[str]]


class Desk:
    """Does what it is asked for in its own loop; what goes wrong there goes to the asker."""

    async def run(self, mailbox: Mailbox[Do]) -> None:
        async for message in mailbox:
            try:
                message.reply.set(await message.work())
            except AskCycle as error:
                message.reply.fail(error)


async def says(text: str) -> str:
    await trio.lowlevel.checkpoint()
    return text


async def answer(agent: Agent) -> str:
    async with agent.run("go", if_busy="queue") as run:
        return (await run.result()).text


async def spawn(runtime: Runtime, name: str, work: Callable[[], Awaitable[str]]) -> Agent:
    """An agent that calls its one tool, and answers with what the tool said."""

    async def act() -> str:
        """Act."""
        return await work()

    return await spawn_with(runtime, name, act)


async def spawn_with(runtime: Runtime, name: str, *tools: Tool | Callable[..., Awaitable[str]]) -> Agent:
    """An agent that calls each of its tools once, in one turn, and answers with what they said."""

    def model(request: ModelRequest) -> Turn:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            return reply(f"{name}: {' | '.join(result.text for result in last.results)}")
        names = [tool.name for tool in request.tools]
        return reply("", *[call(one, {"task": "go"} if one.startswith("ask_") else {}) for one in names])

    return await runtime.spawn(AgentSpec(name=name, model=Scripted(model), tools=tools, max_steps=5))


async def test_a_tool_that_asks_an_actor_that_runs_its_agent_is_refused() -> None:
    """Agent, actor, agent: the actor's wait for the turn would close the circle, and its error goes back to the tool."""
    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        agent = await spawn(runtime, "ann", lambda: desk.ask(Do(lambda: answer(agent))))
        text = await answer(agent)
        again = await desk.ask(Do(lambda: says("free")))

    assert "ann: AskCycle: asking would never end: desk -> agent ann -> desk" == text
    assert "free" == again


async def test_three_parties_are_refused() -> None:
    """An agent's tool asks an actor, which runs an agent, whose tool gives the first one a task."""
    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        ann = await spawn(runtime, "ann", lambda: desk.ask(Do(lambda: answer(bob))))
        bob = await spawn_with(runtime, "bob", sub_agent(ann))
        text = await answer(ann)

    assert "ann: bob: asking would never end: agent bob -> agent ann -> desk -> agent bob" == text


async def test_three_parties_that_met_by_chance_are_refused() -> None:
    """The same circle where nobody works for anybody: each has begun its own, and only then waits for the next."""
    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        met = Meeting(3)
        ann = await spawn(runtime, "ann", met.then(lambda: desk.ask(Do(lambda: says("?")))))
        bob = await spawn(runtime, "bob", met.then(lambda: answer(ann)))
        texts = await all_of(
            lambda: answer(ann), lambda: answer(bob), lambda: desk.ask(Do(met.then(lambda: answer(bob))))
        )

    assert [text for text in texts if "asking would never end" in text]
    assert 3 == len(texts)


async def test_two_agents_that_are_each_others_tool() -> None:
    """Two runs of their own whose tools wait for each other's turn: one tool is refused, and both runs end."""
    async with open_runtime() as runtime:
        met = Meeting(2)
        ann: Agent = await spawn(runtime, "ann", met.then(lambda: answer(bob)))
        bob: Agent = await spawn(runtime, "bob", met.then(lambda: answer(ann)))
        first, second = await all_of(lambda: answer(ann), lambda: answer(bob))

    refused = first if "never end" in first else second
    assert refused in {
        "ann: AskCycle: asking would never end: agent ann -> agent bob -> agent ann",
        "bob: AskCycle: asking would never end: agent bob -> agent ann -> agent bob",
    }
    assert ({"ann: bob: ", "bob: ann: "} & {first[:10], second[:10]}) != set()


async def test_an_agent_as_a_tool_says_so_in_its_result() -> None:
    """Where the agent is a tool, the refusal is an error result in plain words, and the other one answers."""
    async with open_runtime() as runtime:
        spec = AgentSpec(name="ann", model=Scripted(["fine"]))
        ann = await runtime.spawn(spec)
        bob = await spawn_with(runtime, "bob", sub_agent(ann))
        text = await answer(bob)

    assert "bob: fine" == text


@pytest.mark.parametrize("how", ["result", "events", "steps", "wait_ended", "start"])
async def test_every_way_of_waiting_for_a_run_counts(how: str) -> None:
    """An actor that waits for a run, however it does, cannot be asked by that run's tools."""

    async def follow(agent: Agent) -> str:
        if how == "start":
            run = await agent.start("go")
            return (await run.result()).text
        async with agent.run("go") as run:
            if how == "events":
                async for _ in run:
                    pass
            elif how == "steps":
                async for _ in run.steps():
                    pass
            elif how == "wait_ended":
                await run.wait_ended()
            return (await run.result()).text

    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        ann: Agent = await spawn(runtime, "ann", lambda: desk.ask(Do(lambda: says("?"))))
        (text,) = await all_of(lambda: desk.ask(Do(lambda: follow(ann))))

    # Whoever comes second is refused: as a rule the tool, or a reader of events that had one in hand meanwhile.
    assert text in {
        "ann: AskCycle: asking would never end: agent ann -> desk -> agent ann",
        *(["asking would never end: desk -> agent ann -> desk"] if how == "events" else []),
    }


async def test_a_held_start_is_refused_too() -> None:
    """`agent.start(if_busy="queue")` waits for the turn: an actor that is waited for by the run in hand is refused."""

    async def begin(agent: Agent) -> str:
        run = await agent.start("again", if_busy="queue")
        return (await run.result()).text

    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        ann: Agent = await spawn(runtime, "ann", lambda: desk.ask(Do(lambda: begin(ann))))
        text = await answer(ann)
        queued = ann.statistics().queued_runs

    assert "ann: AskCycle: asking would never end: desk -> agent ann -> desk" == text
    assert 0 == queued


async def test_a_run_that_nobody_waits_for_may_be_begun() -> None:
    """`begin` only promises a run: the tool goes on, and so does the run when the agent is free."""
    async with open_runtime() as runtime:

        async def later() -> str:
            promises.append(ann.begin("again", if_busy="queue"))
            return await says("later")

        promises: list[Starting] = []
        ann: Agent = await spawn(runtime, "ann", later)
        text = await answer(ann)
        run = await promises[0].wait()
        again = (await run.result()).text

    assert ("ann: later", "ann: later") == (text, again)


async def test_ones_own_result_is_not_waited_for() -> None:
    """A tool that waits for the end of its own run would wait for itself."""
    async with open_runtime() as runtime:

        async def mine() -> str:
            return (await runs[0].result()).text

        runs = []
        ann = await spawn(runtime, "ann", mine)
        async with ann.run("go") as run:
            runs.append(run)
            text = (await run.result()).text

    assert "ann: AskCycle: asking would never end: agent ann -> agent ann" == text


async def test_a_tool_may_look_at_its_own_run() -> None:
    """Reading the events of one's own run is no wait for its end."""
    async with open_runtime() as runtime:

        async def first() -> str:
            async for event in runs[0].events():
                return f"saw {getattr(event, 'type', '')}"
            return ""

        async def late() -> str:
            seen: list[str] = []
            async for event in runs[0].events():
                seen.append(getattr(event, "type", ""))
                if seen[-1] == "tool_finished":
                    break
            return f"{len(seen) > 3}"

        runs = []
        ann = await spawn_with(runtime, "ann", first, late)
        async with ann.run("go") as run:
            runs.append(run)
            text = (await run.result()).text

    assert "ann: saw run_started | True" == text


@pytest.mark.parametrize("waited_for", [False, True])
async def test_a_task_in_the_background(waited_for: bool) -> None:
    """What a tool has started, and nobody waits for, is no wait of its run; once it is waited for, it is one."""
    async with open_runtime() as runtime:
        met = Meeting(2)

        async def hand_over() -> str:
            task = start_agent(bob, "go")
            await trio.testing.wait_all_tasks_blocked()
            await met.meet()
            await trio.sleep(1)
            return await task.answer() if waited_for else "handed over"

        ann: Agent = await spawn(runtime, "ann", hand_over)
        bob: Agent = await spawn(runtime, "bob", met.then(lambda: answer(ann)))
        first, second = await all_of(lambda: answer(ann), lambda: answer(bob))

    if waited_for:
        assert "ann: AskCycle: asking would never end: agent ann -> bob-1 -> agent bob -> agent ann" == first
    else:
        assert "ann: handed over" == first
    assert second.startswith("bob: ann: ")


async def test_who_merely_waits_for_a_turn_is_not_refused() -> None:
    """Two agents that give a third one tasks, and one that gives two: each has its turn."""
    async with open_runtime() as runtime:
        low = await spawn(runtime, "low", lambda: says("x"))
        ann = await spawn_with(runtime, "ann", sub_agent(low, name="ask_1"), sub_agent(low, name="ask_2"))
        bob = await spawn_with(runtime, "bob", sub_agent(low))
        texts = await all_of(lambda: answer(ann), lambda: answer(bob))

    assert 2 == len(texts)
    assert not [text for text in texts if "never" in text]


async def test_an_actor_may_run_the_agent_whose_tools_ask_others() -> None:
    """A line is no circle: actor, agent, actor; and after the run the actor may be asked again."""
    async with open_runtime() as runtime:
        desk = await runtime.spawn_actor(Desk(), name="desk")
        store = await runtime.spawn_actor(Desk(), name="store")
        ann: Agent = await spawn(runtime, "ann", lambda: store.ask(Do(lambda: says("x"))))
        first = await desk.ask(Do(lambda: answer(ann)))
        second = await store.ask(Do(lambda: desk.ask(Do(lambda: says("y")))))

    assert ("ann: x", "y") == (first, second)


class Meeting:
    """Lets nobody go on before all have come."""

    def __init__(self, of: int) -> None:
        self.missing = of
        self.met = trio.Event()

    async def meet(self) -> None:
        self.missing -= 1
        if self.missing <= 0:
            self.met.set()
        await self.met.wait()

    def then(self, work: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
        async def meet_and_work() -> str:
            await self.meet()
            return await work()

        return meet_and_work


async def all_of(*works: Callable[[], Awaitable[str]]) -> list[str]:
    """What they return or are refused with, in their order."""
    found: dict[int, str] = {}

    async def one(number: int, work: Callable[[], Awaitable[str]]) -> None:
        try:
            found[number] = await work()
        except AskCycle as error:
            found[number] = str(error)

    async with trio.open_nursery() as nursery:
        for number, work in enumerate(works):
            nursery.start_soon(one, number, work)
    return [found[number] for number in range(len(works))]
