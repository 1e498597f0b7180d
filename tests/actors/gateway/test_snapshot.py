"""The snapshot: what an agent is at the moment of an attach."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import AgentSpec
from actors.agent import Agent
from actors.gateway._snapshot import MAX_HISTORY_BYTES
from actors.models.scripted import Scripted
from protocol.turns import UserMessage
from protocol.wire import WireLimits

from .cast import asker, parent, patient, pauser, payer, sleeper, talker
from .wired import Client, open_hall

Clock = trio.testing.MockClock


async def snapshot(client: Client, agent: Agent) -> Any:
    return (await client.ask("agent.attach", agent=agent.id))["snapshot"]


class TestState:
    async def test_what_an_agent_does(self, autojump_clock: Clock) -> None:
        """Nothing, working, waiting for a decision or for results; `agent.list` says the same."""
        async with open_hall() as hall:
            specs = {"idle": talker("one"), "running": sleeper(500), "waiting": asker(), "paused": pauser()}
            agents = {name: await hall.spawn(spec) for name, spec in specs.items()}
            nested = {
                "waiting": await hall.spawn(parent(payer(1))),
                "running": await hall.spawn(parent(sleeper(500))),
                "paused": await hall.spawn(patient(await hall.spawn(pauser()))),
            }
            client = await hall.connect()
            for agent in [*agents.values(), *nested.values()]:
                await agent.start("go")
            await trio.sleep(1)
            states = {name: (await snapshot(client, agent))["state"] for name, agent in agents.items()}
            below = {name: await snapshot(client, agent) for name, agent in nested.items()}
            listed = {one["agent"]: one for one in (await client.ask("agent.list"))["agents"]}
            waiting = (await client.ask("request.list"))["requests"]

        assert {name: name for name in states} == states
        assert {name: name for name in below} == {name: one["state"] for name, one in below.items()}
        assert {name: [name] for name in below} == {
            name: [child["state"] for child in one["children"]] for name, one in below.items()
        }
        assert states == {name: listed[agent.id]["state"] for name, agent in agents.items()}
        assert [0, 0, 1, 1] == [listed[agent.id]["open_requests"] for agent in agents.values()]
        assert [1, 0, 1] == [listed[agent.id]["open_requests"] for agent in nested.values()]
        assert 4 == len(waiting) == len({one["request"] for one in waiting})

    async def test_a_run(self, autojump_clock: Clock) -> None:
        """Which one goes on, its step, counters and usage, and the conversation so far."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            before = await snapshot(client, agent)
            run = await agent.start("go")
            await trio.sleep(1)
            during = await snapshot(client, agent)

        assert ("idle", None, 0, None, None, []) == tuple(
            before[key] for key in ("state", "run", "step_number", "counters", "usage", "history")
        )
        assert (run.id, 1, 1) == (during["run"], during["step_number"], during["counters"]["tool_iterations"])
        assert "uncached_input_tokens" in during["usage"]
        assert "go" == during["history"][0]["text"]
        assert 3 == len(during["history"])

    async def test_a_run_that_is_over(self, autojump_clock: Clock) -> None:
        """It is no state of the agent any more, however long its tasks take to join."""

        async def slow(_result: Any) -> None:
            await trio.sleep(30)

        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted(["one"]), on_run_end=slow))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await agent.start("go")
            await client.read_until(client.saw(agent.id, "run_finished"))
            after = await snapshot(client, agent)

        assert ("idle", None) == (after["state"], after["run"])


class TestHistory:
    @pytest.mark.parametrize(("count", "size", "kept"), [(3, 10, 3), (150, 10, 100), (150, 3000, 21), (2, 70_000, 0)])
    async def test_the_last_messages(self, count: int, size: int, kept: int, autojump_clock: Clock) -> None:
        """At most 100, and 64 KiB; the newest are those that stay."""
        async with open_hall() as hall:
            messages = [UserMessage(f"{number:04}" + "x" * size) for number in range(count)]
            agent = await hall.runtime.spawn(AgentSpec(model=Scripted([])), messages=messages)
            client = await hall.connect()
            history = (await snapshot(client, agent))["history"]

        assert kept == len(history)
        assert [f"{number:04}" for number in range(count - kept, count)] == [one["text"][:4] for one in history]
        assert len(str(history)) <= MAX_HISTORY_BYTES + 100 * kept

    async def test_many_agents_in_one_frame(self, autojump_clock: Clock) -> None:
        """The frame holds, and each agent has its share of it."""
        async with open_hall(limits=WireLimits(frame_bytes=65_536)) as hall:
            messages = [UserMessage(f"{number:04}" + "x" * 500) for number in range(100)]
            for _ in range(20):
                await hall.runtime.spawn(AgentSpec(model=Scripted([])), messages=messages)
            client = await hall.connect()
            reply = await client.ask("agent.attach", agent="*")
            lengths = {len(one["snapshot"]["history"]) for one in reply["agents"].values()}

        assert 20 == len(reply["agents"])
        assert 1 == len(lengths)
        assert 0 < lengths.pop() < 10
        assert max(map(len, client.frames)) <= 65_536

    async def test_requests_that_are_too_long_together(self, autojump_clock: Clock) -> None:
        """All of them are there; the long texts in them are cut, and say so."""
        async with open_hall(limits=WireLimits(frame_bytes=65_536)) as hall:
            agents = []
            for _ in range(5):
                turn = "y" * 30_000
                agents.append(await hall.spawn(asker(system=turn)))
            client = await hall.connect()
            for agent in agents:
                await agent.start("go")
            await trio.sleep(1)
            for agent in agents:
                ((request, _),) = agent.requests.pending()
                agent.requests._open[request.request].request = long(request)
            listed = (await client.ask("request.list"))["requests"]
            attached = await client.ask("agent.attach", agent="*")
            one = await client.ask("agent.attach", agent=agents[0].id)

        assert 5 == len(listed)
        assert all("cut:" in request["text"] and request["digest"] for request in listed)
        assert [1] * 5 == [len(reply["open_requests"]) for reply in attached["agents"].values()]
        assert "cut:" in one["open_requests"][0]["text"]
        assert max(map(len, client.frames)) <= 65_536


def long(request: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(request, text="x" * 40_000)
