"""Every exception of Onward.

OnwardError
  SpecError (ValueError)             a setting is wrong; the text says which, where, and what would be right
  InvalidDecision (ValueError)       a decision that was not on offer; the request stays open
  AgentBusy                          a run is going on and the caller asked not to wait
  AgentStopped                       the agent or its runtime has been stopped
  RunOver                            the run has ended and takes no more messages
  ActorGone                          the actor that was asked has ended
  ActorCrashed                       the actor that was asked failed while it held the message
  MailboxFull                        a message was told to an actor that does not keep up
  AskCycle                           the ask would wait for somebody who waits for the asker
  ModelError                         a model call failed; what of the reply had arrived is in `partial`
    ModelUnreachable                   no connection: nothing was sent
    ModelTimeout                       a deadline of the call passed
    ModelRefused                       the server answered with an error status
      ModelAuthError                     401, 403: the key
      ModelRateLimited                   429
      ContextOverflow                    the request is longer than the model's context window
      ModelServerError                   5xx
    ModelReplyError                    the answer is not what the wire format says
  ToolError                          raised by a tool: its text becomes the call's error result
  RunError                           a run did not come to an answer; `partial` is its result so far
    RunFailedError                     it failed; the cause is in `__cause__`
      ContinuationProviderError          the continuation provider raised, or answered the wrong type
      StopConditionError                 a stop condition raised, or returned the wrong type
    RunCancelledError                  it was cancelled
    LimitReachedError                  raised by `RunResult.raise_for_limit()` alone: a limit is a result
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import RunResult
    from .turns import Turn

__all__ = (
    "ActorCrashed",
    "ActorGone",
    "AgentBusy",
    "AgentStopped",
    "AskCycle",
    "ContextOverflow",
    "ContinuationProviderError",
    "InvalidDecision",
    "LimitReachedError",
    "MailboxFull",
    "ModelAuthError",
    "ModelError",
    "ModelRateLimited",
    "ModelRefused",
    "ModelReplyError",
    "ModelServerError",
    "ModelTimeout",
    "ModelUnreachable",
    "OnwardError",
    "RunCancelledError",
    "RunError",
    "RunFailedError",
    "RunOver",
    "SpecError",
    "StopConditionError",
    "ToolError",
)


class OnwardError(Exception):
    """The base of all errors that Onward raises on purpose."""


class SpecError(OnwardError, ValueError):
    """Your setting: the text names the field, what it was, and what would be right."""


class InvalidDecision(OnwardError, ValueError):
    """Your decision was not on offer (an unknown id, a bad grant). The request stays open: decide again."""


class AgentBusy(OnwardError):
    """The agent has a run going on. Wait for its end, or start with `if_busy="queue"`."""


class AgentStopped(OnwardError):
    """The agent, or its runtime, has been stopped: it takes no new run."""


class RunOver(OnwardError):
    """The run has ended: it takes no more messages. Start another one with what you have to say."""


class ActorGone(OnwardError):
    """The actor you asked has ended and cannot answer."""


class ActorCrashed(OnwardError):
    """The actor you asked failed while it held your message: a fault in that actor, not in you."""


class MailboxFull(OnwardError):
    """The actor does not keep up. Ask (which waits), tell later, or drop the message: your choice."""


class AskCycle(OnwardError):
    """The ask would wait for somebody who, directly or through others, waits for you: neither could go on."""


class ModelError(OnwardError):
    """A model call failed."""

    def __init__(self, message: str, *, partial: Turn | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.partial = partial
        """What of the reply had arrived, if anything."""
        self.retryable = retryable
        """Whether the same request may succeed later."""


class ModelUnreachable(ModelError):
    """The server could not be reached; nothing was sent. Is it running, is the address right?"""


class ModelTimeout(ModelError):
    """The server was silent for longer than the call allows."""


class ModelRefused(ModelError):
    """The server refused the request."""

    def __init__(self, message: str, *, status: int, partial: Turn | None = None, retryable: bool = False) -> None:
        super().__init__(message, partial=partial, retryable=retryable)
        self.status = status
        """The HTTP status, or the one named in the body."""


class ModelAuthError(ModelRefused):
    """The server does not accept the key (401) or does not let it do this (403)."""


class ModelRateLimited(ModelRefused):
    """Too many requests (429): slow down, or raise the provider's limit."""


class ContextOverflow(ModelRefused):
    """The request is longer than the model's context window."""


class ModelServerError(ModelRefused):
    """The server failed (5xx): its fault, try again later."""


class ModelReplyError(ModelError):
    """The server's answer is not what the wire format says: is the address that of a compatible server?"""


class ToolError(OnwardError):
    """Raise it in a tool: its text, alone, becomes the error result that the model reads."""


class RunError(OnwardError):
    """A run did not come to an answer."""

    def __init__(self, message: str, *, partial: RunResult) -> None:
        super().__init__(message)
        self.partial = partial
        """The result up to where the run ended: texts, messages, usage and counters."""


class RunFailedError(RunError):
    """The run failed; `__cause__` is why."""


class ContinuationProviderError(RunFailedError):
    """The continuation provider raised, or did not return a `ContinuationResponse`: mend the provider."""


class StopConditionError(RunFailedError):
    """A stop condition raised, or returned neither a string, a bool nor `None`: mend the condition."""


class RunCancelledError(RunError):
    """The run was cancelled before it came to an end."""


class LimitReachedError(RunError):
    """The run ended at a limit without an answer; raised only where the caller asked for it."""
