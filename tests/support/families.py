"""Agents that are asked by the tools of others."""

from __future__ import annotations

from actors import Agent, RunResult
from actors.tools import Tool, tool

from .play import Stage


def asks(stage: Stage, agent: Agent, *, name: str | None = None, into: list[RunResult] | None = None) -> Tool:
    """A tool that asks the agent, queued where it is busy, and returns its text; its results are kept in `into`."""

    async def ask() -> str:
        async with stage.run(agent, "look", if_busy="queue") as run:
            result = await run.result()
            if into is not None:
                into.append(result)
            return result.text

    return tool(ask, name=name or f"ask_{agent.name}", description=f"Ask {agent.name}.")
