"""The resident memory of this process, as Linux tells it. Needs the standard library alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ("Memory", "memory_mb", "reset_peak")

_STATUS = Path("/proc/self/status")


class Memory(NamedTuple):
    """In MB."""

    now: float
    peak: float
    """Since the process began, or since `reset_peak()`."""


def memory_mb() -> Memory:
    """What the process holds. Raises `FileNotFoundError` where there is no `/proc`."""
    told = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", _STATUS.read_text("ascii"), re.MULTILINE))
    return Memory(int(told["VmRSS"]) * 1024 / 1e6, int(told["VmHWM"]) * 1024 / 1e6)


def reset_peak() -> None:
    """Let the peak begin at what is held now: imports rise above what they leave."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
