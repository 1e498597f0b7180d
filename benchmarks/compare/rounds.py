"""What is measured, and the rounds: everybody in turn, each time in a new process of its own environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs

from benchmarks.harness.measure import Sample, Series
from benchmarks.harness.processes import started

from .environments import Environment, quiet
from .job import Done, Job
from .peers import ROOT, Subject

__all__ = ("BARE", "Measured", "jobs", "measure", "run_job")

BARE = "bare Python"
_BOOT = """
import sys, types
benchmarks = sys.modules["benchmarks"] = types.ModuleType("benchmarks")
benchmarks.__path__ = [sys.argv[1]]
from benchmarks.compare.worker import main
main(*sys.argv[2:])
"""
"""Of the checkout this package alone can be imported: Onward is what is installed."""

Environments: TypeAlias = Mapping[str, Environment]


@attrs.define
class Measured:
    """One job of one subject, or the start of one program: a measurement from each round."""

    series: Series = attrs.field(factory=Series)
    peaks_mb: list[float] = attrs.field(factory=list)


def jobs(*, quick: bool, turns: int, spread: str, at_once: str) -> dict[str, Job]:
    """Everything that is done in a process, by name. Short runs are repeated, so that all take about as long.

    `spread` and `at_once` are the addresses of model servers with a pause between two events, and without one.
    """
    http = {"http": Job(turns, base_url=spread), "http at once": Job(turns, base_url=at_once)}
    if quick:
        return {
            "iteration": Job(20),
            "short": Job(5, times=4),
            "long": Job(20),
            "parallel": Job(5, width=8),
            "many": Job(5, agents=5),
            **http,
        }
    return {
        "iteration": Job(200, times=4),
        "short": Job(50, times=16),
        "long": Job(800),
        "parallel": Job(100, width=8, times=2),
        "many": Job(20, agents=200),
        **http,
    }


def measure(
    subjects: Iterable[Subject], environments: Environments, work: Mapping[str, Job], rounds: int
) -> dict[tuple[str, str], Measured]:
    """So many rounds of everything by everybody, by what is done and the subject's name.

    The round before the first is short and not counted: it shows that all can do it. Raises `RuntimeError` for one that
    cannot, or that does it wrong.
    """
    subjects = list(subjects)
    for job in work.values():
        for subject in subjects:
            if job.kind in subject.does:
                run_job(subject, environments[subject.name], job.small)
    cases = _imports(subjects, environments)
    for case in cases.values():
        case()
    found: dict[tuple[str, str], Measured] = {}
    for number in range(rounds):
        for name, job in work.items():
            sys.stderr.write(f"round {number + 1} of {rounds}: {name}\n")
            for subject in subjects:
                if job.kind in subject.does:
                    done = run_job(subject, environments[subject.name], job)
                    one = found.setdefault((name, subject.name), Measured())
                    one.series.samples.append(Sample(done.wall, done.cpu))
                    one.peaks_mb.append(done.peak_mb)
        for key, case in cases.items():
            found.setdefault(key, Measured()).series.samples.append(case())
    return found


def run_job(subject: Subject, environment: Environment, job: Job) -> Done:
    """Do a job in a process of its own. Raises `RuntimeError` with what the process said if it fails."""
    command: list[str | Path] = [
        environment.python,
        "-P",
        "-c",
        _BOOT,
        ROOT / "benchmarks",
        subject.module,
        json.dumps(job._asdict()),
    ]
    done = subprocess.run(command, cwd=environment.folder, env=quiet(), check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{subject.name} cannot do {job}:\n{done.stderr[-2000:]}")
    return Done.decode(done.stdout.splitlines()[-1])


def _imports(subjects: list[Subject], environments: Environments) -> dict[tuple[str, str], Callable[[], Sample]]:
    """Starts of an interpreter: with nothing, with the library, and with its client besides."""
    cases: dict[tuple[str, str], Callable[[], Sample]] = {}
    for subject in subjects:
        if subject.imports:
            statements = {
                BARE: "pass",
                "import": subject.imports,
                "import with client": f"{subject.imports}; {subject.imports_client}",
            }
            for name, statement in statements.items():
                cases[name, subject.name] = _start(environments[subject.name], statement)
    return cases


def _start(environment: Environment, statement: str) -> Callable[[], Sample]:
    folder: Path = environment.folder
    return started(environment.python, "-P", "-c", statement, cwd=folder, env=quiet())
