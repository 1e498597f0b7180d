"""A real process, killed with SIGKILL around its commits and at the steps of its scheduler, and the next one on the same file.

`ONWARD_SWEEP=full` kills it at every step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .lives import SCENARIOS

FULL = os.environ.get("ONWARD_SWEEP") == "full"
ROOT = Path(__file__).resolve().parents[2]
NAMES = [scenario.name for scenario in SCENARIOS]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, where there is such a place: a killed process loses nothing there either, and a sync costs nothing."""
    shared = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        yield Path(name)


def lives(scenario: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.crash.killed", scenario, str(folder), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600)

    assert (0, "") == (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def essence(scenario: str, life: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on where the process died; how far a run comes that is cancelled does."""
    names = ("finish",) if scenario == "cancelled" else ("text", "finish", "rounds", "bodies", "messages")
    return {name: life["told"][name] for name in names}


def check(scenario: str, undisturbed: dict[str, Any], others: list[dict[str, Any]]) -> None:
    for life in (undisturbed, *others):
        where = scenario, life["where"]

        assert [] == life["faults"], where
        assert 0 == life["twice"], where
        assert "crashed" not in life["told"], where
        assert (None, 0) == (life["told"]["fault"], life["told"]["behind"]), where
        if "over" in life["told"]:
            continue
        assert essence(scenario, undisturbed) == essence(scenario, life), where
        assert life["sent"] <= life["told"]["llm_calls"], where
        assert (0, 0, 0) == (life["told"]["refused"], life["told"]["held"], life["told"]["open"]), where


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("scenario", NAMES)
def test_it_comes_to_the_same_end(scenario: str, folder: Path) -> None:
    """Whenever it is killed: the run ends as it would have, nothing is done twice, and a client misses nothing."""
    undisturbed, *others = lives(scenario, folder, "1" if FULL else "89", "virtual", "process")

    assert sum(life["died"] for life in others) > 5
    check(scenario, undisturbed, others)


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("scenario", NAMES if FULL else ["gate"])
def test_with_a_thread_that_writes(scenario: str, tmp_path: Path) -> None:
    """So it is in real time, where the journal's thread writes while the run goes on, and each commit waits for the disk."""
    undisturbed, *others = lives(scenario, tmp_path, "11" if FULL else "151", "real", "power")

    assert sum(life["died"] for life in others) > 5
    check(scenario, undisturbed, others)
