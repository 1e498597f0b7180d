"""Every event of `onward.v1`: one class each, named and shaped as on the wire.

A question and its event are one object (`ContinuationRequired` is what a continuation provider is given), and so are
a resolution and its event. Fields that are absent on the wire have a default here. Numbers (`seq`) are no part of an
event: they are given by the log that holds it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from .limits import Counters, LimitState
from .result import RunSummary
from .turns import ToolStatus
from .usage import Usage

__all__ = (
    "TERMINAL_EVENTS",
    "AgentFailed",
    "AgentSpawned",
    "AgentStopped",
    "ApprovalOutcome",
    "ApprovalRequired",
    "ApprovalResolved",
    "ContentDelta",
    "ContinuationOutcome",
    "ContinuationRequired",
    "ContinuationResolved",
    "ErrorInfo",
    "Event",
    "EventUnion",
    "Finalizing",
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


def _tag(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=_tag):
    """The base of all events; `type` on the wire is the class's name in snake case unless it says otherwise."""

    @property
    def type(self) -> str:
        """The event's name on the wire."""
        return str(self.__struct_config__.tag)


class RunEvent(Event, frozen=True, kw_only=True):
    """An event of a run."""

    run: str
    agent_path: tuple[str, ...] = ()
    """Names from the root's sub-agent down to the one that speaks; empty for the root itself."""


@attrs.frozen
class PendingCall:
    """A call that waits for a decision."""

    id: str
    name: str
    arguments: dict[str, Any]


@attrs.frozen
class ErrorInfo:
    """A failure as clients see it."""

    code: str
    """A stable word: the error class's name in snake case."""
    message: str


# ---------------------------------------------------------------- a run and its steps


class RunStarted(RunEvent, frozen=True, kw_only=True):
    """The first event of a run."""

    agent: str
    model: str
    prompt: str


class StepStarted(RunEvent, frozen=True, kw_only=True):
    """A model call has been reserved."""

    step: int
    final: bool = False
    """The final call: tools are off."""


class ContentDelta(RunEvent, frozen=True, kw_only=True):
    """A piece of visible text."""

    message: str
    text: str
    n: int = 1
    """How many numbers of the log it stands for."""


class ReasoningDelta(RunEvent, frozen=True, kw_only=True):
    """A piece of visible reasoning."""

    message: str
    text: str
    n: int = 1


class ToolCallDelta(RunEvent, frozen=True, kw_only=True):
    """A piece of a call's arguments, as raw text; the whole call comes with `tool_requested`."""

    message: str
    index: int
    text: str
    name: str = ""
    n: int = 1


class HopStarted(RunEvent, frozen=True, kw_only=True):
    """One HTTP request of a decode that is continued has begun."""

    hop: int
    strategy: str = "token"


class HopFinished(RunEvent, frozen=True, kw_only=True):
    """One HTTP request of a decode that is continued has ended."""

    hop: int
    interaction: str | None
    status: str
    usage: Usage


class Rollback(RunEvent, frozen=True, kw_only=True):
    """What was shown of a message beyond its first `to` characters is void: it will be sent again."""

    message: str
    to: int


class ModelRetry(RunEvent, frozen=True, kw_only=True):
    """The model call is tried again after `seconds`."""

    attempt: int
    seconds: float
    reason: str


class Warned(RunEvent, frozen=True, kw_only=True, tag="warning"):
    """Something that a person should know and that changes nothing."""

    code: str
    text: str
    call: str | None = None


class StepFinished(RunEvent, frozen=True, kw_only=True):
    """The turn has been handled: its calls have their results and the exchange is stored."""

    step: int
    finish_reason: str | None
    usage: Usage
    dropped_calls: int = 0


class UsageReport(RunEvent, frozen=True, kw_only=True, tag="usage"):
    """The run's usage so far."""

    usage: Usage
    cost: float | None
    context_tokens: int | None


# ---------------------------------------------------------------- tools


class ToolRequested(RunEvent, frozen=True, kw_only=True):
    """The model asks for a tool: one event for each call that is stored, in call order, when the turn has ended."""

    call: str
    name: str
    arguments: dict[str, Any]


class ToolStarted(RunEvent, frozen=True, kw_only=True):
    """The tool's body is entered."""

    call: str
    name: str


class ToolProgress(RunEvent, frozen=True, kw_only=True):
    """A word from inside a tool."""

    call: str
    text: str


class ToolFinished(RunEvent, frozen=True, kw_only=True):
    """The call has its result: exactly one for each `tool_requested`."""

    call: str
    name: str
    status: ToolStatus
    started: bool
    """Whether the body was entered."""
    text: str


# ---------------------------------------------------------------- messages from outside


