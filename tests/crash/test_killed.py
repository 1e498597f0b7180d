"""A real process, killed with SIGKILL at every commit and at steps of its scheduler, and a second one on the same file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lives(scenario: str, folder: Path, every: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.crash.killed", scenario, str(folder), str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)

    assert (0, "") == (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def essence(life: dict[str, Any]) -> dict[str, Any]:
    return {name: life["told"][name] for name in ("text", "finish", "rounds", "bodies", "messages")}


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("scenario", ["gate", "in order", "summarised"])
def test_it_comes_to_the_same_end(scenario: str, tmp_path: Path) -> None:
    """Whenever it is killed: the run ends as it would have, no body is entered twice, no call is lost count of."""
    undisturbed, *others = lives(scenario, tmp_path, every=37)
    died = [life for life in others if life["died"]]

    assert len(died) > 20
    for life in others:
        where = (life["kind"], life["number"])

        assert [] == life["faults"], where
        assert 0 == life["twice"], where
        if "over" in life["told"]:
            continue
        assert essence(undisturbed) == essence(life), where
        assert life["sent"] <= life["told"]["llm_calls"], where
        assert 0 == life["told"]["refused"], where
