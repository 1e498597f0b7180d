"""Agents that hand over to each other, each with a model of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from actors import AgentSpec
from actors.models.scripted import call, reply
from protocol.model import ModelRequest
from protocol.turns import Turn

from .play import Played, Stage, perform
from .specs import agent
from .strict import StrictModel


def named(name: str, script: Any, *tools: Any, **options: Any) -> AgentSpec:
    """An agent whose model has its name."""
    return attrs.evolve(agent(script, *tools, name=name, **options), model=StrictModel(script, name=f"{name}-model"))


def transfer(name: str = "b", *, id: str = "x", text: str = "") -> Turn:
    return reply(text, call(f"transfer_to_{name}", {"reason": "better at it"}, id=id))


def play_all(first: AgentSpec, *others: AgentSpec, act: Any = None, **options: Any) -> Played:
    """One run of the first agent; the models of the others are judged too."""

    async def scene(stage: Stage) -> Played:
        for other in others:
            await stage.spawn(other)
        return await stage.play(await stage.spawn(first), act=act, **options)

    return perform(scene)


def asked_of(spec: AgentSpec) -> list[Any]:
    assert isinstance(spec.model, StrictModel)
    return spec.model.asked


def always(name: str = "t") -> Callable[[ModelRequest], Turn | str]:
    """A model that calls a tool while it may."""
    return lambda request: reply("", call(name, {})) if request.tools_on else "final"