class MessageQueued(RunEvent, frozen=True, kw_only=True):
    """A steering message waits for the next boundary."""

    message: str
    text: str


class MessageDelivered(RunEvent, frozen=True, kw_only=True):
    """A steering message has been appended to the history."""

    message: str


class MessageDropped(RunEvent, frozen=True, kw_only=True):
    """A steering message still waited when the run ended."""

    message: str
    reason: str


# ---------------------------------------------------------------- limits, gate, approvals


class LimitReached(RunEvent, frozen=True, kw_only=True):
    """A limit changes the course: directly before `continuation_required`, `finalizing` or the terminal event."""

    limit: LimitState


class Finalizing(RunEvent, frozen=True, kw_only=True):
    """The next model call is the final one, with tools off."""

    limit: LimitState


ContinuationOutcome: TypeAlias = Literal["approved", "declined", "timed_out", "cancelled", "failed", "agent_ended"]


class ContinuationRequired(RunEvent, frozen=True, kw_only=True):
    """The question "may this go on?": what a continuation provider is given, and what clients see (G2)."""

    request: str
    """Unique in the process and across restarts."""
    limit: LimitState
    max_iterations: int | None
    """The window that was just filled; `None` where another limit asks."""
    total_iterations: int
    """Tool rounds over all windows."""
    tool_calls: tuple[PendingCall, ...]
    text: str
    """What the model said beside the calls."""
    usage: Usage
    cost: float | None
    elapsed_seconds: float
    expires_in_seconds: float | None
    decisions: tuple[str, ...]
    """What may be decided."""
    default_grant: float
    """What an approval without a grant gives, in the limit's unit."""
    max_grant: float | None
    """The most that a remote client may grant; `None`: no bound."""
    on_timeout: Literal["decline", "approve"] = "decline"
    digest: str = ""
    """Of all that a person sees: a decision that carries another one was made on a stale view."""


class ContinuationResolved(RunEvent, frozen=True, kw_only=True):
    """The one answer to a `continuation_required`."""

    request: str
    outcome: ContinuationOutcome
    by: str | None
    """Who decided; `None` for expiry, cancel and end."""
    message: str | None = None
    tool_message: str | None = None
    granted: float | None = None
    effect: Literal["approved"] | None = None
    """Set where an expiry counts as approval."""
    discarded: tuple[str, ...] = ()
    """Ids of the pending calls that are not run although the run goes on."""

    @property
    def goes_on(self) -> bool:
        """Whether the run may go on."""
        return self.outcome == "approved" or self.effect == "approved"


ApprovalOutcome: TypeAlias = Literal["approved", "edited", "denied", "timed_out", "cancelled", "failed", "agent_ended"]


class ApprovalRequired(RunEvent, frozen=True, kw_only=True):
    """The question "may this call run, with exactly these arguments?"."""

    request: str
    call: str
    name: str
    arguments: dict[str, Any]
    expires_in_seconds: float | None
    digest: str


class ApprovalResolved(RunEvent, frozen=True, kw_only=True):
    """The one answer to an `approval_required`."""

    request: str
    call: str
    outcome: ApprovalOutcome
    by: str | None
    reason: str | None = None
    arguments: dict[str, Any] | None = None


class RunPaused(RunEvent, frozen=True, kw_only=True):
    """The run waits for its caller to give the results of these calls: no end."""

    request: str
    calls: tuple[PendingCall, ...]


class RunResumed(RunEvent, frozen=True, kw_only=True):
    """A paused or restored run goes on, with these counters."""

    counters: Counters


# ---------------------------------------------------------------- the end of a run


class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run came to an end: an answer, a condition or a limit."""

    summary: RunSummary


class RunFailed(RunEvent, frozen=True, kw_only=True):
    """The run failed; `summary` is what it had come to."""

    error: ErrorInfo
    summary: RunSummary


class RunCancelled(RunEvent, frozen=True, kw_only=True):
    """The run was cancelled; `summary` is what it had come to."""

    reason: str
    summary: RunSummary


TERMINAL_EVENTS = (RunFinished, RunFailed, RunCancelled)
"""Exactly one of these ends a run's events."""

# ---------------------------------------------------------------- agents


class AgentSpawned(Event, frozen=True, kw_only=True):
    """The agent has been made and takes runs."""

    agent: str
    name: str


class AgentFailed(Event, frozen=True, kw_only=True):
    """The agent's host crashed."""

    agent: str
    error: ErrorInfo


class AgentStopped(Event, frozen=True, kw_only=True):
    """The agent takes no more runs."""

    agent: str
    reason: str


EventUnion: TypeAlias = (
    RunStarted
    | StepStarted
    | ContentDelta
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
    | RunFinished
    | RunFailed
    | RunCancelled
)
"""All events, as one tagged union: what a decoder is made for."""
