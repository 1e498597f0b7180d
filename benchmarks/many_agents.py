"""200 agents with 20 iterations each, all at once: iterations per second, and memory above the imported process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from benchmarks.harness.cases import checked
from benchmarks.harness.floors import Floor, four_thin, four_thin_tool_tasks, nursery_loop
from benchmarks.harness.measure import Sample, goal, options, report, take_turns
from benchmarks.harness.memory import memory_mb, reset_peak
from benchmarks.harness.ours import run_agents

ROOT = Path(__file__).resolve().parent.parent
FLOOR = "floor: four thin actors, tool tasks"


async def _many(floor: Floor, agents: int, iterations: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(floor, iterations, 1)


def _cases(agents: int, iterations: int) -> dict[str, Callable[[], Sample]]:
    def case(main: Callable[..., Awaitable[Any]], *args: Any) -> Callable[[], Sample]:
        return lambda: checked(main, *args, agents, iterations, calls=agents * iterations)

    return {
        "floor: trio nursery": case(_many, nursery_loop),
        "floor: four thin actors": case(_many, four_thin),
        FLOOR: case(_many, four_thin_tool_tasks),
        "ours": case(run_agents),
    }


def _peak(name: str, agents: int, iterations: int) -> None:
    """Print how far one case, run once, rises above the process that has just imported all."""
    case = _cases(agents, iterations)[name]
    before = memory_mb()
    reset_peak()
    case()
    print(json.dumps({"before_mb": before.now, "peak_mb": memory_mb().peak}))


def _peak_in_new_process(name: str, agents: int, iterations: int) -> float:
    command = [sys.executable, "-m", "benchmarks.many_agents", "--peak", name, str(agents), str(iterations)]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    return float(told["peak_mb"]) - float(told["before_mb"])


def main() -> None:
    opts = options(__doc__, rounds=9)
    agents, iterations = (40, 10) if opts.quick else (200, 20)
    total = agents * iterations
    series = take_turns(_cases(agents, iterations), opts.rounds)
    rates = {name: round(total / one.per(1, unit=1.0)["cpu"]) for name, one in series.items()}
    throughput = series[FLOOR].ratio_to(series["ours"])  # a rate is upside down
    peaks = {
        name: round(statistics.median(_peak_in_new_process(name, agents, iterations) for _ in range(3)), 1)
        for name in (FLOOR, "ours")
    }
    report(
        "many_agents",
        opts,
        [
            goal(f"iterations/s against {FLOOR}", throughput["cpu"], at_least=0.65),
            goal("peak MB above the process after import", peaks["ours"], at_most=25),
        ],
        agents=agents,
        iterations_each=iterations,
        iterations_per_second=rates,
        us_per_iteration={name: one.per(total, unit=1e-6) for name, one in series.items()},
        throughput_against_four_thin_tool_tasks=throughput,
        peak_mb_above_import=peaks,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        _peak(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
