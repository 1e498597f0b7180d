"""All events as one type."""

from __future__ import annotations

from typing import TypeAlias

from ._ends import (
    AgentFailed,
    AgentSpawned,
    AgentStopped,
    AgentWarned,
    RunCancelled,
    RunFailed,
    RunFinished,
)
from ._requests import (
    ApprovalRequired,
    ApprovalResolved,
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

__all__ = ("EventUnion",)

EventUnion: TypeAlias = (
    RunStarted
    | StepStarted
    | ContentDelta
    | HandedOff
    | ContextCompacted
    | ReasoningDelta
    | ToolCallDelta
    | ToolRequested
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | HopStarted
    | HopFinished
    | Rollback
    | ModelRetry
    | Warned
    | StepFinished
    | UsageReport
    | MessageQueued
    | MessageDelivered
    | MessageDropped
    | ContinuationRequired
    | ContinuationResolved
    | ApprovalRequired
    | ApprovalResolved
    | LimitReached
    | Finalizing
    | RunPaused
    | RunResumed
    | AgentSpawned
    | AgentFailed
    | AgentStopped
    | AgentWarned
    | RunFinished
    | RunFailed
    | RunCancelled
)
"""All events, as one tagged union: what a decoder is made for."""
