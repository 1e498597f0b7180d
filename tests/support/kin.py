"""A root whose tool, which has a timeout, runs an agent of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors import Agent, AgentSpec, Run, tool
from actors.models.scripted import call, reply
from protocol.model import ModelRequest
from protocol.result import RunResult
from protocol.turns import Turn

from .play import Played, Stage, perform
from .specs import agent

SECONDS = 5
TIMED_OUT = "The tool ask timed out after 5 seconds; it may have had an effect."


class Family:
    """A root whose tool `ask`, with a timeout, runs a child; what the child came to."""

    def __init__(self, child: AgentSpec, *, seconds: float | None = SECONDS, use: Any = None, **root: Any) -> None:
        self.ends: list[RunResult] = []
        self.child_spec = child
        self.child: Agent | None = None
        self._use: Callable[[Run], Awaitable[RunResult]] = use or (lambda run: run.result())
        asking = tool(self.ask, name="ask", description="Ask.", timeout_seconds=seconds)
        root.setdefault("name", "root")
        self.root_spec = agent([reply("", call("ask", {}, id="p")), "root done"], asking, **root)

    async def ask(self) -> str:
        assert self.child is not None
        async with self.child.run("go") as run:
            self.ends.append(await self._use(run))
        return self.ends[-1].text

    def play(self, act: Any = None) -> Played:
        async def scene(stage: Stage) -> Played:
            self.child = await stage.spawn(self.child_spec)
            return await stage.play(await stage.spawn(self.root_spec), act=act)

        return perform(scene)


def child(script: Any, *tools: Any, **options: Any) -> AgentSpec:
    return agent(script, *tools, name="child", **options)


async def decide_later(run: Run, kind: Any, response: Any, seconds: float) -> None:
    """Answer every request of that kind, of whoever in the run's stream, after some seconds."""
    async for event in run:
        if isinstance(event, kind):
            await trio.sleep(seconds)
            await run.decide(event.request, response)


def thinks(seconds: float, *answers: Any) -> Any:
    """A model that takes its time."""
    turns = iter(answers)

    async def script(_request: ModelRequest) -> Turn | str:
        await trio.sleep(seconds)
        found: Turn | str = next(turns)
        return found

    return script
