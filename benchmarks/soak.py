"""Agents that come and go for minutes, with a journal and clients that lag: whether memory, tasks and files stay as they are.

    python -m benchmarks.soak --minutes 10

A line every few seconds says how things stand; at the end, one JSON object says what grew. The first third is warming up
and is not judged.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Agent, AgentSpec, Budget, ContinuationResponse, Runtime, open_runtime, remote, sub_agent, tool
from actors.client import Client, ClientError, connect
from actors.gateway import Gateway, open_gateway
from actors.journal import SQLiteJournal
from benchmarks.harness.memory import memory_mb
from protocol.errors import RunError, RunOver
from protocol.model import ModelEmit, ModelRequest, Profile, TextDelta
from protocol.turns import TextPart, ToolCall, Turn
from protocol.usage import Usage

SAMPLE_SECONDS = 5.0
KEEP_SECONDS = 20.0
"""How long the journal keeps what is no longer needed."""
MOST_GROWTH = 0.03
"""Of what there is, in the judged part: more is not flat."""
LEAST = {"rss_mb": 3.0, "objects": 3000.0, "tasks": 40.0, "files": 5.0, "threads": 3.0, "journal_mb": 4.0}
"""What comes and goes anyway: growth below it is none."""


class Talker:
    """Says a little, asks for a tool four times in five, and answers when it has had enough."""

    name = "talker"
    profile = Profile(keeps_tools_when_off=True)

    def __init__(self, choice: random.Random, tools: tuple[str, ...]) -> None:
        self._choice = choice
        self._tools = tools

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """One turn."""
        text = "word " * self._choice.randint(1, 30)
        for start in range(0, len(text), 25):
            emit(TextDelta(text[start : start + 25]))
            await trio.sleep(self._choice.random() * 0.005)
        usage = Usage(10 * len(request.messages), 0, 0, 5, 0, complete=True)
        if not request.tools_on or self._choice.random() < 0.2:
            return Turn((TextPart(text),), "stop", "stop", usage)
        calls = [
            ToolCall("", self._choice.choice(self._tools), '{"task": "some"}')
            for _ in range(self._choice.randint(1, 3))
        ]
        return Turn((TextPart(text), *calls), "tool_calls", "tool_calls", usage)


@attrs.define
class Counts:
    """What has happened."""

    agents: int = 0
    runs: int = 0
    cancelled: int = 0
    broken_off: int = 0
    connections: int = 0
    events: int = 0


@attrs.define(eq=False)
class Soak:
    """Everything that goes on."""

    runtime: Runtime
    gateway: Gateway
    choice: random.Random
    budget: Budget
    counts: Counts = attrs.field(factory=Counts)

    def spec(self, name: str) -> AgentSpec:
        """An agent with tools, a gate and a sub-agent."""
        choice = self.choice

        @tool
        async def work(task: str) -> str:
            """Work."""
            await trio.sleep(choice.random() * 0.02)
            if choice.random() < 0.05:
                raise ValueError("broken")
            return task * 20

        @tool
        def block(task: str) -> str:
            """Work in a thread."""
            return task

        child = AgentSpec(name="child", model=Talker(choice, ("work",)), tools=[work], max_tool_iterations=2)
        asked = remote(timeout_seconds=0.2, on_timeout="approve") if choice.random() < 0.3 else _decide
        return AgentSpec(
            name=name,
            model=Talker(choice, ("work", "work", "block", "ask_child")),
            tools=[work, block, sub_agent(child)],
            max_tool_iterations=3,
            max_llm_calls=20,
            continuation=asked,
            budget=self.budget,
        )

    async def worker(self, number: int) -> None:
        """Agents, one after the other, with some runs each."""
        while True:
            agent = await self.runtime.spawn(self.spec(f"agent-{number}"))
            self.counts.agents += 1
            for _ in range(self.choice.randint(1, 6)):
                await self._run(agent)
            agent.stop()
            await agent.stopped.wait()

    async def _run(self, agent: Agent) -> None:
        self.counts.runs += 1
        try:
            async with agent.run("go") as run, trio.open_nursery() as nursery:
                if self.choice.random() < 0.2:
                    nursery.start_soon(_later, self.choice.random() * 0.2, run.cancel)
                if self.choice.random() < 0.1:
                    nursery.start_soon(_later, self.choice.random() * 0.1, partial(run.steer, "more"))
                await run.wait_ended()
                nursery.cancel_scope.cancel()
            await run.result()
        except RunError:
            self.counts.cancelled += 1

    async def watcher(self) -> None:
        """A client that follows everybody, slowly, and goes and comes again."""
        while True:
            try:
                async with connect(self.gateway.address, token=self.gateway.token) as client:
                    self.counts.connections += 1
                    with trio.move_on_after(self.choice.uniform(0.5, 8)):
                        await self._follow(client)
            except ClientError:
                self.counts.broken_off += 1

    async def _follow(self, client: Client) -> None:
        async with client.follow() as events:
            async for _ in events:
                self.counts.events += 1
                if self.choice.random() < 0.02:
                    await trio.sleep(self.choice.random())


async def _decide(_request: Any) -> ContinuationResponse:
    await trio.sleep(0.01)
    return ContinuationResponse("approve" if random.random() < 0.5 else "decline")


async def _later(seconds: float, act: Any) -> None:
    await trio.sleep(seconds)
    with contextlib.suppress(RunOver):
        act()


def _tasks(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _tasks(child)


def _sample(soak: Soak, root: trio.lowlevel.Task, folder: Path, began: float) -> dict[str, float]:
    gc.collect()
    return {
        "seconds": round(trio.current_time() - began, 1),
        "rss_mb": round(memory_mb().now, 1),
        "objects": len(gc.get_objects()),
        "tasks": sum(1 for _ in _tasks(root)),
        "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
        "journal_mb": round(sum(file.stat().st_size for file in folder.iterdir()) / 1e6, 1),
        "agents": soak.counts.agents,
        "runs": soak.counts.runs,
        "events": soak.counts.events,
    }


def growth_of(samples: list[dict[str, float]], name: str) -> dict[str, float | bool]:
    """How much of something came along over the samples, by the median of the slopes between any two of them.

    A step that the allocator makes once is not growth by that, a leak is.
    """
    slopes = [
        (later[name] - one[name]) / (later["seconds"] - one["seconds"])
        for place, one in enumerate(samples)
        for later in samples[place + 1 :]
    ]
    slope = statistics.median(slopes) if slopes else 0.0
    mean = statistics.fmean(one[name] for one in samples)
    grown = slope * (samples[-1]["seconds"] - samples[0]["seconds"])
    return {
        "mean": round(mean, 1),
        "least": min(one[name] for one in samples),
        "most": max(one[name] for one in samples),
        "per_minute": round(slope * 60, 3),
        "grown": round(grown, 1),
        "flat": grown <= max(LEAST[name], MOST_GROWTH * mean),
    }


async def _main(minutes: float, agents: int, watchers: int, folder: Path) -> None:
    journal = SQLiteJournal(folder / "onward.db", keep_seconds=KEEP_SECONDS, max_bytes=64 * 1024 * 1024)
    samples: list[dict[str, float]] = []
    root = trio.lowlevel.current_task()
    began = trio.current_time()
    async with (
        open_runtime(journal=journal, budget=Budget(name="all")) as runtime,
        open_gateway(runtime, port=0) as gateway,
        trio.open_nursery() as nursery,
    ):
        soak = Soak(runtime, gateway, random.Random(1), Budget(name="shared"))
        for number in range(agents):
            nursery.start_soon(soak.worker, number)
        for _ in range(watchers):
            nursery.start_soon(soak.watcher)
        while trio.current_time() < began + minutes * 60:
            await trio.sleep(SAMPLE_SECONDS)
            samples.append(_sample(soak, root, folder, began))
            sys.stderr.write(f"{json.dumps(samples[-1])}\n")
        nursery.cancel_scope.cancel("the time is over")
    judged = samples[len(samples) // 3 :]
    growth = {name: growth_of(judged, name) for name in LEAST}
    told = {
        "benchmark": "soak",
        "minutes": minutes,
        "flat": all(one["flat"] for one in growth.values()),
        "growth": growth,
        "counts": attrs.asdict(soak.counts),
        "first_judged": judged[0],
        "last": judged[-1],
    }
    json.dump(told, sys.stdout, indent=2)
    sys.stdout.write("\n")


def main() -> None:
    """Read the command line and begin."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--agents", type=int, default=20, help="how many at a time (default 20)")
    parser.add_argument("--watchers", type=int, default=4, help="clients of the gateway (default 4)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        trio.run(_main, given.minutes, given.agents, given.watchers, Path(name))


if __name__ == "__main__":
    main()
