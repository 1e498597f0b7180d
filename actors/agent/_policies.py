"""Continuation policies ready to use (G11): what answers the gate when nobody sits at it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import attrs
import msgspec

from protocol.approval import ApprovalRequest, ApprovalResponse
from protocol.errors import SpecError
from protocol.gate import ContinuationRequest, ContinuationResponse

__all__ = (
    "Approval",
    "ApprovalFunction",
    "Continuation",
    "ContinuationFunction",
    "Remote",
    "always",
    "never",
    "remote",
    "up_to",
    "within",
)

ContinuationFunction: TypeAlias = Callable[
    [ContinuationRequest], ContinuationResponse | Awaitable[ContinuationResponse]
]
"""Asked at the gate. A plain function must not block: one that waits for somebody is async."""


@attrs.frozen(kw_only=True)
class Remote:
    """Whoever calls `run.decide(...)` or `runtime.decide(...)`; made by `remote()`."""

    timeout_seconds: float | msgspec.UnsetType | None = msgspec.UNSET
    on_timeout: Literal["decline", "approve"] = "decline"


Continuation: TypeAlias = ContinuationFunction | Remote
"""What may stand in `AgentSpec(continuation=)`."""

ApprovalFunction: TypeAlias = Callable[[ApprovalRequest], ApprovalResponse | Awaitable[ApprovalResponse]]
"""Asked before a call that needs approval runs. A plain function must not block."""
Approval: TypeAlias = ApprovalFunction | Remote
"""What may stand in `AgentSpec(approval=)`."""


def remote(
    *,
    timeout_seconds: float | msgspec.UnsetType | None = msgspec.UNSET,
    on_timeout: Literal["decline", "approve"] = "decline",
) -> Remote:
    """Let the decision come from outside: it is made by `run.decide()` or `runtime.decide()`.

    `timeout_seconds` overrides the agent's `continuation_timeout_seconds`; `None` waits as long as the run lives.
    """
    if timeout_seconds is not None and not isinstance(timeout_seconds, msgspec.UnsetType):
        _check_bound("remote(timeout_seconds=)", timeout_seconds)
    if on_timeout not in {"decline", "approve"}:
        raise SpecError(f"remote(on_timeout=) must be 'decline' or 'approve'; it is {on_timeout!r}")
    return Remote(timeout_seconds=timeout_seconds, on_timeout=on_timeout)


def _check_bound(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise SpecError(f"{name} must be a number above 0, or None for no bound; it is {value!r}")


def always() -> ContinuationFunction:
    """Approve every time: the limit becomes a place to look, not a bound. Set `max_llm_calls` beside it."""

    def policy_always(_request: ContinuationRequest) -> ContinuationResponse:
        return ContinuationResponse("approve")

    return policy_always


def never(message: str | None = None, *, tool_message: str | None = None) -> ContinuationFunction:
    """Decline every time: the model reads that its calls were not run and gives its final answer."""
    response = ContinuationResponse("decline", message=message, tool_message=tool_message)

    def policy_never(_request: ContinuationRequest) -> ContinuationResponse:
        return response

    return policy_never


def up_to(n: int) -> ContinuationFunction:
    """Approve until `n` tool rounds have been made in all; the last grant is cut so that there are never more."""
    if type(n) is not int or n < 1:
        raise SpecError(f"up_to(n): n must be an integer >= 1; it is {n!r}")

    def policy_up_to(request: ContinuationRequest) -> ContinuationResponse:
        left = n - request.total_iterations
        if left < 1:
            return ContinuationResponse("decline")
        return ContinuationResponse("approve", grant=min(int(request.default_grant), left))

    return policy_up_to


def within(
    *, cost: float | None = None, tokens: int | None = None, seconds: float | None = None
) -> ContinuationFunction:
    """Approve while the run has used less than all that is given; what is unknown counts as used up."""
    if cost is None and tokens is None and seconds is None:
        raise SpecError("within() needs at least one of cost=, tokens= and seconds=")
    for name, bound in (("cost", cost), ("tokens", tokens), ("seconds", seconds)):
        if bound is not None:
            _check_bound(f"within({name}=)", bound)

    def policy_within(request: ContinuationRequest) -> ContinuationResponse:
        known = request.usage.complete
        inside = (
            (cost is None or (request.cost is not None and request.cost < cost))
            and (tokens is None or (known and request.usage.total_tokens < tokens))
            and (seconds is None or request.elapsed_seconds < seconds)
        )
        return ContinuationResponse("approve" if inside else "decline")

    return policy_within
