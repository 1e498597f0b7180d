"""The question "may this call run, with exactly these arguments?", and what its answers come to (loop.md T8)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

import attrs

from .errors import InvalidDecision
from .events import ApprovalOutcome, ApprovalRequired, ApprovalResolved
from .text import clean

__all__ = ("ApprovalDecision", "ApprovalRequest", "ApprovalResponse", "approval_resolution", "approve", "deny", "edit")

ApprovalRequest: TypeAlias = ApprovalRequired
"""What an approval provider is asked: the very object that clients see as an event."""

ApprovalDecision: TypeAlias = Literal["approve", "deny", "timeout"]
"""What a provider may answer; a client may not say `timeout`."""

OFFERED: tuple[ApprovalDecision, ...] = ("approve", "deny")


@attrs.frozen
class ApprovalResponse:
    """The answer to "may this call run?". Raises `InvalidDecision` for a value of the wrong kind."""

    decision: ApprovalDecision
    reason: str | None = attrs.field(default=None, kw_only=True)
    """Of a denial: the model reads it."""
    arguments: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True)
    """With an approval: run with these in place of what was shown. They are validated like the model's own."""

    def __attrs_post_init__(self) -> None:
        if self.decision not in get_args(ApprovalDecision):
            raise InvalidDecision(f"decision must be approve, deny or timeout; it is {self.decision!r}")
        if self.reason is not None and not isinstance(self.reason, str):
            raise InvalidDecision(f"reason must be a string or None; it is {type(self.reason).__name__}")
        if self.arguments is not None:
            if not isinstance(cast("object", self.arguments), Mapping):
                raise InvalidDecision(f"arguments must be a JSON object or None; it is {self.arguments!r}")
            if self.decision != "approve":
                raise InvalidDecision("arguments go with an approval alone: a call that is not run has none")


def approve() -> ApprovalResponse:
    """Let the call run, with the arguments that were shown."""
    return ApprovalResponse("approve")


def deny(reason: str | None = None) -> ApprovalResponse:
    """Do not let the call run; the model reads that it was declined, and the reason."""
    return ApprovalResponse("deny", reason=reason)


def edit(arguments: Mapping[str, Any]) -> ApprovalResponse:
    """Let the call run, with other arguments."""
    return ApprovalResponse("approve", arguments=arguments)


def approval_resolution(request: ApprovalRequired, response: ApprovalResponse, by: str | None) -> ApprovalResolved:
    """What a response comes to."""
    outcome: ApprovalOutcome
    match response.decision:
        case "approve":
            outcome = "approved" if response.arguments is None else "edited"
        case "deny":
            outcome = "denied"
        case "timeout":
            outcome = "timed_out"
    return ApprovalResolved(
        run=request.run,
        agent_path=request.agent_path,
        request=request.request,
        call=request.call,
        outcome=outcome,
        by=None if outcome == "timed_out" else by,
        reason=None if response.reason is None else clean(response.reason),
        arguments=None if response.arguments is None else _copied(response.arguments),
    )


def _copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that whoever decided keeps no hand on, in texts that encode: what was decided is what runs."""
    try:
        return cast("dict[str, Any]", _cleaned(copy.deepcopy(dict(arguments))))
    except Exception as error:
        raise InvalidDecision(f"arguments must be JSON values: {type(error).__name__}") from error


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            pairs = cast("dict[Any, Any]", value)
            return {_cleaned(key): _cleaned(item) for key, item in pairs.items()}
        case list() | tuple():
            return [_cleaned(item) for item in cast("list[Any]", value)]
        case _:
            return value
