"""The tables of the benchmarks: each program rewrites its own, and leaves the rest."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.compare.table import MARK, in_readme, in_results
from benchmarks.harness.markdown import grid, put_region, regions, table
from benchmarks.harness.table import page
from tests.house.source import ROOT

MACHINE = {"date": "2026-01-02", "python": "CPython 3.11", "system": "Linux", "cpus": 2, "loop_ms": 13.5}


def entry(what: str, measured: dict[str, Any], better: str = "less") -> dict[str, Any]:
    cpu = {name: value["cpu"] if isinstance(value, dict) else value for name, value in measured.items()}
    ratios = {name: value / cpu["Onward"] for name, value in cpu.items()}
    return {"what": what, "better": better, "measured": measured, "times_onward": ratios}


def times(cpu: float) -> dict[str, float]:
    return {"cpu": cpu, "low": cpu - 1, "high": cpu + 1, "wall": cpu + 2}


def comparison(**more: Any) -> dict[str, Any]:
    """Onward, one other and two floors."""
    three = {"floor: bare trio": times(5), "Onward": times(100), "other": times(1234)}
    return {
        "quick": False,
        "rounds": 3,
        "machine": MACHINE,
        "load": {"before": 1.5, "after": 8.0},
        "requirements": {"other": ["other==1.0", "client==2"]},
        "jobs": {"many": {"agents": 200}},
        "measurements": {
            "iteration": entry("us per iteration", three),
            "parallel": entry("us of eight", three),
            "many": entry("rate", {"Onward": times(7000), "other": times(2000)}, "more"),
            "peak": entry("MB", {"Onward": 21.5, "other": 40.0}),
            "http": entry("ms", {"floor: httpx alone": times(2), "Onward": times(4), "other": times(8)}),
            "growth": entry("growth", {"Onward": times(0.9), "other": times(0.4)}, ""),
            "import": entry("ms to import", {"Onward": times(220), "other": times(110)}),
        },
        **more,
    }


RESULT = {
    "benchmark": "one",
    "quick": False,
    "rounds": 5,
    "goals": [
        {"what": "speed", "measured": 1.0, "at_most": 2, "met": True},
        {"what": "rate", "measured": 1.0, "at_least": 2, "met": False},
    ],
    "iterations": 7,
    "us_each": {"a": {"cpu": 1.5, "wall": 2.0}},
    "machine": MACHINE,
}


def test_grid() -> None:
    """An empty cell is as narrow as it can be."""
    assert "| a | |\n|---|---|\n| 1 | 2 |\n" == grid(["a", ""], [["1", "2"]])


def test_numbers() -> None:
    """Several numbers have columns of their names; one has a column without."""
    assert "\n| some title | cpu |\n|---|---|\n| a b | 1.5 |\n" == table("some_title", {"a_b": {"cpu": 1.5}})
    assert "\n| t | |\n|---|---|\n| a | 12345 |\n" == table("t", {"a": 12345})


def test_a_region_is_rewritten_and_nothing_else() -> None:
    """It comes at the end when it is new, and stays where it is afterwards."""
    new = put_region("head\n", "mine", "one\n")
    later = put_region(new + "\ntail\n", "mine", "a \\1 b\n")

    assert "head\n\n<!-- mine -->\none\n<!-- end of mine -->\n" == new
    assert "head\n\n<!-- mine -->\na \\1 b\n<!-- end of mine -->\n\ntail\n" == later
    assert put_region(later, "other", "x\n").startswith(later)
    assert ["<!-- mine -->\none\n<!-- end of mine -->\n"] == regions(new)


def test_results_keep_what_others_wrote() -> None:
    """The table of all benchmarks rewrites the page, but for the comparison in it."""
    first = page([RESULT])
    compared = put_region(first, MARK, in_results(comparison()))
    again = page([RESULT], compared)

    assert compared == again
    assert "| one | rate | 1 | >= 2 | **missed** |\n\nMissed: one: rate.\n" in first
    assert "\n## one\n\nrounds 5, iterations 7\n\n| us each | cpu | wall |\n|---|---|---|\n| a | 1.5 | 2 |\n" in first


def test_comparison() -> None:
    """Date, machine and versions; all subjects, the best of the libraries bold, and where Onward is not it."""
    text = in_results(comparison())

    assert text.startswith("## Against others\n\n2026-01-02, CPython 3.11, Linux, 2 cores, shared with others.\n")
    assert "\n3 rounds, at a load average of 1.5 before and 8 after" in text
    assert ". other: other==1.0 client==2.\n" in text
    assert "| CPU time and more | floor: httpx alone | floor: bare trio | Onward | other |\n" in text
    assert "| us per iteration | | 5 | **100** | 1,234 |\n" in text
    assert "| rate | | | **7,000** | 2,000 |\n" in text
    assert "| growth | | | 0.9 | 0.4 |\n" in text
    assert "| us per iteration | | 0.05 | **1** | 12.3 |\n" in text
    assert "\nOnward is not the best in: ms to import (other).\n" in text
    assert "| us per iteration | cpu | low | high | wall | / Onward |\n" in text
    assert "| other | 1234 | 1233 | 1235 | 1236 | 12.34 |\n" in text
    assert "**Quick rounds" not in text
    assert "**Quick rounds" in in_results(comparison(quick=True))


def test_short_comparison() -> None:
    """For the README: a few rows, no floors, and where the rest is."""
    text = in_readme(comparison())

    assert text.startswith(
        "| | Onward | other |\n|---|---|---|\n| us for an iteration with one tool call | **100** | 1,2"
    )
    assert "| iterations/s, 200 agents at once | **7,000** | 2,000 |\n" in text
    assert "| ms to import | 220 | **110** |\n" in text
    assert "2026-01-02, CPython 3.11, medians of 3 rounds" in text
    assert "floor" not in text


@pytest.mark.parametrize("name", ["README.md", "benchmarks/RESULTS.md"])
def test_the_marks_are_there(name: str) -> None:
    """The comparison finds its place, once."""
    found = [one for one in regions((ROOT / name).read_text(encoding="utf-8")) if re.match(f"<!-- {MARK} -->", one)]

    assert 1 == len(found)
