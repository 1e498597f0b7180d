"""Run every benchmark, one after the other, and write `RESULTS.md`: `python -m benchmarks.harness.table [--quick]`.

What another program wrote between marks of its own stays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import starmap
from pathlib import Path
from typing import Any

from .markdown import grid, machine, regions, table, words

FOLDER = Path(__file__).resolve().parent.parent
PROGRAMS = (
    "iteration",
    "growth",
    "parallel",
    "many_agents",
    "ask",
    "startup",
    "agents",
    "http_turn",
    "http_many",
    "gateway",
)
HEAD = """# Results

Made by `python -m benchmarks.harness.table`; what is measured and how is told in [README.md](README.md). Only ratios carry
over to other machines.

"""


def main() -> None:
    results = [_run(name, *sys.argv[1:]) for name in PROGRAMS]
    path = FOLDER / "RESULTS.md"
    path.write_text(page(results, path.read_text("utf-8") if path.exists() else ""), "utf-8")


def page(results: list[dict[str, Any]], old: str = "") -> str:
    """The whole of `RESULTS.md`, with what others wrote between their marks in the old one."""
    head = HEAD + machine(results[0]["machine"], quick=results[0]["quick"]) + "\n"
    text = head + _goals(results) + _missed(results) + "".join(_details(one) for one in results)
    return "\n".join([text, *regions(old)])


def _run(name: str, *arguments: str) -> dict[str, Any]:
    sys.stderr.write(f"{name}\n")
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=FOLDER.parent, check=True, stdout=subprocess.PIPE)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _goals(results: list[dict[str, Any]]) -> str:
    rows: list[list[str]] = []
    for one in results:
        for goal in one["goals"]:
            bound = f"<= {goal['at_most']:g}" if "at_most" in goal else f">= {goal['at_least']:g}"
            met = "met" if goal["met"] else "**missed**"
            rows.append([one["benchmark"], goal["what"], f"{goal['measured']:.3g}", bound, met])
    return grid(["benchmark", "goal", "measured", "wanted", ""], rows)


def _missed(results: list[dict[str, Any]]) -> str:
    missed = [f"{one['benchmark']}: {goal['what']}" for one in results for goal in one["goals"] if not goal["met"]]
    return "\nAll goals are met.\n" if not missed else "\nMissed: " + "; ".join(missed) + ".\n"


def _details(one: dict[str, Any]) -> str:
    """Whatever a program tells of its cases, as tables."""
    known = {"benchmark", "quick", "rounds", "goals", "machine"}
    tables = {key: value for key, value in one.items() if key not in known and isinstance(value, dict)}
    facts = {key: value for key, value in one.items() if key not in known and not isinstance(value, dict)}
    told = ", ".join(f"{words(key)} {value}" for key, value in [("rounds", one["rounds"]), *facts.items()])
    return f"\n## {one['benchmark']}\n\n{told}\n" + "".join(starmap(table, tables.items()))


if __name__ == "__main__":
    main()
