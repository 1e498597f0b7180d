"""The table of an agent's requests: pure, with the clock given from outside.

A request (the gate's, or for a call's approval) leaves `pending` exactly once, in one synchronous step (G8). The table is
the agent's and outlives its runs, so that late, repeated and misdirected decisions are answered and change nothing. What
an answer sets free (the event, the waiting run) goes through `commit`: at once in memory, once it is on disk where there
is a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args, overload

import attrs

from .approval import OFFERED, ApprovalResponse, approval_resolution
from .errors import InvalidDecision
from .events import ApprovalOutcome, ApprovalRequired, ApprovalResolved, ContinuationRequired, ContinuationResolved
from .gate import ContinuationResponse, continuation_resolution

__all__ = (
    "APPROVAL_TRANSITIONS",
    "CONTINUATION_TRANSITIONS",
    "Commit",
    "DecisionReply",
    "Ended",
    "Request",
    "RequestTable",
    "Resolution",
    "Response",
    "resolution_of",
)

Request: TypeAlias = ContinuationRequired | ApprovalRequired
"""A question that waits for a decision."""
Response: TypeAlias = ContinuationResponse | ApprovalResponse
"""A decision."""
Resolution: TypeAlias = ContinuationResolved | ApprovalResolved
"""How a request was closed."""
Ended: TypeAlias = Literal["cancelled", "failed", "agent_ended"]
"""How a request is closed that nobody decides any more."""

CONTINUATION_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"approved", "declined", "timed_out", *get_args(Ended)}),
    **{outcome: frozenset[str]() for outcome in ("approved", "declined", "timed_out", *get_args(Ended))},
}
"""Where the gate's request may go from each state: out of `pending` once, and nowhere after."""
APPROVAL_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset(get_args(ApprovalOutcome)),
    **{outcome: frozenset[str]() for outcome in get_args(ApprovalOutcome)},
}
"""Where an approval's request may go from each state."""

Commit: TypeAlias = Callable[[Resolution, Callable[[], None]], None]
"""Take a resolution and call the function when it is durable."""


def _at_once(_resolution: Resolution, release: Callable[[], None]) -> None:
    release()


def _any_arguments(_arguments: Mapping[str, Any]) -> None:
    return


@attrs.frozen
class DecisionReply:
    """What whoever decided is told."""

    status: Literal["accepted", "already_resolved", "not_found"]
    request: str
    resolution: Resolution | None = None
    """The resolution that stands: this decision's if accepted, an earlier one's if already resolved."""


@overload
def resolution_of(
    request: ContinuationRequired, response: ContinuationResponse, by: str | None
) -> ContinuationResolved: ...
@overload
def resolution_of(request: ApprovalRequired, response: ApprovalResponse, by: str | None) -> ApprovalResolved: ...
@overload
def resolution_of(request: Request, response: Response, by: str | None) -> Resolution: ...
def resolution_of(request: Request, response: Response, by: str | None) -> Resolution:
    """What a response comes to. Raises `InvalidDecision` for one of the other kind, or for an id that is not pending."""
    if isinstance(request, ContinuationRequired):
        if isinstance(response, ContinuationResponse):
            return continuation_resolution(request, response, by)
        raise InvalidDecision(f"{request.request} asks whether the run may go on: answer with a ContinuationResponse")
    if isinstance(response, ApprovalResponse):
        return approval_resolution(request, response, by)
    raise InvalidDecision(f"{request.request} asks for the approval of a call: answer with an ApprovalResponse")


def _ended(request: Request, outcome: Ended) -> Resolution:
    if isinstance(request, ContinuationRequired):
        return ContinuationResolved(
            run=request.run, agent_path=request.agent_path, request=request.request, outcome=outcome, by=None
        )
    return ApprovalResolved(
        run=request.run,
        agent_path=request.agent_path,
        request=request.request,
        call=request.call,
        outcome=outcome,
        by=None,
    )


def _expired(request: Request) -> Resolution:
    if isinstance(request, ContinuationRequired):
        return continuation_resolution(request, ContinuationResponse("timeout"), None)
    return approval_resolution(request, ApprovalResponse("timeout"), None)


def _as_allowed(request: Request, response: Response) -> Response:
    """A client's response: of a grant, no more than the request offers (G3)."""
    if isinstance(request, ContinuationRequired) and isinstance(response, ContinuationResponse):
        granted, most = response.grant, request.max_grant
        if granted is not None and most is not None and granted > most:
            return attrs.evolve(response, grant=most)
    return response


@attrs.define(eq=False)
class _Entry:
    request: Request
    deadline: float | None
    on_close: Callable[[Any], None]
    check_arguments: Callable[[Mapping[str, Any]], object]


