"""How long a program waits before its first line: imports over bare Python, and `onward --help`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from benchmarks.harness.measure import goal, options, report, take_turns
from benchmarks.harness.processes import started

ROOT = Path(__file__).resolve().parent.parent

STATEMENTS = {
    "bare Python": "pass",
    "floor: trio": "import trio",
    "floor: trio and httpx": "import trio, httpx",
    "ours: import actors": "import actors",
    "ours: with the HTTP model": "import actors; from actors.models import OpenAIChat",
}


def main() -> None:
    opts = options(__doc__, rounds=15)
    cases = {name: started(sys.executable, "-c", statement, cwd=ROOT) for name, statement in STATEMENTS.items()}
    command = importlib.util.find_spec("actors.cli") is not None
    if command:
        cases["ours: onward --help"] = started(sys.executable, "-m", "actors.cli", "--help", cwd=ROOT)
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
