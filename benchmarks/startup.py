"""How long a program waits before its first line: imports over bare Python, and `onward --help`."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.measure import Sample, goal, options, report, stopwatch, take_turns

ROOT = Path(__file__).resolve().parent.parent

STATEMENTS = {
    "bare Python": "pass",
    "floor: trio": "import trio",
    "floor: trio and httpx": "import trio, httpx",
    "ours: import actors": "import actors",
    "ours: with the HTTP model": "import actors; from actors.models import OpenAIChat",
}


def _started(*arguments: str) -> Callable[[], Sample]:
    """Start a fresh interpreter and wait for its end; the CPU time is its own."""

    def case() -> Sample:
        before = _children_seconds()
        elapsed = stopwatch()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return Sample(elapsed().wall, _children_seconds() - before)

    return case


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    opts = options(__doc__, rounds=15)
    cases = {name: _started("-c", statement) for name, statement in STATEMENTS.items()}
    command = importlib.util.find_spec("actors.cli") is not None
    if command:
        cases["ours: onward --help"] = _started("-m", "actors.cli", "--help")
    series = take_turns(cases, opts.rounds)
    bare = series["bare Python"]
    over = {name: one.above(bare, unit=1e-3) for name, one in series.items() if one is not bare}
    goals = [goal("ms to import actors, over bare Python", over["ours: import actors"]["cpu"], at_most=220)]
    if command:
        whole = series["ours: onward --help"].per(1, unit=1.0)
        goals.append(goal("seconds for onward --help", whole["cpu"], at_most=0.5))
    report(
        "startup",
        opts,
        goals,
        ms_over_bare_python=over,
        ms_whole={name: one.per(1, unit=1e-3) for name, one in series.items()},
    )


if __name__ == "__main__":
    main()
