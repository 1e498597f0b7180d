"""The gate's question, "may this go on?", and what its answers come to (loop.md G2, G3)."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal, TypeAlias, cast, get_args

import attrs

from .errors import InvalidDecision
from .events import ContinuationOutcome, ContinuationRequired, ContinuationResolved
from .text import clean

__all__ = ("ContinuationDecision", "ContinuationRequest", "ContinuationResponse", "continuation_resolution")

ContinuationRequest: TypeAlias = ContinuationRequired
"""What a continuation provider is asked: the very object that clients see as an event."""

ContinuationDecision: TypeAlias = Literal["approve", "decline", "timeout"]
"""What a provider may answer; a client may not say `timeout`."""

_FRACTIONAL = {"cost", "wall_clock"}


@attrs.frozen
class ContinuationResponse:
    """The answer to "may this go on?" (G3). Raises `InvalidDecision` for a value of the wrong kind."""

    decision: ContinuationDecision
    message: str | None = attrs.field(default=None, kw_only=True)
    """Approve: steering for the model, after the results. Decline: the reason, in the system notification."""
    discard_tool_calls: bool | Collection[str] = attrs.field(default=False, kw_only=True)
    """Approve without running the pending calls: all of them, or those with these ids."""
    tool_message: str | None = attrs.field(default=None, kw_only=True)
    """The text of the result of a call that is not run."""
    grant: float | None = attrs.field(default=None, kw_only=True)
    """How much more, in the limit's unit; `None`: as much as the limit. For tool iterations it sizes the next window."""

    def __attrs_post_init__(self) -> None:
        if self.decision not in get_args(ContinuationDecision):
            raise InvalidDecision(f"decision must be approve, decline or timeout; it is {self.decision!r}")
        for name in ("message", "tool_message"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidDecision(f"{name} must be a string or None; it is {type(value).__name__}")
        grant = self.grant
        if grant is not None and (
            isinstance(grant, bool) or not isinstance(grant, (int, float)) or not 0 < grant < math.inf
        ):
            raise InvalidDecision(f"grant must be a number above 0 or None; it is {grant!r}")
        if isinstance(self.discard_tool_calls, str) or not isinstance(
            cast("object", self.discard_tool_calls), (bool, Collection)
        ):
            raise InvalidDecision(
                f"discard_tool_calls must be True, False or a collection of call ids; it is {self.discard_tool_calls!r}"
            )


def continuation_resolution(
    request: ContinuationRequired, response: ContinuationResponse, by: str | None
) -> ContinuationResolved:
    """What a response comes to. Raises `InvalidDecision` for an id that is not pending."""
    pending = [call.id for call in request.tool_calls]
    discarded: tuple[str, ...] = ()
    granted: float | None = None
    effect: Literal["approved"] | None = None
    outcome: ContinuationOutcome
    if response.decision == "approve":
        outcome = "approved"
        granted = response.grant if response.grant is not None else request.default_grant
        if request.limit.name not in _FRACTIONAL and granted != int(granted):
            raise InvalidDecision(f"grant must be an integer >= 1 for {request.limit.name}; it is {granted!r}")
        if response.discard_tool_calls is True:
            discarded = tuple(pending)
        elif response.discard_tool_calls:
            wanted = set(response.discard_tool_calls)
            unknown = sorted(str(call) for call in wanted - set(pending))
            if unknown:
                raise InvalidDecision(f"not pending: {', '.join(unknown)}; pending are {', '.join(pending) or 'none'}")
            discarded = tuple([call for call in pending if call in wanted])
    elif response.decision == "decline":
        outcome = "declined"
    else:
        outcome = "timed_out"
        if request.on_timeout == "approve":
            effect, granted = "approved", request.default_grant
    return ContinuationResolved(
        run=request.run,
        agent_path=request.agent_path,
        request=request.request,
        outcome=outcome,
        by=None if outcome == "timed_out" else by,
        message=None if response.message is None else clean(response.message),
        tool_message=None if response.tool_message is None else clean(response.tool_message),
        granted=granted,
        effect=effect,
        discarded=discarded,
    )
