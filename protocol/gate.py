"""The gate's rules and its table of requests: pure, with the clock given from outside.

A request leaves `pending` exactly once, in one synchronous step (G8). The table is the agent's and outlives its runs,
so that late, repeated and misdirected decisions are answered and change nothing. What an answer sets free (the
event, the waiting run) goes through `commit`: at once in memory, once it is on disk where there is a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, TypeAlias, cast, get_args

import attrs

from .errors import InvalidDecision
from .events import ContinuationOutcome, ContinuationRequired, ContinuationResolved
from .text import clean

__all__ = (
    "REQUEST_TRANSITIONS",
    "Commit",
    "ContinuationDecision",
    "ContinuationRequest",
    "ContinuationResponse",
    "DecisionReply",
    "RequestTable",
    "resolution_of",
)

ContinuationRequest: TypeAlias = ContinuationRequired
"""What a continuation provider is asked: the very object that clients see as an event."""

ContinuationDecision: TypeAlias = Literal["approve", "decline", "timeout"]
"""What a provider may answer; a client may not say `timeout`."""

REQUEST_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset(get_args(ContinuationOutcome)),
    **{outcome: frozenset[str]() for outcome in get_args(ContinuationOutcome)},
}
"""Where a request may go from each state: out of `pending` once, and nowhere after."""

Commit: TypeAlias = Callable[[ContinuationResolved, Callable[[], None]], None]
"""Take a resolution and call the function when it is durable."""


def _at_once(_resolution: ContinuationResolved, release: Callable[[], None]) -> None:
    release()


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
    grant: int | None = attrs.field(default=None, kw_only=True)
    """How much more, in the limit's unit; `None`: as much as the limit. For tool iterations it sizes the next window."""

    def __attrs_post_init__(self) -> None:
        if self.decision not in get_args(ContinuationDecision):
            raise InvalidDecision(f"decision must be approve, decline or timeout; it is {self.decision!r}")
        for name in ("message", "tool_message"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidDecision(f"{name} must be a string or None; it is {type(value).__name__}")
        if self.grant is not None and (type(self.grant) is not int or self.grant < 1):
            raise InvalidDecision(f"grant must be an integer >= 1 or None; it is {self.grant!r}")
        if isinstance(self.discard_tool_calls, str) or not isinstance(
            cast("object", self.discard_tool_calls), (bool, Collection)
        ):
            raise InvalidDecision(
                f"discard_tool_calls must be True, False or a collection of call ids; it is {self.discard_tool_calls!r}"
            )


def resolution_of(
    request: ContinuationRequired, response: ContinuationResponse, by: str | None
) -> ContinuationResolved:
    """What a response comes to. Raises `InvalidDecision` for an id that is not pending."""
    pending = [call.id for call in request.tool_calls]
    discarded: tuple[str, ...] = ()
    granted: float | None = None
    outcome: ContinuationOutcome
    if response.decision == "approve":
        outcome = "approved"
        granted = response.grant if response.grant is not None else request.default_grant
        if response.discard_tool_calls is True:
            discarded = tuple(pending)
        elif response.discard_tool_calls:
            wanted = set(response.discard_tool_calls)
            unknown = sorted(str(call) for call in wanted - set(pending))
            if unknown:
                raise InvalidDecision(f"not pending: {', '.join(unknown)}; pending are {', '.join(pending) or 'none'}")
            discarded = tuple([call for call in pending if call in wanted])
    else:
        outcome = "declined" if response.decision == "decline" else "timed_out"
    return ContinuationResolved(
        run=request.run,
        agent_path=request.agent_path,
        request=request.request,
        outcome=outcome,
        by=None if outcome == "timed_out" else by,
        message=None if response.message is None else clean(response.message),
        tool_message=None if response.tool_message is None else clean(response.tool_message),
        granted=granted,
        discarded=discarded,
    )


@attrs.frozen
class DecisionReply:
    """What whoever decided is told."""

    status: Literal["accepted", "already_resolved", "not_found"]
    request: str
    resolution: ContinuationResolved | None = None
    """The resolution that stands: this decision's if accepted, an earlier one's if already resolved."""


@attrs.define(eq=False)
class _Entry:
    request: ContinuationRequired
    deadline: float | None
    on_close: Callable[[ContinuationResolved], None]
    resolution: ContinuationResolved | None = None


@attrs.define(eq=False)
class RequestTable:
    """All requests of an agent: those that are open, and the last `keep` that were closed."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    commit: Commit = _at_once
    keep: int = 1024
    _open: dict[str, _Entry] = attrs.field(factory=dict[str, _Entry])
    _closed: dict[str, ContinuationResolved] = attrs.field(factory=dict[str, ContinuationResolved])

    def open(
        self,
        request: ContinuationRequired,
        deadline: float | None,
        on_close: Callable[[ContinuationResolved], None],
    ) -> None:
        """Enter a request; `on_close` is called once, with its resolution, when that is durable."""
        self._open[request.request] = _Entry(request, deadline, on_close)

    def decide(self, request: str, response: ContinuationResponse, by: str | None) -> DecisionReply:
        """Decide in somebody's name. Raises `InvalidDecision` for what was not offered; the request stays open."""
        entry = self._open.get(request)
        if entry is None:
            resolution = self._closed.get(request)
            return DecisionReply("already_resolved" if resolution else "not_found", request, resolution)
        if response.decision not in entry.request.decisions:
            offered = ", ".join(entry.request.decisions)
            raise InvalidDecision(f"{response.decision} is not on offer for {request}: {offered}")
        resolution = resolution_of(entry.request, response, by)
        self._close(entry, resolution)
        return DecisionReply("accepted", request, resolution)

    def close(self, resolution: ContinuationResolved) -> bool:
        """Close a request with a resolution made elsewhere (a provider's, an expiry's); False if it is not open."""
        entry = self._open.get(resolution.request)
        if entry is None:
            return False
        self._close(entry, resolution)
        return True

    def end(self, request: str, outcome: ContinuationOutcome) -> ContinuationResolved | None:
        """Close a request because its run is over or its wait is cut; `None` if it is not open."""
        entry = self._open.get(request)
        if entry is None:
            return None
        asked = entry.request
        resolution = ContinuationResolved(
            run=asked.run, agent_path=asked.agent_path, request=request, outcome=outcome, by=None
        )
        self._close(entry, resolution)
        return resolution

    def expire(self, request: str) -> bool:
        """Close a request whose time is over, as its `on_timeout` says; False if it is not open."""
        entry = self._open.get(request)
        if entry is None:
            return False
        asked = entry.request
        approves = asked.on_timeout == "approve"
        resolution = ContinuationResolved(
            run=asked.run,
            agent_path=asked.agent_path,
            request=request,
            outcome="timed_out",
            by=None,
            effect="approved" if approves else None,
            granted=asked.default_grant if approves else None,
        )
        self._close(entry, resolution)
        return True

    def resolution(self, request: str) -> ContinuationResolved | None:
        """How a request was closed, if it was."""
        return self._closed.get(request)

    def pending(self) -> tuple[tuple[ContinuationRequired, float | None], ...]:
        """The open requests, each with the seconds it has left as of now (`None`: no deadline)."""
        now = self.clock()
        return tuple(
            (entry.request, None if entry.deadline is None else max(0.0, entry.deadline - now))
            for entry in self._open.values()
        )

    def _close(self, entry: _Entry, resolution: ContinuationResolved) -> None:
        if resolution.outcome not in REQUEST_TRANSITIONS["pending"]:
            raise InvalidDecision(f"{resolution.outcome!r} is no end of a request")
        del self._open[resolution.request]
        self._closed[resolution.request] = resolution
        while len(self._closed) > self.keep:
            del self._closed[next(iter(self._closed))]
        self.commit(resolution, lambda: entry.on_close(resolution))
