"""Exit statuses, and which one a run comes to."""

from __future__ import annotations

from protocol.errors import RunCancelledError, RunError
from protocol.result import RunResult, RunSummary

__all__ = ("ANSWERED", "FAILED", "INTERRUPTED", "STOPPED", "WRONG_USE", "status_of")

ANSWERED = 0
FAILED = 1
"""Failed, cut off, blocked or empty."""
WRONG_USE = 2
STOPPED = 3
"""A limit or a condition ended the run without an answer."""
INTERRUPTED = 130


def status_of(end: RunResult | RunSummary | RunError) -> int:
    """The exit status of a run that came to this end."""
    if isinstance(end, RunCancelledError):
        return INTERRUPTED
    if isinstance(end, RunError):
        return FAILED
    if end.answered:
        return ANSWERED
    match end.stopped_by:
        case "caller":
            return INTERRUPTED
        case "model" | "failure" | "cancel":
            return FAILED
        case _:
            return STOPPED
