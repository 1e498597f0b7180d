"""What clients of every kind are put through: each scenario is played by each of them, and must come to the same.

A scenario says which commands are given at the first, second, ... event of a type. A player attaches to the agent from
`start`, starts a run, answers, and prints what it saw as JSON: `numbers` and `types` of all events up to the end of the
run, and for each time it was to answer what its commands were answered with. Connections are cut on the way: a player
connects again, attaches behind its last number and gives a command without a reply again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import attrs

from actors import AgentSpec, open_runtime, remote
from actors.agent import Agent
from actors.gateway import Gateway, open_gateway
from actors.models import Scripted, call, reply
from tests.actors.client._agents import send, talker
from tests.actors.gateway.wired import MANY
from tests.peers._proxy import Proxy, open_proxy

SCENARIOS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "scenarios.json").read_text())
NAMES = list(SCENARIOS)


def spec_of(scenario: dict[str, Any]) -> AgentSpec:
    """The agent that a scenario is about."""
    if "rounds" in scenario["agent"]:
        return talker(rounds=scenario["agent"]["rounds"], seconds=0.01)
    calls = [call("send", {"to": to}) for to in scenario["agent"]["to"]]
    model = Scripted([reply("I tell everybody.", *calls), "All was told."])
    return AgentSpec(name="ada", model=model, tools=[send], approval=remote())


@attrs.define
class Stage:
    """Where a scenario is played."""

    scenario: dict[str, Any]
    agent: Agent
    gateway: Gateway
    proxy: Proxy

    @property
    def url(self) -> str:
        """Of the WebSocket, over the cable that breaks."""
        return f"ws://localhost:{self.proxy.port}/ws"

    @property
    def given(self) -> dict[str, Any]:
        """What a player is told."""
        return {"url": self.url, "token": self.gateway.token, "agent": self.agent.id, "on": self.scenario["on"]}

    def expected(self) -> dict[str, Any]:
        """What was to happen, and to be seen: all events of the log, whole and once."""
        return {
            "numbers": list(range(1, self.agent.stream.end + 1)),
            "types": [event.type for event in self._events()],
            "answers": self.scenario["answers"],
            "outcomes": sorted(self.scenario["outcomes"]),
            "connections": 1 + len(self.scenario.get("cuts", ())),
        }

    def came_to(self, printed: str) -> dict[str, Any]:
        """What happened, and what a player saw."""
        seen = json.loads(printed)
        if "cuts" in self.scenario:  # a reply that was lost comes again
            seen["answers"] = [[word.removesuffix(", replayed") for word in words] for words in seen["answers"]]
        outcomes = sorted(event.outcome for event in self._events() if hasattr(event, "outcome"))
        return {**seen, "outcomes": outcomes, "connections": self.proxy.connections}

    def _events(self) -> list[Any]:
        return [event for event, _ in self.agent.stream.read(0)[1]]


@contextlib.asynccontextmanager
async def open_stage(name: str) -> AsyncGenerator[Stage, None]:
    """A gateway on a real socket, and in front of it a cable with the scenario's cuts."""
    scenario = SCENARIOS[name]
    async with (
        open_runtime() as runtime,
        open_gateway(runtime, port=0, hosts=["localhost"], door_limits=MANY) as gateway,
    ):
        agent = await runtime.spawn(spec_of(scenario))
        async with open_proxy(next(iter(gateway.ports)), cuts=scenario.get("cuts", ())) as proxy:
            yield Stage(scenario, agent, gateway, proxy)
