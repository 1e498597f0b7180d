"""Requests as the gate's tests need them."""

from __future__ import annotations

from typing import Any

from protocol.events import ApprovalRequired, ContinuationRequired, PendingCall
from protocol.limits import LimitState
from protocol.usage import NO_USAGE


def question(request: str = "q1", *calls: str, **changes: Any) -> ContinuationRequired:
    """A question about a window of 2, with these pending calls."""
    fields: dict[str, Any] = {
        "run": "r1",
        "request": request,
        "limit": LimitState("tool_iterations", 2, 2),
        "max_iterations": 2,
        "total_iterations": 2,
        "tool_calls": tuple(PendingCall(call, "add", {}) for call in calls),
        "text": "",
        "usage": NO_USAGE,
        "cost": None,
        "elapsed_seconds": 1.0,
        "expires_in_seconds": 60.0,
        "decisions": ("approve", "decline"),
        "default_grant": 2,
        "max_grant": 2,
    }
    return ContinuationRequired(**(fields | changes))


def approval_question(request: str = "q1", call: str = "c1", **changes: Any) -> ApprovalRequired:
    """A question about one call of `add`."""
    fields: dict[str, Any] = {
        "run": "r1",
        "request": request,
        "call": call,
        "name": "add",
        "arguments": {"a": 1},
        "expires_in_seconds": 60.0,
        "digest": "d",
    }
    return ApprovalRequired(**(fields | changes))
