"""Limits, and the questions a run waits on."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ..limits import Counters, LimitState
from ..usage import Usage
from ._base import PendingCall, RunEvent

__all__ = (
    "ApprovalOutcome",
    "ApprovalRequired",
    "ApprovalResolved",
    "ContinuationOutcome",
    "ContinuationRequired",
    "ContinuationResolved",
    "Finalizing",
    "LimitReached",
    "RunPaused",
    "RunResumed",
)


class LimitReached(RunEvent, frozen=True, kw_only=True):
    """A limit changes the course: directly before `continuation_required`, `finalizing` or the terminal event."""

    limit: LimitState


class Finalizing(RunEvent, frozen=True, kw_only=True):
    """The next model call is the final one, with tools off."""

    limit: LimitState


ContinuationOutcome: TypeAlias = Literal["approved", "declined", "timed_out", "cancelled", "failed", "agent_ended"]
"""How a continuation request was closed."""


class ContinuationRequired(RunEvent, frozen=True, kw_only=True):
    """The question "may this go on?": what a continuation provider is given, and what clients see (G2)."""

    request: str
    """Unique in the process and across restarts."""
    limit: LimitState
    max_iterations: int | None
    """The window that was just filled; `None` where another limit asks."""
    total_iterations: int
    """Tool rounds over all windows."""
    tool_calls: tuple[PendingCall, ...]
    text: str
    """What the model said beside the calls."""
    usage: Usage
    cost: float | None
    elapsed_seconds: float
    expires_in_seconds: float | None
    decisions: tuple[str, ...]
    """What may be decided."""
    default_grant: float
    """What an approval without a grant gives, in the limit's unit."""
    max_grant: float | None
    """The most that a remote client may grant; `None`: no bound."""
    on_timeout: Literal["decline", "approve"] = "decline"
    digest: str = ""
    """Of all that a person sees: a decision that carries another one was made on a stale view."""


class ContinuationResolved(RunEvent, frozen=True, kw_only=True):
    """The one answer to a `continuation_required`."""

    request: str
    outcome: ContinuationOutcome
    by: str | None
    """Who decided; `None` for expiry, cancel and end."""
    message: str | None = None
    tool_message: str | None = None
    granted: float | None = None
    effect: Literal["approved"] | None = None
    """Set where an expiry counts as approval."""
    discarded: tuple[str, ...] = ()
    """Ids of the pending calls that are not run although the run goes on."""

    @property
    def goes_on(self) -> bool:
        """Whether the run may go on."""
        return self.outcome == "approved" or self.effect == "approved"


ApprovalOutcome: TypeAlias = Literal["approved", "edited", "denied", "timed_out", "cancelled", "failed", "agent_ended"]
"""How an approval request was closed."""


class ApprovalRequired(RunEvent, frozen=True, kw_only=True):
    """The question "may this call run, with exactly these arguments?": what an approval provider is given (T8)."""

    request: str
    """Unique in the process and across restarts."""
    call: str
    name: str
    arguments: dict[str, Any]
    """Validated; what is shown is what runs."""
    expires_in_seconds: float | None
    digest: str
    """Of all that a person sees: a decision that carries another one was made on a stale view."""


class ApprovalResolved(RunEvent, frozen=True, kw_only=True):
    """The one answer to an `approval_required`."""

    request: str
    call: str
    outcome: ApprovalOutcome
    by: str | None
    reason: str | None = None
    arguments: dict[str, Any] | None = None
    """What runs in place of what was shown, if the call was edited."""

    @property
    def goes_on(self) -> bool:
        """Whether the call may run."""
        return self.outcome in {"approved", "edited"}


class RunPaused(RunEvent, frozen=True, kw_only=True):
    """The run waits for its caller to give the results of these calls: no end."""

    request: str
    calls: tuple[PendingCall, ...]


class RunResumed(RunEvent, frozen=True, kw_only=True):
    """A paused or restored run goes on, with these counters."""

    counters: Counters
