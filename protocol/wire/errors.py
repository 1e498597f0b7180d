"""What an application error carries beside its message."""

from __future__ import annotations

import msgspec

from ..events import ApprovalOutcome, ContinuationOutcome
from .words import ErrorWord

__all__ = ("ClosedRequest", "ErrorData")


class ClosedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a request was closed; the same as its event says."""

    outcome: ContinuationOutcome | ApprovalOutcome
    by: str | None
    """Who decided; `null` for expiry, cancel and end."""
    seq: int | None
    """The number of the event; `null` where the log no longer holds it."""


class ErrorData(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The `data` of an application error."""

    code: ErrorWord
    """What went wrong: a client acts on this word, never on the message."""
    retryable: bool
    """Whether the same command may be accepted later."""
    retry_after_ms: int | None = None
    """With `overloaded`: how long to wait."""
    resolution: ClosedRequest | None = None
    """With `already_resolved`."""
