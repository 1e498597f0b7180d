"""Agents and clients for the conversations that are recorded."""

from __future__ import annotations

import warnings
from typing import Any

import trio

from actors import AgentSpec, LimitsWarning, remote
from actors.agent import Agent
from actors.gateway import Template
from actors.models.scripted import Scripted, call, reply
from protocol.model import (
    HopBegan,
    HopEnded,
    ModelEmit,
    ModelRequest,
    Profile,
    ReasoningDelta,
    RequestSent,
    Retrying,
    TextDelta,
    Undone,
)
from protocol.turns import Turn
from protocol.usage import Usage
from tests.actors.gateway.wired import Client

from .tape import Scene

USAGE = Usage(100, 20, 0, 30, 10, True)


async def look(path: str) -> str:
    """Look at a file."""
    await trio.sleep(1)
    return f"{path} is fine"


def spec(*turns: Any, tools: Any = (look,), **options: Any) -> AgentSpec:
    """A scripted agent; its limits are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitsWarning)
        return AgentSpec(model=Scripted(turns), tools=tools, **{"name": "auditor", **options})


def gated(**options: Any) -> AgentSpec:
    """An agent that asks after each round of tools."""
    rounds = [reply(f"Round {n}.", call("look", {"path": f"file{n}"}), usage=USAGE) for n in (1, 2, 3)]
    return spec(
        *rounds,
        reply("All is fine.", usage=USAGE),
        max_tool_iterations=1,
        continuation=remote(),
        max_grant=5,
        **options,
    )


async def attached(scene: Scene, agent: Agent, **options: Any) -> Client:
    client = await scene.client()
    await client.ask("agent.attach", agent=agent.id, **options)
    return client


async def asked(client: Client, agent: Agent, number: int = 1) -> dict[str, Any]:
    """The question with this number, when it has come."""
    await client.read_until(lambda: len(client.requests(agent.id)) >= number)
    return client.requests(agent.id)[number - 1]


class Hopping:
    """A model whose decode is lost, tried again, and continued by further requests."""

    name = "hopping"
    profile = Profile(reports_sending=True)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        await trio.lowlevel.checkpoint()
        for event in (
            RequestSent(),
            Retrying(attempt=1, seconds=0.5, reason="overloaded"),
            HopBegan(hop=1),
            ReasoningDelta("Let me think."),
            TextDelta("Half an ans"),
            HopEnded(hop=1, interaction="i-1", status="incomplete", usage=USAGE),
            HopBegan(hop=2),
            TextDelta("wer, wrong"),
            Undone(),
            TextDelta("Half an answer."),
            HopEnded(hop=2, interaction="i-2", status="completed", usage=USAGE),
        ):
            emit(event)
        return reply("Half an answer.", usage=USAGE + USAGE)


TEMPLATES = {"auditor": Template(lambda **limits: gated(**limits), overrides=("max_llm_calls",))}
