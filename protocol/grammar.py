"""The grammar of a run's events: what may follow what (R4), as tables.

One `Grammar` per run. `admit` says whether an event may come now and moves on; a run's log asks it before every
event, so that no service, however it fails, can put an event after the end, an end without a start, or two ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import attrs

from .events import (
    TERMINAL_EVENTS,
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    RunEvent,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
)

__all__ = ("CALL_TRANSITIONS", "RUN_TRANSITIONS", "CallState", "Grammar", "RunPhase")

RunPhase: TypeAlias = Literal["new", "running", "paused", "over"]
CallState: TypeAlias = Literal["requested", "started", "finished"]

RUN_TRANSITIONS: dict[RunPhase, dict[str, RunPhase]] = {
    "new": {"run_started": "running", "run_resumed": "running"},
    "running": {
        "run_paused": "paused",
        "run_resumed": "running",
        "run_finished": "over",
        "run_failed": "over",
        "run_cancelled": "over",
    },
    "paused": {"run_resumed": "running", "run_failed": "over", "run_cancelled": "over", "run_finished": "over"},
    "over": {},
}
"""The run itself. Every other event needs the phase `running`."""

CALL_TRANSITIONS: dict[tuple[CallState | None, str], CallState] = {
    (None, "tool_requested"): "requested",
    ("requested", "tool_started"): "started",
    ("requested", "tool_finished"): "finished",
    ("started", "tool_progress"): "started",
    ("started", "tool_finished"): "finished",
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
        kind = type(event)
        if kind is ToolRequested or kind is ToolStarted or kind is ToolFinished or kind is ToolProgress:
            return self.phase == "running" and self._admit_call(event)
        if kind is ContinuationRequired or kind is ApprovalRequired:
            return self.phase == "running" and self._open_request(event.request)  # type: ignore[attr-defined]
        if kind is ContinuationResolved or kind is ApprovalResolved:
            return self.phase == "running" and self._close_request(event.request)  # type: ignore[attr-defined]
        if kind is RunStarted or kind is RunPaused or kind is RunResumed or kind in TERMINAL_EVENTS:
            return self._admit_phase(event)
        return self.phase == "running"

    def restore(self, calls: Iterable[str], requests: Iterable[str]) -> None:
        """Take up a run that was written down: calls that were asked for and not begun, requests that wait."""
        self._calls.update(dict.fromkeys(calls, "requested"))
        self._requests.update(dict.fromkeys(requests))

    @property
    def open_calls(self) -> dict[str, bool]:
        """Ids of the calls that have no end yet; True where the body was entered."""
        return {call: state == "started" for call, state in self._calls.items()}

    @property
    def open_requests(self) -> tuple[str, ...]:
        """Ids of the requests that have no resolution yet."""
        return tuple(self._requests)

    def _admit_phase(self, event: RunEvent) -> bool:
        target = RUN_TRANSITIONS[self.phase].get(event.type)
        if target is None or (target == "over" and (self._calls or self._requests)):
            return False
        self.phase = target
        return True

    def _admit_call(self, event: RunEvent) -> bool:
        assert isinstance(event, (ToolRequested, ToolStarted, ToolFinished, ToolProgress))
        state = self._calls.get(event.call)
        target = CALL_TRANSITIONS.get((state, event.type))
        if target is None:
            return False
        if target == "finished":
            assert isinstance(event, ToolFinished)
            if event.started != (state == "started"):
                return False
            del self._calls[event.call]
        else:
            self._calls[event.call] = target
        return True

    def _open_request(self, request: str) -> bool:
        if request in self._requests:
            return False
        self._requests[request] = None
        return True

    def _close_request(self, request: str) -> bool:
        if request not in self._requests:
            return False
        del self._requests[request]
        return True
