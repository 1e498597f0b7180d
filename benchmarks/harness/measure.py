"""How every benchmark measures and reports: rounds in turn, medians, ratios within a round, one JSON object.

Floor and subject take turns within a round, so that a machine that slows down for a while slows both. A ratio is the
median of the rounds' own ratios. Goals are judged by CPU time: what is measured runs in one thread and never waits, so
that this is what it takes on a machine of its own. The wall clock stands beside it, to show that this is so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from .clock import Sample, stopwatch, timed

__all__ = (
    "Options",
    "Sample",
    "Series",
    "arguments",
    "goal",
    "options",
    "report",
    "stopwatch",
    "summary",
    "take_turns",
    "timed",
)


@attrs.frozen(kw_only=True)
class Options:
    """What the command line says."""

    quick: bool
    """Few and short rounds: shows that it works, proves little."""
    rounds: int


@attrs.define
class Series:
    """One case's measurements, one from each round."""

    samples: list[Sample] = attrs.field(factory=list)

    def per(self, count: int, *, unit: float) -> dict[str, float]:
        """A `count`-th part of a measurement, in `unit` seconds."""
        return summary([Sample(one.wall / count / unit, one.cpu / count / unit) for one in self.samples])

    def ratio_to(self, floor: Series, *, scale: float = 1.0) -> dict[str, float]:
        """How many times as long as `floor` in the same round, times `scale`."""
        pairs = zip(self.samples, floor.samples, strict=True)
        return summary([Sample(one.wall / other.wall * scale, one.cpu / other.cpu * scale) for one, other in pairs])

    def above(self, floor: Series, *, unit: float) -> dict[str, float]:
        """How much longer than `floor` in the same round, in `unit` seconds."""
        pairs = zip(self.samples, floor.samples, strict=True)
        return summary([Sample((one.wall - other.wall) / unit, (one.cpu - other.cpu) / unit) for one, other in pairs])


def summary(samples: list[Sample]) -> dict[str, float]:
    """The medians, and the least and the most CPU time."""
    cpu = [sample.cpu for sample in samples]
    wall = statistics.median(sample.wall for sample in samples)
    return {
        "cpu": _short(statistics.median(cpu)),
        "low": _short(min(cpu)),
        "high": _short(max(cpu)),
        "wall": _short(wall),
    }


def arguments(about: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """What every benchmark can be told."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="few and short rounds: shows that it works, proves little")
    parser.add_argument("--rounds", type=int, default=None, help=f"rounds to measure (default {rounds})")
    return parser


def options(about: str | None, *, rounds: int, quick_rounds: int = 3) -> Options:
    """Read the command line."""
    given = arguments(about, rounds=rounds).parse_args()
    return Options(quick=given.quick, rounds=given.rounds or (quick_rounds if given.quick else rounds))


def take_turns(cases: Mapping[str, Callable[[], Sample]], rounds: int, *, warm_up: bool = True) -> dict[str, Series]:
    """Run each case once per round, in order; the round before the first is not counted."""
    series = {name: Series() for name in cases}
    if warm_up:
        for case in cases.values():
            case()
    for _ in range(rounds):
        for name, case in cases.items():
            series[name].samples.append(case())
    return series


def goal(
    what: str, measured: float, *, at_most: float | None = None, at_least: float | None = None
) -> dict[str, str | float | bool]:
    """A goal and whether it was met."""
    if at_most is not None:
        return {"what": what, "at_most": at_most, "measured": measured, "met": measured <= at_most}
    assert at_least is not None
    return {"what": what, "at_least": at_least, "measured": measured, "met": measured >= at_least}


def report(name: str, opts: Options, goals: list[dict[str, str | float | bool]], **results: Any) -> None:
    """Print the one JSON object."""
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "loop_ms": _loop_ms(),
    }
    head = {"benchmark": name, "quick": opts.quick, "rounds": opts.rounds, "goals": goals}
    json.dump({**head, **results, "machine": machine}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _loop_ms() -> float:
    """The median CPU time of an empty loop of a million rounds: how fast the machine is just now."""
    return _short(statistics.median(timed(lambda: _loop(1_000_000)).cpu for _ in range(9)) * 1e3)


def _loop(rounds: int) -> None:
    for _ in range(rounds):
        pass


def _short(value: float) -> float:
    return float(f"{value:.4g}")
