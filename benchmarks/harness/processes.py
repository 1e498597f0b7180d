"""Programs that are measured from outside."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from .clock import Sample, stopwatch

__all__ = ("started",)


def started(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Callable[[], Sample]:
    """Start a program and wait for its end; the CPU time is its own. Raises `CalledProcessError` if it fails."""

    def case() -> Sample:
        before = _children_seconds()
        elapsed = stopwatch()
        subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)
        return Sample(elapsed().wall, _children_seconds() - before)

    return case


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
