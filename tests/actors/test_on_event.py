"""An observer of a runtime is told of every event of every agent, and hurts nobody."""

from __future__ import annotations

from collections import defaultdict

import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, EventsLost, open_runtime, sub_agent
from actors.eventlog import EventStream, Observer
from actors.models import Scripted, call, reply
from protocol.errors import SpecError
from protocol.events import AgentSpawned, AgentStopped, AgentWarned, Event, RunCancelled, RunFinished
from protocol.model import ModelRequest
from protocol.turns import ToolMessage, Turn
from tests.support.disk import FakeDisk, journal_on


def calls_twice(request: ModelRequest) -> Turn:
    """Calls its tool, then says so."""
    if isinstance(request.messages[-1], ToolMessage):
        return reply("done")
    return reply("", call(request.tools[0].name, {"task": "go"} if request.tools[0].name.startswith("ask") else {}))


async def wait(seconds: float = 0) -> str:
    """Wait a second."""
    await trio.sleep(1 + seconds)
    return "waited"


def spec(name: str, *tools: object) -> AgentSpec:
    return AgentSpec(name=name, model=Scripted(calls_twice), tools=tools or (wait,), max_steps=5)


class Log:
    """What an observer was told, by the agent's name."""

    def __init__(self, *, seconds: float = 0) -> None:
        self.told: defaultdict[str, list[Event | EventsLost]] = defaultdict(list)
        self.seconds = seconds
        self.inside = 0

    def plain(self, agent: Agent, event: Event | EventsLost) -> None:
        self.told[agent.name].append(event)

    async def slow(self, agent: Agent, event: Event | EventsLost) -> None:
        self.inside += 1
        assert self.inside == 1
        self.told[agent.name].append(event)
        await trio.sleep(self.seconds)
        self.inside -= 1


async def play(agent: Agent) -> str:
    async with agent.run("go") as run:
        return (await run.result()).text


@pytest.mark.parametrize("journal", [False, True])
async def test_every_event_of_every_agent(journal: bool) -> None:
    """From `agent_spawned` to `agent_stopped`, in order, those of sub-agents in their root's place."""
    log = Log()
    async with open_runtime(on_event=log.plain, journal=journal_on(FakeDisk()) if journal else None) as runtime:
        ann = await runtime.spawn(spec("ann"))
        bob = await runtime.spawn(spec("bob", sub_agent(spec("cat"))))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play, ann)
            nursery.start_soon(play, bob)

    for agent in (ann, bob):
        first, entries = agent.stream.read(0)
        assert (1, [event for event, _ in entries]) == (first, log.told[agent.name])
        assert (AgentSpawned, AgentStopped) == (type(log.told[agent.name][0]), type(log.told[agent.name][-1]))
    paths = {getattr(event, "agent_path", ()) for event in log.told["bob"]}
    assert {(), ("cat",)} == paths
    assert ["AgentSpawned", "AgentStopped"] == [type(event).__name__ for event in log.told["cat"]]


@pytest.mark.parametrize("how", ["error", "cancel"])
async def test_the_end_is_told_whatever_it_is(how: str) -> None:
    """What agents say while all is being cancelled reaches it too."""
    log = Log()
    with pytest.raises(KeyError) if how == "error" else trio.move_on_after(0.5):
        async with open_runtime(on_event=log.plain) as runtime:
            ann = await runtime.spawn(spec("ann"))
            await ann.start("go")
            await trio.testing.wait_all_tasks_blocked()
            if how == "error":
                raise KeyError("mine")
            await trio.sleep_forever()

    assert [RunCancelled, AgentStopped] == [type(event) for event in log.told["ann"][-2:]]


async def test_a_slow_observer_holds_nobody_up() -> None:
    """Agents are as fast as without it; it is called once at a time, and told how many events it has lost."""
    log = Log(seconds=0.5)
    async with open_runtime(on_event=log.slow, event_log_bytes=1000, stop_grace_seconds=30) as runtime:
        ann = await runtime.spawn(spec("ann"))
        texts = [await play(ann) for _ in range(4)]
        at = trio.current_time()
    told = log.told["ann"]
    lost = sum(event.count for event in told if isinstance(event, EventsLost))

    assert (["done"] * 4, 4.0) == (texts, at)
    assert lost > 0
    assert ann.stream.end == lost + sum(not isinstance(event, EventsLost) for event in told)
    assert AgentStopped is type(told[-1])


async def test_one_that_never_comes_back_is_left() -> None:
    """Leaving the runtime waits for it no longer than the grace time."""
    async with open_runtime(on_event=Log(seconds=1e6).slow, stop_grace_seconds=3) as runtime:
        text = await play(await runtime.spawn(spec("ann")))
        at = trio.current_time()

    assert ("done", 1.0, 4.0) == (text, at, trio.current_time())


async def test_one_that_fails_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    """Each failure is logged with the event's type; the run, the other events and other agents are as ever."""
    told: list[str] = []

    def fails(agent: Agent, event: Event | EventsLost) -> None:
        told.append(f"{agent.name} {getattr(event, 'type', '')}")
        if isinstance(event, RunFinished):
            raise KeyError("mine")

    async with open_runtime(on_event=fails) as runtime:
        texts = [await play(await runtime.spawn(spec(name))) for name in ("ann", "bob")]

    assert ["done", "done"] == texts
    assert [f"on_event failed event_type=run_finished source='<Agent {name}" for name in ("ann", "bob")] == [
        " ".join(record.message.split(" ")[:5]) for record in caplog.records
    ]
    assert {"ann agent_stopped", "bob agent_stopped"} <= set(told)


async def test_no_stream_starves_another() -> None:
    """Where one agent has said much, the observer comes to the other all the same; each in its order."""
    told: list[tuple[str, str]] = []
    much, little = EventStream("much"), EventStream("little")
    observer: Observer[str] = Observer(lambda name, event: told.append((name, getattr(event, "text", ""))))
    observer.watch("much", much)
    observer.watch("little", little)
    for number in range(1000):
        much.append(AgentWarned(agent="m", code="x", text=f"{number}"))
    little.append(AgentWarned(agent="l", code="x", text="0"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(observer.run)
        await trio.testing.wait_all_tasks_blocked()
        before = len(told)
        much.append(AgentWarned(agent="m", code="x", text="1000"))
        await trio.testing.wait_all_tasks_blocked()
        for stream in (much, little):
            stream.close()
        observer.finish(grace_seconds=1)

    assert told.index(("little", "0")) < 200
    assert [str(number) for number in range(1001)] == [text for name, text in told if name == "much"]
    assert (1001, 1002) == (before, len(told))


async def test_what_cannot_be_called_is_refused() -> None:
    """Where it is given, before anything runs."""
    with pytest.raises(SpecError, match=r"on_event=\) must be a function"):
        async with open_runtime(on_event="print"):  # type: ignore[arg-type]
            raise AssertionError
