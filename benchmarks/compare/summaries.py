"""From the rounds to what is told of them: one entry per measurement, medians, and ratios to Onward."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from .environments import Environment
from .job import Job
from .peers import ONWARD, Subject
from .rounds import BARE, Measured

__all__ = ("LESS", "MORE", "NEITHER", "Entry", "median", "sizes", "summarise")

LESS, MORE, NEITHER = "less", "more", ""

Found: TypeAlias = Mapping[tuple[str, str], Measured]
Entry: TypeAlias = dict[str, Any]
"""`what` in words and units, which way is better, `measured` by subject, and `times_onward`: the same over Onward's."""

_TIMES = {
    "iteration": ("us per iteration, one tool call", 1e-6),
    "parallel": ("us per iteration, eight tool calls at once", 1e-6),
    "http": ("ms per model call over HTTP, each event read on its own", 1e-3),
    "http at once": ("ms per model call over HTTP, all events at once", 1e-3),
}
_IMPORTS = {
    "import": "ms to import it, over bare Python",
    "import with client": "ms to import it with its HTTP client, over bare Python",
}


def summarise(found: Found, work: Mapping[str, Job]) -> dict[str, Entry]:
    """An entry for each measurement, by name."""
    many = work["many"]
    crowd = f"{many.agents} agents with {many.iterations} iterations each, at once"
    peaks = {who: round(statistics.median(one.peaks_mb), 1) for who, one in _of(found, "many").items()}
    entries = {name: _times(what, _of(found, name), work[name], unit) for name, (what, unit) in _TIMES.items()}
    entries["growth"] = _growth(found, work["short"], work["long"])
    entries["many"] = _rates(f"iterations per second: {crowd}", _of(found, "many"), many)
    entries["peak"] = _entry(f"MB at most, above the process after import: {crowd}", peaks)
    for name, what in _IMPORTS.items():
        over = {who: one.series.above(found[BARE, who].series, unit=1e-3) for who, one in _of(found, name).items()}
        entries[name] = _entry(what, over)
    return entries


def sizes(subjects: Iterable[Subject], environments: Mapping[str, Environment]) -> dict[str, Entry]:
    """What is installed of those that can be imported."""
    there = {one.name: environments[one.name] for one in subjects if one.imports}
    return {
        "size": _entry("MB installed", {name: round(one.size_mb(), 1) for name, one in there.items()}),
        "distributions": _entry("distributions installed", {name: len(one.installed()) for name, one in there.items()}),
    }


def _of(found: Found, name: str) -> dict[str, Measured]:
    return {who: one for (what, who), one in found.items() if what == name}


def _times(what: str, of: Mapping[str, Measured], job: Job, unit: float) -> Entry:
    base = of[ONWARD.name].series
    return _entry(
        what,
        {who: one.series.per(job.total, unit=unit) for who, one in of.items()},
        {who: one.series.ratio_to(base) for who, one in of.items()},
    )


def _rates(what: str, of: Mapping[str, Measured], job: Job) -> Entry:
    """A rate is a time upside down, and so are its least and its most."""
    base = of[ONWARD.name].series
    rates: dict[str, dict[str, float]] = {}
    for who, one in of.items():
        took = one.series.per(job.total, unit=1.0)
        upside_down = {"cpu": took["cpu"], "low": took["high"], "high": took["low"], "wall": took["wall"]}
        rates[who] = {name: float(round(1 / seconds)) for name, seconds in upside_down.items()}
    return _entry(what, rates, {who: base.ratio_to(one.series) for who, one in of.items()}, better=MORE)


def _growth(found: Found, short: Job, long: Job) -> Entry:
    """Below 1, for the set-up of a run is spread over more of them: the least is no merit."""
    what = f"growth: an iteration in a run of {long.iterations} over one in a run of {short.iterations}"
    scale = short.total / long.total
    early = _of(found, "short")
    grown = {who: one.series.ratio_to(early[who].series, scale=scale) for who, one in _of(found, "long").items()}
    return _entry(what, grown, better=NEITHER)


def _entry(
    what: str, measured: dict[str, Any], times_onward: dict[str, Any] | None = None, *, better: str = LESS
) -> Entry:
    """Ratios that are not given are those of the medians."""
    if times_onward is None:
        base = median(measured[ONWARD.name])
        times_onward = {who: float(f"{median(one) / base:.4g}") for who, one in measured.items()}
    return {"what": what, "better": better, "measured": measured, "times_onward": times_onward}


def median(one: float | dict[str, float]) -> float:
    """The figure that counts: of times, the median of the CPU time."""
    return one["cpu"] if isinstance(one, dict) else one
