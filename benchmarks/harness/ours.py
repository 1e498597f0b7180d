"""The subject: the same work done by agents of the runtime."""

from __future__ import annotations

import time

import trio

from actors import AgentSpec, Runtime, open_runtime, tool
from protocol.model import ModelEmit, ModelRequest, Profile
from protocol.turns import TextPart, ToolCall, ToolMessage, Turn
from protocol.usage import Usage

from .work import add

__all__ = ("Caller", "run_agents", "run_once", "run_one", "spec_for")

_ADD = tool(add)
_USAGE = Usage(10, 0, 0, 5, 0, complete=True)


class Caller:
    """Asks `width` times for `add(1, 2)` in each of `iterations` turns, then answers with the last result.

    Where it stands it reads from the conversation: one serves any number of agents.
    """

    name = "benchmark"
    profile = Profile(keeps_tools_when_off=True)

    def __init__(self, iterations: int, width: int = 1, *, keep_times: bool = False) -> None:
        self._iterations = iterations
        self._width = width
        self._keep_times = keep_times
        self.times: list[float] = []
        """When each turn was asked for, if they are kept."""

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Ask again, or answer."""
        if self._keep_times:
            self.times.append(time.perf_counter())
        iteration = len(request.messages) // 2
        if iteration >= self._iterations:
            last = request.messages[-1]
            text = last.results[-1].text if isinstance(last, ToolMessage) else "done"
            return Turn((TextPart(text),), "stop", "stop", _USAGE)
        calls = tuple([ToolCall(f"c{iteration}-{number}", "add", '{"a": 1, "b": 2}') for number in range(self._width)])
        return Turn(calls, "tool_calls", "tool_calls", _USAGE)


def spec_for(model: Caller, iterations: int) -> AgentSpec:
    """An agent with one tool and one stop condition, as most have."""
    return AgentSpec(model=model, tools=[_ADD], max_steps=iterations + 1)


async def run_one(runtime: Runtime, spec: AgentSpec, *, read_events: bool = False) -> str:
    """One agent in a runtime, one run; the answer."""
    agent = await runtime.spawn(spec)
    async with agent.run("go") as run:
        if read_events:
            async for _ in run:
                pass
        result = await run.result()
    assert result.answered
    return result.text


async def run_once(iterations: int, width: int = 1, *, model: Caller | None = None, read_events: bool = False) -> str:
    """One agent, one run, in a runtime of its own; the answer."""
    spec = spec_for(model or Caller(iterations, width), iterations)
    async with open_runtime() as runtime:
        return await run_one(runtime, spec, read_events=read_events)


async def run_agents(agents: int, iterations: int) -> list[str]:
    """Many agents in one runtime, each with one run, all at once; the answers."""
    answers: list[str] = []

    async def answer(runtime: Runtime) -> None:
        answers.append(await run_one(runtime, spec))

    spec = spec_for(Caller(iterations), iterations)
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(answer, runtime)
    return answers
