"""Thousands of agents that do nothing: they begin and end clean. What they cost is printed (`pytest -s`), not judged."""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

import pytest
import trio

from actors import AgentSpec, Runtime, open_runtime
from actors.models.scripted import Scripted
from tests.properties.play import tasks_below

FULL = os.environ.get("ONWARD_SWEEP") == "full"


def memory_mb() -> float:
    """What this process holds; 0 where the machine does not say."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if told.exists() else 0.0


class Bill:
    """What it costs."""

    def __init__(self, name: str) -> None:
        gc.collect()
        self._name, self._memory, self._began = name, memory_mb(), time.perf_counter()

    def tell(self, what: str, count: int) -> None:
        seconds, memory = time.perf_counter() - self._began, memory_mb() - self._memory
        sys.stdout.write(f"{self._name}: {count} agents {what}: {seconds:.2f} s, {memory:.1f} MB more than before\n")


async def spawn_many(runtime: Runtime, count: int) -> None:
    for number in range(count):
        await runtime.spawn(AgentSpec(name=f"idle-{number}", model=Scripted([])))


@pytest.mark.slow
async def test_ten_thousand(capsys: pytest.CaptureFixture[str]) -> None:
    """They are all there, none keeps another from being stopped, and nothing is left of them."""
    count, bill = 10_000, Bill("without a journal")
    root = trio.lowlevel.current_task()
    before = len(tasks_below(root))
    spec = AgentSpec(model=Scripted([]))
    async with open_runtime() as runtime:
        for _ in range(count):
            await runtime.spawn(spec)
        hosted = runtime.agents
        bill.tell("spawned", count)
        for agent in hosted[: count // 2]:
            agent.stop()
        for agent in hosted[: count // 2]:
            await agent.stopped.wait()
        left = len(runtime.agents)
    bill.tell("stopped", count)
    with capsys.disabled():
        sys.stdout.write(capsys.readouterr().out)

    assert (count, count // 2) == (len(hosted), left)
    assert all(agent.stopped.is_set() for agent in hosted)
    assert before == len(tasks_below(root))
    assert 0 == len(runtime.agents)


@pytest.mark.slow
async def test_with_a_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are all there again in the next process, under their names, but for those that were stopped."""
    count = 10_000 if FULL else 1_500
    bill = Bill("with a journal")
    async with open_runtime(journal=tmp_path / "onward.db") as runtime:
        await spawn_many(runtime, count)
        first = {agent.name: agent.id for agent in runtime.agents}
        bill.tell("spawned", count)
        for agent in runtime.agents[:100]:
            agent.stop()
            await agent.stopped.wait()
    bill.tell("stopped", count)
    async with open_runtime(journal=tmp_path / "onward.db") as runtime:
        await spawn_many(runtime, count)
        second = {agent.name: agent.id for agent in runtime.agents}
        bill.tell("brought back", count)
    bill.tell("stopped again", count)
    with capsys.disabled():
        sys.stdout.write(capsys.readouterr().out)
    same = [name for name in first if first[name] == second[name]]

    assert count == len(first) == len(second)
    assert list(first)[100:] == same
