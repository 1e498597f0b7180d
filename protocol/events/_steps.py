"""A run, its steps, and the deltas of a reply."""

from __future__ import annotations

from ..usage import Usage
from ._base import RunEvent

__all__ = (
    "ContentDelta",
    "ContextCompacted",
    "HandedOff",
    "HopFinished",
    "HopStarted",
    "ModelRetry",
    "ReasoningDelta",
    "Rollback",
    "RunStarted",
    "StepFinished",
    "StepStarted",
    "ToolCallDelta",
    "UsageReport",
    "Warned",
)


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


class HandedOff(RunEvent, frozen=True, kw_only=True):
    """The run goes on with another agent's model, system, tools and settings."""

    agent: str
    model: str


class ContextCompacted(RunEvent, frozen=True, kw_only=True):
    """Older messages of the conversation were dropped, shortened or summarised: the run goes on with what is left.

    It comes between exchanges: no call and no request is open. Tokens are estimates of the next request as a whole.
    """

    by: str
    """The name of the hook that did it, such as `trim` or `summarise`."""
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    summary_chars: int = 0
    """Characters of the user messages that were not there before."""
    refused: bool = False
    """The server had refused the request for its length."""


class HopStarted(RunEvent, frozen=True, kw_only=True):
    """One HTTP request of a decode that is continued has begun.

    The first of a turn began with its step, unless it was known then that it would be one of several.
    """

    hop: int
    strategy: str = "token"


class HopFinished(RunEvent, frozen=True, kw_only=True):
    """One HTTP request of a decode that is continued has ended."""

    hop: int
    interaction: str | None
    status: str
    usage: Usage


class Rollback(RunEvent, frozen=True, kw_only=True):
    """What was shown of a message beyond these marks is void: it will be sent again."""

    message: str
    to: int
    """Characters of visible text that stand."""
    reasoning_to: int = 0
    """Characters of reasoning that stand."""
    calls_to: int = 0
    """Tool calls that stand: deltas with a smaller `index`."""


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
    """The run's usage so far, when it has changed and no `step_finished` says so: a hop or a helper's call has ended."""

    usage: Usage
    cost: float | None
    context_tokens: int | None
