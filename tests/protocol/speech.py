"""Events of one run, in few words."""

from __future__ import annotations

from typing import Any

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContentDelta,
    ContinuationResolved,
    ErrorInfo,
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
from protocol.limits import Counters
from protocol.result import RunSummary
from protocol.usage import NO_USAGE

from .questions import question

SUMMARY = RunSummary(
    text="",
    answered=False,
    finish_reason="stop",
    stopped_by="model",
    stop_reason=None,
    limit=None,
    finalized=None,
    usage=NO_USAGE,
    context_tokens=None,
    cost=None,
    counters=Counters(),
    elapsed_seconds=0.0,
)


def said(kind: str, about: str = "") -> RunEvent:
    """The event of this kind, about this call or request."""
    started = kind == "finished entered"
    made: dict[str, Any] = {
        "begin": lambda: RunStarted(run="r1", agent="a", model="m", prompt="go"),
        "pause": lambda: RunPaused(run="r1", request="p", calls=()),
        "resume": lambda: RunResumed(run="r1", counters=Counters()),
        "finish": lambda: RunFinished(run="r1", summary=SUMMARY),
        "fail": lambda: RunFailed(run="r1", error=ErrorInfo("x", "y"), summary=SUMMARY),
        "cancel": lambda: RunCancelled(run="r1", reason="enough", summary=SUMMARY),
        "delta": lambda: ContentDelta(run="r1", message="m", text="t"),
        "requested": lambda: ToolRequested(run="r1", call=about, name="add", arguments={}),
        "started": lambda: ToolStarted(run="r1", call=about, name="add"),
        "progress": lambda: ToolProgress(run="r1", call=about, text="half"),
        "finished entered": lambda: _finished(about, started),
        "finished not entered": lambda: _finished(about, started),
        "asked": lambda: question(about),
        "answered": lambda: ContinuationResolved(run="r1", request=about, outcome="approved", by="me"),
        "approval asked": lambda: ApprovalRequired(
            run="r1", request=about, call="c", name="add", arguments={}, expires_in_seconds=None, digest=""
        ),
        "approval answered": lambda: ApprovalResolved(run="r1", request=about, call="c", outcome="approved", by="me"),
    }
    event: RunEvent = made[kind]()
    return event


def _finished(call: str, started: bool) -> ToolFinished:
    return ToolFinished(run="r1", call=call, name="add", status="ok", started=started, text="1")


KINDS = (
    "begin",
    "pause",
    "resume",
    "finish",
    "fail",
    "cancel",
    "delta",
    "requested",
    "started",
    "progress",
    "finished entered",
    "finished not entered",
    "asked",
    "answered",
    "approval asked",
    "approval answered",
)
