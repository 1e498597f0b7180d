"""What an agent costs that does nothing, to make and to end one, and what a run costs before its first step."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import trio

from actors import open_runtime
from benchmarks.harness.measure import Sample, goal, options, report, stopwatch, summary
from benchmarks.harness.memory import memory_mb
from benchmarks.harness.ours import Caller, spec_for

Measured: TypeAlias = dict[str, float]

ROOT = Path(__file__).resolve().parent.parent


async def _idle(agents: int) -> Measured:
    """Spawn agents, let them be, and close the runtime."""
    spec = spec_for(Caller(1), 1)
    async with open_runtime() as runtime:
        for _ in range(10):
            await runtime.spawn(spec)
        gc.collect()
        before = memory_mb().now
        elapsed = stopwatch()
        for _ in range(agents):
            await runtime.spawn(spec)
        spawned = elapsed()
        gc.collect()
        after = memory_mb().now
        hosted = runtime.agents
        elapsed = stopwatch()
    stopped = elapsed()
    assert len(hosted) == agents + 10
    assert all(agent.stopped.is_set() for agent in hosted)
    return _measured(agents, after - before, spawned, stopped)


async def _floor(tasks: int) -> Measured:
    """The same with bare tasks that sleep in a nursery of their own: the least that a host costs."""

    async def host(task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery():
            task_status.started()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        gc.collect()
        before = memory_mb().now
        elapsed = stopwatch()
        for _ in range(tasks):
            await nursery.start(host)
        spawned = elapsed()
        gc.collect()
        after = memory_mb().now
        elapsed = stopwatch()
        nursery.cancel_scope.cancel("done")
    return _measured(tasks, after - before, spawned, elapsed())


def _measured(count: int, held_mb: float, spawned: Sample, stopped: Sample) -> Measured:
    return {
        "kib_each": held_mb * 1e6 / 1024 / count,
        "spawn_cpu_ms": spawned.cpu / count * 1e3,
        "spawn_wall_ms": spawned.wall / count * 1e3,
        "stop_cpu_ms": stopped.cpu / count * 1e3,
        "stop_wall_ms": stopped.wall / count * 1e3,
    }


async def _runs(count: int) -> Measured:
    """Runs of one model call, and of eight tool rounds more: what a round costs is no set-up."""
    times: dict[int, list[Sample]] = {0: [], 8: []}
    async with open_runtime() as runtime:
        for _ in range(count):
            for rounds, taken in times.items():
                agent = await runtime.spawn(spec_for(Caller(rounds), rounds))
                elapsed = stopwatch()
                async with agent.run("go") as run:
                    await run.result()
                taken.append(elapsed())
                agent.stop()
    shortest, longer = (summary(taken) for taken in times.values())
    return {
        "run_of_one_call_cpu_ms": shortest["cpu"] * 1e3,
        "run_of_one_call_wall_ms": shortest["wall"] * 1e3,
        "iteration_cpu_ms": (longer["cpu"] - shortest["cpu"]) / 8 * 1e3,
    }


def _in_new_process(what: str, count: int) -> Measured:
    command = [sys.executable, "-m", "benchmarks.agents", "--only", what, str(count)]
    told: Measured = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    return told


def _medians(samples: list[Measured]) -> Measured:
    return {name: float(f"{statistics.median(one[name] for one in samples):.4g}") for name in samples[0]}


def main() -> None:
    opts = options(__doc__, rounds=5, quick_rounds=1)
    agents, runs = (1000, 50) if opts.quick else (10_000, 500)
    samples: dict[str, list[Measured]] = {"floor": [], "idle": [], "runs": []}
    for _ in range(opts.rounds):
        for what, taken in samples.items():
            taken.append(_in_new_process(what, runs if what == "runs" else agents))
    floor, idle, run = (_medians(taken) for taken in samples.values())
    report(
        "agents",
        opts,
        [
            goal("KiB for an idle agent", idle["kib_each"], at_most=8),
            goal("ms to spawn one", idle["spawn_cpu_ms"], at_most=0.05),
            goal("ms to stop one", idle["stop_cpu_ms"], at_most=0.05),
            goal(
                "ms for a whole run of one model call: its set-up and more", run["run_of_one_call_cpu_ms"], at_most=0.35
            ),
        ],
        idle_agents=agents,
        ours=idle,
        floor_bare_host_tasks=floor,
        run=run,
    )


_PARTS: dict[str, Any] = {"floor": _floor, "idle": _idle, "runs": _runs}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--only"]:
        print(json.dumps(trio.run(_PARTS[sys.argv[2]], int(sys.argv[3]))))
    else:
        main()