@attrs.define(eq=False)
class RequestTable:
    """All requests of an agent: those that are open, and the last `keep` that were closed."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    commit: Commit = _at_once
    keep: int = 1024
    _open: dict[str, _Entry] = attrs.field(factory=dict[str, _Entry])
    _closed: dict[str, Resolution] = attrs.field(factory=dict[str, Resolution])
    _numbers: dict[str, int] = attrs.field(factory=dict[str, int])

    def open(
        self,
        request: Request,
        deadline: float | None,
        on_close: Callable[[Any], None],
        *,
        check_arguments: Callable[[Mapping[str, Any]], object] = _any_arguments,
    ) -> float | None:
        """Enter a request; `on_close` is called once, with its resolution, when that is durable.

        `check_arguments` raises `InvalidDecision` for edited arguments that the tool would not take. Returns the deadline
        that holds: a request that is open already, as one that was written down is, keeps the one it has.
        """
        before = self._open.get(request.request)
        if before is not None:
            deadline = before.deadline
        self._open[request.request] = _Entry(request, deadline, on_close, check_arguments)
        return deadline

    @property
    def closed(self) -> tuple[Resolution, ...]:
        """How requests were closed, oldest first."""
        return tuple(self._closed.values())

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the events that told it, by request."""
        return dict(self._numbers)

    def take_up(self, closed: Iterable[Resolution], numbers: Mapping[str, int]) -> None:
        """Know of requests that were closed before the process began, and where the log tells it."""
        self._closed.update((resolution.request, resolution) for resolution in closed)
        self._numbers.update(numbers)
        self._forget()

    def decide(self, request: str, response: Response, by: str | None) -> DecisionReply:
        """Decide in somebody's name; a grant is cut to what the request allows.

        Raises `InvalidDecision` for what was not offered; the request stays open.
        """
        entry = self._open.get(request)
        if entry is None:
            resolution = self._closed.get(request)
            return DecisionReply("already_resolved" if resolution else "not_found", request, resolution)
        asked = entry.request
        offered = asked.decisions if isinstance(asked, ContinuationRequired) else OFFERED
        resolution = resolution_of(asked, _as_allowed(asked, response), by)
        if response.decision not in offered:
            raise InvalidDecision(f"{response.decision} is not on offer for {request}: {', '.join(offered)}")
        self._check(entry, resolution)
        self._close(entry, resolution)
        return DecisionReply("accepted", request, resolution)

    def close(self, resolution: Resolution) -> bool:
        """Close a request with its provider's resolution; False if it is not open. Raises `InvalidDecision`."""
        entry = self._open.get(resolution.request)
        if entry is None:
            return False
        self._check(entry, resolution)
        self._close(entry, resolution)
        return True

    def end(self, request: str, outcome: Ended) -> Resolution | None:
        """Close a request because its run is over or its wait is cut; `None` if it is not open."""
        entry = self._open.get(request)
        if entry is None:
            return None
        resolution = _ended(entry.request, outcome)
        self._close(entry, resolution)
        return resolution

    def expire(self, request: str) -> bool:
        """Close a request whose time is over, as its `on_timeout` says; False if it is not open."""
        entry = self._open.get(request)
        if entry is None:
            return False
        self._close(entry, _expired(entry.request))
        return True

    def resolution(self, request: str) -> Resolution | None:
        """How a request was closed, if it was."""
        return self._closed.get(request)

    def note_number(self, request: str, number: int) -> None:
        """Keep the number that the event of a resolution has in the log."""
        if request in self._closed:
            self._numbers[request] = number

    def number(self, request: str) -> int | None:
        """The number of the event that closed a request; `None` while it is not out."""
        return self._numbers.get(request)

    def find(self, request: str) -> Request | None:
        """An open request by its id."""
        entry = self._open.get(request)
        return None if entry is None else entry.request

    def pending(self) -> tuple[tuple[Request, float | None], ...]:
        """The open requests, each with the seconds it has left as of now (`None`: no deadline)."""
        now = self.clock()
        return tuple(
            (entry.request, None if entry.deadline is None else max(0.0, entry.deadline - now))
            for entry in self._open.values()
        )

    def _check(self, entry: _Entry, resolution: Resolution) -> None:
        if isinstance(resolution, ApprovalResolved) and resolution.arguments is not None:
            entry.check_arguments(resolution.arguments)

    def _close(self, entry: _Entry, resolution: Resolution) -> None:
        table = CONTINUATION_TRANSITIONS if isinstance(resolution, ContinuationResolved) else APPROVAL_TRANSITIONS
        if resolution.outcome not in table["pending"]:
            raise InvalidDecision(f"{resolution.outcome!r} is no end of a request")
        del self._open[resolution.request]
        self._closed[resolution.request] = resolution
        self._forget()
        self.commit(resolution, lambda: entry.on_close(resolution))

    def _forget(self) -> None:
        while len(self._closed) > self.keep:
            oldest = next(iter(self._closed))
            del self._closed[oldest]
            self._numbers.pop(oldest, None)
