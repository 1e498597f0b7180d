"""Every event of `onward.v1`: one class each, named and shaped as on the wire.

A question and its event are one object (`ContinuationRequired` is what a continuation provider is given), and so are
a resolution and its event. Fields that are absent on the wire have a default here. Numbers (`seq`) are no part of an
event: they are given by the log that holds it.
"""

from __future__ import annotations

from ._base import (
    ErrorInfo,
    Event,
    PendingCall,
    RunEvent,
)
from ._ends import (
    TERMINAL_EVENTS,
    AgentFailed,
    AgentSpawned,
    AgentStopped,
    AgentWarned,
    RunCancelled,
    RunFailed,
    RunFinished,
)
from ._requests import (
    ApprovalOutcome,
    ApprovalRequired,
    ApprovalResolved,
    ContinuationOutcome,
    ContinuationRequired,
    ContinuationResolved,
    Finalizing,
    LimitReached,
    RunPaused,
    RunResumed,
)
from ._steps import (
    ContentDelta,
    ContextCompacted,
    HandedOff,
    HopFinished,
    HopStarted,
    ModelRetry,
    ReasoningDelta,
    Rollback,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCallDelta,
    UsageReport,
    Warned,
)
from ._tools import (
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
)
from ._union import EventUnion

__all__ = (
    "TERMINAL_EVENTS",
    "AgentFailed",
    "AgentSpawned",
    "AgentStopped",
    "AgentWarned",
    "ApprovalOutcome",
    "ApprovalRequired",
    "ApprovalResolved",
    "ContentDelta",
    "ContextCompacted",
    "ContinuationOutcome",
    "ContinuationRequired",
    "ContinuationResolved",
    "ErrorInfo",
    "Event",
    "EventUnion",
    "Finalizing",
    "HandedOff",
    "HopFinished",
    "HopStarted",
    "LimitReached",
    "MessageDelivered",
    "MessageDropped",
    "MessageQueued",
    "ModelRetry",
    "PendingCall",
    "ReasoningDelta",
    "Rollback",
    "RunCancelled",
    "RunEvent",
    "RunFailed",
    "RunFinished",
    "RunPaused",
    "RunResumed",
    "RunStarted",
    "StepFinished",
    "StepStarted",
    "ToolCallDelta",
    "ToolFinished",
    "ToolProgress",
    "ToolRequested",
    "ToolStarted",
    "UsageReport",
    "Warned",
)
