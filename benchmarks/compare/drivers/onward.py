"""Onward: the runtime is opened and closed in each run."""

from __future__ import annotations

import trio

from actors import AgentSpec, open_runtime, tool
from actors.models import OpenAIChat
from benchmarks.harness.ours import run_agents, run_once
from benchmarks.harness.work import add
from protocol.events import ContentDelta

_ADD = tool(add)


class Driver:
    """One runtime per measured run; `many` has one for all its agents."""

    start = staticmethod(trio.run)
    run = staticmethod(run_once)
    many = staticmethod(run_agents)

    async def connect(self, base_url: str) -> None:
        self._model = OpenAIChat("m", base_url=base_url, api_key="")

    async def close(self) -> None:
        await self._model.aclose()

    async def stream(self, turns: int) -> tuple[str, int]:
        heard = 0
        spec = AgentSpec(model=self._model, tools=[_ADD], max_steps=turns + 1)
        async with open_runtime() as runtime:
            agent = await runtime.spawn(spec)
            async with agent.run("go") as run:
                async for event in run:
                    heard += isinstance(event, ContentDelta)
                result = await run.result()
        return result.text, heard
