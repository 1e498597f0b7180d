"""Onward beside other agent libraries: each in an environment of its own, all of them in turn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare.environments import Environment, prepare
from benchmarks.compare.peers import FLOORS, ONWARD, PEERS, ROOT, Subject
from benchmarks.compare.rounds import jobs, measure
from benchmarks.compare.summaries import sizes, summarise
from benchmarks.harness.http_server import serving
from benchmarks.harness.measure import Options, arguments, report

PAUSE_SECONDS = 0.0005
"""Between two events, as in `http_turn`."""


def compare(
    subjects: Sequence[Subject], environments: Mapping[str, Environment], *, quick: bool, rounds: int
) -> dict[str, Any]:
    """Everything that is told of the subjects; Onward must be one of them."""
    turns = 3 if quick else 20
    with serving(pause_seconds=PAUSE_SECONDS, turns=turns) as spread, serving(pause_seconds=0, turns=turns) as at_once:
        work = jobs(quick=quick, turns=turns, spread=spread, at_once=at_once)
        before = os.getloadavg()[0]
        found = measure(subjects, environments, work, rounds)
    return {
        "requirements": {one.name: list(one.requires) for one in subjects if one in PEERS},
        "load": {"before": round(before, 1), "after": round(os.getloadavg()[0], 1)},
        "jobs": {name: {**job._asdict(), "base_url": bool(job.base_url)} for name, job in work.items()},
        "measurements": summarise(found, work) | sizes(subjects, environments),
    }


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--folder", type=Path, default=ROOT / ".peers", help="of the environments (default .peers)")
    names = [one.name for one in PEERS]
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="PEER", help=", ".join(names))
    given = parser.parse_args()
    opts = Options(quick=given.quick, rounds=given.rounds or (1 if given.quick else 3))
    subjects = (*FLOORS, ONWARD, *[one for one in PEERS if one.name in given.only])
    environments = prepare(subjects, given.folder)
    report("compare", opts, [], **compare(subjects, environments, quick=opts.quick, rounds=opts.rounds))


if __name__ == "__main__":
    main()
