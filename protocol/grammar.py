"""The grammar of a run's events: what may follow what (R4), as tables.

One `Grammar` per run. `admit` says whether an event may come now and moves on; a run's log asks it before every
event, so that no service, however it fails, can put an event after the end, an end without a start, or two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from .events import (
    ApprovalRequired,
    ApprovalResolved,
    ContextCompacted,
    ContinuationRequired,
    ContinuationResolved,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
)

__all__ = ("CALL_TRANSITIONS", "RUN_TRANSITIONS", "CallState", "Grammar", "RunPhase")

AnyCallEvent: TypeAlias = ToolRequested | ToolStarted | ToolProgress | ToolFinished
"""The events of one tool call."""
RunPhase: TypeAlias = Literal["new", "running", "paused", "over"]
"""Where a run stands, by its events."""
CallState: TypeAlias = Literal["requested", "started", "finished"]
"""Where a tool call stands, by its events."""

RUN_TRANSITIONS: dict[tuple[RunPhase, type[RunEvent]], RunPhase] = {
    ("new", RunStarted): "running",
    ("new", RunResumed): "running",
    ("running", RunPaused): "paused",
    ("running", RunResumed): "running",
    ("running", RunFinished): "over",
    ("running", RunFailed): "over",
    ("running", RunCancelled): "over",
    ("paused", RunResumed): "running",
    ("paused", RunFinished): "over",
    ("paused", RunFailed): "over",
    ("paused", RunCancelled): "over",
}
"""The run itself. Every other event needs the phase `running` or `paused`; the end needs all calls and requests closed."""

_GOING: frozenset[RunPhase] = frozenset({"running", "paused"})

CALL_TRANSITIONS: dict[type[RunEvent], dict[CallState | None, CallState]] = {
    ToolRequested: {None: "requested"},
    ToolStarted: {"requested": "started"},
    ToolProgress: {"started": "started"},
    ToolFinished: {"requested": "finished", "started": "finished"},
}
"""One call. `tool_finished` says `started` exactly where `tool_started` came before it."""


@attrs.define(eq=False)
class Grammar:
    """The state of one run's events."""

    phase: RunPhase = "new"
    _calls: dict[str, CallState] = attrs.field(factory=dict[str, CallState])
    _requests: dict[str, None] = attrs.field(factory=dict[str, None])

    def admit(self, event: RunEvent) -> bool:
        """Whether `event` may come now. If so, the state moves on; if not, it stays."""
        admit = _RULES.get(type(event))
        if admit is None:
            return self.phase in _GOING
        return admit(self, event)

    def restore(self, calls: Mapping[str, CallState], requests: Iterable[str], *, phase: RunPhase = "new") -> None:
        """Take up a run that was written down: the calls without an end, requests that wait."""
        self.phase = phase
        self._calls.update(calls)
        self._requests.update(dict.fromkeys(requests))

    @property
    def calls(self) -> Mapping[str, CallState]:
        """The calls that have no end yet, and where they stand."""
        return self._calls

    @property
    def open_calls(self) -> dict[str, bool]:
        """Ids of the calls that have no end yet; True where the body was entered."""
        return {call: state == "started" for call, state in self._calls.items()}

    @property
    def open_requests(self) -> tuple[str, ...]:
        """Ids of the requests that have no resolution yet."""
        return tuple(self._requests)

    def phase_event(self, event: RunEvent) -> bool:
        """Begin, pause, resume or end the run."""
        target = RUN_TRANSITIONS.get((self.phase, type(event)))
        if target is None or (target == "over" and (self._calls or self._requests)):
            return False
        self.phase = target
        return True

    def call_event(self, event: AnyCallEvent) -> bool:
        """Move one call on."""
        calls = self._calls
        state = calls.get(event.call)
        target = CALL_TRANSITIONS[type(event)].get(state)
        if target is None or self.phase not in _GOING:
            return False
        if target != "finished":
            calls[event.call] = target
            return True
        if isinstance(event, ToolFinished) and event.started == (state == "started"):
            del calls[event.call]
            return True
        return False

    def compaction(self, _event: ContextCompacted) -> bool:
        """Shorten the conversation: between exchanges, while nobody is asked."""
        return self.phase == "running" and not self._calls and not self._requests

    def question(self, event: ContinuationRequired | ApprovalRequired) -> bool:
        """Open a request."""
        if self.phase not in _GOING or event.request in self._requests:
            return False
        self._requests[event.request] = None
        return True

    def resolution(self, event: ContinuationResolved | ApprovalResolved) -> bool:
        """Close a request."""
        if self.phase not in _GOING or event.request not in self._requests:
            return False
        del self._requests[event.request]
        return True


_RULES: dict[type[RunEvent], Callable[[Grammar, Any], bool]] = {
    **dict.fromkeys({kind for _, kind in RUN_TRANSITIONS}, Grammar.phase_event),
    **dict.fromkeys(CALL_TRANSITIONS, Grammar.call_event),
    ContextCompacted: Grammar.compaction,
    **dict.fromkeys((ContinuationRequired, ApprovalRequired), Grammar.question),
    **dict.fromkeys((ContinuationResolved, ApprovalResolved), Grammar.resolution),
}
