"""The programs under examples/ run, offline, and say what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_policy_steers_approves_and_declines_at_its_bound(tmp_path: Path) -> None:
    """The gate is asked at every full window: one steering approval, one plain one, one decline with an answer."""
    for number in range(60):
        (tmp_path / f"part{number:02}.py").write_text("x = 1\n")
        (tmp_path / f"note{number:02}.txt").write_text("x\n")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "policy_gate.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()

    assert ["approved: only *.py", "approved: no message", "declined: 6 rounds are enough"] == lines[:3]
    assert lines[-1].startswith("answered: True, rounds: 6, limit: LimitState(name='tool_iterations'")
    assert "" == done.stderr
