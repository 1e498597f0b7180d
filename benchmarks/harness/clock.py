"""One measurement. Needs the standard library alone, for it is made in the environments of others too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ("Sample", "stopwatch", "timed")


class Sample(NamedTuple):
    """One measurement, in seconds."""

    wall: float
    cpu: float


def stopwatch() -> Callable[[], Sample]:
    """Begin to measure; call what it returns to know how long it was."""
    cpu, wall = time.process_time(), time.perf_counter()
    return lambda: Sample(time.perf_counter() - wall, time.process_time() - cpu)


def timed(fn: Callable[[], object]) -> Sample:
    """Run `fn` once, with the garbage of whatever came before already collected."""
    gc.collect()
    elapsed = stopwatch()
    fn()
    return elapsed()
