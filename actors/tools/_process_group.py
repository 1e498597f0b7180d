"""A process group as its owner sees it: signalled, reaped, and asked whether anything of it still runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ("reap_orphans", "signal_group", "still_runs")

_PROCESSES = Path("/proc")


def signal_group(group: int, number: int) -> bool:
    """Send a signal, or with 0 only ask; False if there is nobody, or nobody that this process may signal.

    The group's number is that of the process that leads it. The kernel gives it to nobody else while the group has a
    member, and a number that has just become free comes last in turn.
    """
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def reap_orphans(group: int) -> None:
    """Reap those of the group that were given to this process, as to the first one of a container. Its leader is."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass


def still_runs(group: int) -> bool:
    """Whether the group has a member that has not ended. One that nobody has reaped yet has ended."""
    if not signal_group(group, 0):
        return False
    try:
        numbers = [int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit()]
    except OSError:  # no such list here; where there is none, orphans are reaped at once
        return True
    return any(_is_running_member(number, group) for number in numbers)


def _is_running_member(number: int, group: int) -> bool:
    with contextlib.suppress(OSError):  # it is gone by now
        if os.getpgid(number) == group:
            status = (_PROCESSES / str(number) / "stat").read_bytes()
            # The name stands in parentheses and may hold any; the state is the next letter.
            return status.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False
