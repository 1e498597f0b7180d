"""Run every benchmark, one after the other, and write `RESULTS.md`: `python -m benchmarks.harness.table [--quick]`."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import starmap
from pathlib import Path
from typing import Any

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
    text = HEAD + _machine(results) + _goals(results) + _missed(results) + "".join(_details(one) for one in results)
    (FOLDER / "RESULTS.md").write_text(text, "utf-8")


def _run(name: str, *arguments: str) -> dict[str, Any]:
    sys.stderr.write(f"{name}\n")
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=FOLDER.parent, check=True, stdout=subprocess.PIPE)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _machine(results: list[dict[str, Any]]) -> str:
    machine = results[0]["machine"]
    quick = "\n**Quick rounds: these figures prove little.**\n" if results[0]["quick"] else ""
    return (
        f"{machine['date']}, {machine['python']}, {machine['system']}, {machine['cpus']} cores, shared with others.\n"
        f"An empty loop of a million rounds takes {machine['loop_ms']:g} ms of CPU: read absolute times by that.\n{quick}\n"
    )


def _goals(results: list[dict[str, Any]]) -> str:
    lines = ["| benchmark | goal | measured | wanted | |\n", "|---|---|---|---|---|\n"]
    for one in results:
        for goal in one["goals"]:
            bound = f"<= {goal['at_most']:g}" if "at_most" in goal else f">= {goal['at_least']:g}"
            met = "met" if goal["met"] else "**missed**"
            lines.append(f"| {one['benchmark']} | {goal['what']} | {goal['measured']:.3g} | {bound} | {met} |\n")
    return "".join(lines)


def _missed(results: list[dict[str, Any]]) -> str:
    missed = [f"{one['benchmark']}: {goal['what']}" for one in results for goal in one["goals"] if not goal["met"]]
    return "\nAll goals are met.\n" if not missed else "\nMissed: " + "; ".join(missed) + ".\n"


def _details(one: dict[str, Any]) -> str:
    """Whatever a program tells of its cases, as tables."""
    known = {"benchmark", "quick", "rounds", "goals", "machine"}
    tables = {key: value for key, value in one.items() if key not in known and isinstance(value, dict)}
    facts = {key: value for key, value in one.items() if key not in known and not isinstance(value, dict)}
    told = ", ".join(f"{_words(key)} {value}" for key, value in [("rounds", one["rounds"]), *facts.items()])
    return f"\n## {one['benchmark']}\n\n{told}\n" + "".join(starmap(_table, tables.items()))


def _table(title: str, rows: dict[str, Any]) -> str:
    first = next(iter(rows.values()))
    columns = list(first) if isinstance(first, dict) else []
    lines = [f"\n| {_words(title)} | {' | '.join(columns) or ' '} |\n", "|---|" + "---|" * max(1, len(columns)) + "\n"]
    for name, value in rows.items():
        cells = [f"{value[column]:g}" for column in columns] if columns else [f"{value:g}"]
        lines.append(f"| {_words(name)} | {' | '.join(cells)} |\n")
    return "".join(lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


if __name__ == "__main__":
    main()
