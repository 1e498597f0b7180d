"""Write what `python -m benchmarks.compare` printed into `RESULTS.md` and the README.

`python -m benchmarks.compare | python -m benchmarks.compare.table`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.markdown import grid, machine, put_region, table

from .peers import ONWARD, ROOT
from .summaries import LESS, NEITHER, Entry, median

__all__ = ("MARK", "in_readme", "in_results", "main")

MARK = "benchmarks.compare"
"""Of the regions that are rewritten."""
_SHORT = {
    "iteration": "us for an iteration with one tool call",
    "parallel": "us for an iteration with eight at once",
    "many": "iterations/s, {agents} agents at once",
    "peak": "MB for these {agents} agents",
    "http": "ms for a streamed model call",
    "import": "ms to import",
}
"""Rows of the README."""
_ABOUT = """All of them do the same work with the same tool: a fake model in the process asks for it so and so often and answers
with its last result. The fake costs next to nothing, and so the rest is what is measured: the loop, the check of the
arguments, the conversation. They are libraries of different breadth: each keeps, checks and reports other things while it
does this, and whoever waits for a real model will not notice microseconds. They matter where many agents share a process.

Figures are medians, of CPU time where they are times. The best of the libraries is **bold**; the floors are loops written
by hand, which promise nothing. A growth below 1 comes of the set-up of a run, spread over more iterations.
"""
_BRIEFLY = """CPU time for the same work with a fake model, {date}, {python}, medians of {rounds} rounds; the best is bold. A
real model takes far longer than any of this, and each of these libraries does other things besides: this is what is added
to every agent in a process. [How it is measured, and all figures](benchmarks/RESULTS.md).
"""


def main() -> None:
    told = json.load(sys.stdin)
    _rewrite(ROOT / "benchmarks" / "RESULTS.md", in_results, told)
    _rewrite(ROOT / "README.md", in_readme, told)


def in_results(told: dict[str, Any]) -> str:
    """The section of `RESULTS.md`."""
    entries: dict[str, Entry] = told["measurements"]
    names = list(entries["iteration"]["measured"])
    http = [name for name in entries["http"]["measured"] if name not in names]
    names[:0] = http
    rows = {entry["what"]: entry for entry in entries.values()}
    versions = "; ".join(f"{name}: {' '.join(requires)}" for name, requires in told["requirements"].items())
    return (
        "## Against others\n\n"
        f"{machine(told['machine'], quick=told['quick'])}\n{told['rounds']} rounds, {_load(told['load'])}. {versions}.\n\n{_ABOUT}\n"
        f"{_wide('CPU time and more', names, rows, 'measured')}\n"
        f"{_wide('the same over that of Onward', names, rows, 'times_onward')}\n"
        f"{_behind(entries)}"
        + "".join(table(entry["what"], rows) for entry in entries.values() if (rows := _details(entry)))
    )


def in_readme(told: dict[str, Any]) -> str:
    """The short table."""
    entries: dict[str, Entry] = told["measurements"]
    names = [ONWARD.name, *told["requirements"]]
    agents = told["jobs"]["many"]["agents"]
    rows = {what.format(agents=agents): entries[name] for name, what in _SHORT.items()}
    return f"{_wide('', names, rows, 'measured')}\n{_BRIEFLY.format(**told['machine'], rounds=told['rounds'])}"


def _load(load: dict[str, float]) -> str:
    """How many others wanted the processor."""
    return f"at a load average of {load['before']:g} before and {load['after']:g} after (the comparison itself makes about 1)"


def _rewrite(path: Path, body: Callable[[dict[str, Any]], str], told: dict[str, Any]) -> None:
    path.write_text(put_region(path.read_text("utf-8"), MARK, body(told)), "utf-8")


def _wide(title: str, names: Sequence[str], rows: dict[str, Entry], column: str) -> str:
    """A row for each measurement, a column for each subject."""
    lines: list[list[str]] = []
    for what, entry in rows.items():
        best = _best(entry)
        cells = {name: _short(median(one)) for name, one in entry[column].items()}
        lines.append([what, *[f"**{cells[name]}**" if name in best else cells.get(name, "") for name in names]])
    return grid([title, *names], lines)


def _best(entry: Entry) -> list[str]:
    """Who of the libraries is best, if anybody."""
    if entry["better"] == NEITHER:
        return []
    values = {name: median(one) for name, one in entry["measured"].items() if not _is_floor(name)}
    best = min(values.values()) if entry["better"] == LESS else max(values.values())
    return [name for name, value in values.items() if value == best]


def _behind(entries: dict[str, Entry]) -> str:
    """In what somebody is better than Onward."""
    best_of = {entry["what"]: _best(entry) for entry in entries.values()}
    better = [f"{what} ({', '.join(best)})" for what, best in best_of.items() if best and ONWARD.name not in best]
    return f"Onward is not the best in: {'; '.join(better)}.\n" if better else "Onward is the best in each of these.\n"


def _details(entry: Entry) -> dict[str, dict[str, float]]:
    """Of times, the rest that is known of each subject."""
    return {
        name: {**one, "/ Onward": median(entry["times_onward"][name])}
        for name, one in entry["measured"].items()
        if isinstance(one, dict)
    }


def _is_floor(name: str) -> bool:
    return name.startswith("floor")


def _short(value: float) -> str:
    """Three digits are more than such figures are good for."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
