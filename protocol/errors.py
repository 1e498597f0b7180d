"""Every exception of Onward.

OnwardError
  SpecError (ValueError)             a setting is wrong; the text says which, where, and what would be right
  InvalidDecision (ValueError)       a decision that was not on offer; the request stays open
  AgentBusy                          a run is going on and the caller asked not to wait
  AgentStopped                       the agent or its runtime has been stopped
  RuntimeFull                        a limit of the runtime leaves no room for another agent, or run
  RunOver                            the run has ended and takes no more messages
  ActorGone                          the actor that was asked has ended
  ActorCrashed                       the actor that was asked failed while it held the message
  MailboxFull                        a message was told to an actor that does not keep up
  AskCycle                           the ask, or another wait, would be for somebody who waits for the asker
  ModelError                         a model call failed; what of the reply had arrived is in `partial`
    ModelUnreachable                   no connection: nothing was sent
    ModelTimeout                       a deadline of the call passed
    ModelRefused                       the server answered with an error status
      ModelAuthError                     401, 403: the key
      ModelRateLimited                   429
      ContextOverflow                    the request is longer than the model's context window
      ModelServerError                   5xx
    ModelReplyError                    the answer is not what the wire format says
    ContinuationInterrupted            a decode that was being continued broke off; it can be resumed by hand
  JournalError                       the journal cannot be opened, read or written; what was acknowledged is kept
  PriceUnknown                       the cost is limited, and the model has no price
  SubmissionRefused (ValueError)     results given to a paused run do not answer what it waits for; nothing was taken
  ToolError                          raised by a tool: its text becomes the call's error result
  StopRun                            raised by a tool: the run ends when the results of its turn are stored
  FailRun                            raised by a tool: the run fails
  RunError                           a run did not come to an answer; `partial` is its result so far
    RunFailedError                     it failed; the cause is in `__cause__`
      ContinuationProviderError          the continuation provider raised, or answered the wrong type
      ApprovalProviderError              the approval provider raised, or answered the wrong type
      StopConditionError                 a stop condition raised, or returned the wrong type
      HookError                          a hook raised, or returned what it may not
      AnswerRejected                     `check_answer` rejected the answer, and no call is left to ask again
    RunCancelledError                  it was cancelled
    RunSuspended                       its runtime has stopped; it goes on where its agent is spawned again
    LimitReachedError                  raised by `RunResult.raise_for_limit()` alone: a limit is a result
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import InterruptReason
    from .result import RunResult
    from .turns import Turn

__all__ = (
    "ActorCrashed",
    "ActorGone",
    "AgentBusy",
    "AgentStopped",
    "AnswerRejected",
    "ApprovalProviderError",
    "AskCycle",
    "ContextOverflow",
    "ContinuationInterrupted",
    "ContinuationProviderError",
    "FailRun",
    "HookError",
    "InvalidDecision",
    "JournalError",
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
    "PriceUnknown",
    "RunCancelledError",
    "RunError",
    "RunFailedError",
    "RunOver",
    "RunSuspended",
    "RuntimeFull",
    "SpecError",
    "StopConditionError",
    "StopRun",
    "SubmissionRefused",
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


class RuntimeFull(OnwardError):
    """A limit of the runtime leaves no room: the text says which, how much is used, and what would make room."""


class RunOver(OnwardError):
    """The run has ended: it takes no more messages. Start another one with what you have to say."""


class ActorGone(OnwardError):
    """The actor you asked has ended and cannot answer."""


class ActorCrashed(OnwardError):
    """The actor you asked failed while it held your message: a fault in that actor, not in you."""


class MailboxFull(OnwardError):
    """The actor does not keep up. Ask (which waits), tell later, or drop the message: your choice."""


class AskCycle(OnwardError):
    """The wait would be for somebody who, directly or through others, waits for you: neither could go on.

    The text names the way round. Wait in a task of its own, tell instead of asking, or give the work to somebody else.
    """


class ModelError(OnwardError):
    """A model call failed."""

    def __init__(
        self,
        message: str,
        *,
        partial: Turn | None = None,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.partial = partial
        """What of the reply had arrived, if anything."""
        self.retryable = retryable
        """Whether the same request may succeed later."""
        self.retry_after_seconds = retry_after_seconds
        """How long the server asked to be left alone, if it did."""


class ModelUnreachable(ModelError):
    """The server could not be reached; nothing was sent. Is it running, is the address right?"""


class ModelTimeout(ModelError):
    """The server was silent for longer than the call allows."""


class ModelRefused(ModelError):
    """The server refused the request."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        partial: Turn | None = None,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, partial=partial, retryable=retryable, retry_after_seconds=retry_after_seconds)
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


class ContinuationInterrupted(ModelError):
    """A decode that was being continued broke off. What it had produced is in `partial`, and it can go on by hand.

    It can be pickled, and written as JSON by `as_dict()`.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: InterruptReason,
        token: str | None,
        interaction_id: str | None = None,
        continuation_ids: tuple[str, ...] = (),
        interaction: dict[str, Any] | None = None,
        usage: dict[str, Any] | None = None,
        hops: int = 0,
        partial: Turn | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, partial=partial, retryable=retryable)
        self.reason: InterruptReason = reason
        self.token = token
        """What resumes the decode; output that came after it was handed out is made again."""
        self.interaction_id = interaction_id
        """The interaction that issued the token; `None` where the provider stores nothing."""
        self.continuation_ids = continuation_ids
        """All interactions up to here, in order."""
        self.interaction = interaction
        """The hops merged, in the provider's own form."""
        self.usage = usage
        """The usage of all hops, in the provider's own form."""
        self.hops = hops
        """Requests that came to their end."""

    def resume_kwargs(self) -> dict[str, Any]:
        """The arguments that continue the decode; without an `interaction_id`, give the original `input` as well."""
        given = {"continuation_token": self.token, "previous_interaction_id": self.interaction_id}
        return {name: value for name, value in given.items() if value is not None}

    def as_dict(self) -> dict[str, Any]:
        """Everything but `partial` and the cause, as JSON can hold it."""
        return {
            "message": str(self),
            "reason": self.reason,
            "token": self.token,
            "interaction_id": self.interaction_id,
            "continuation_ids": list(self.continuation_ids),
            "interaction": self.interaction,
            "usage": self.usage,
            "hops": self.hops,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        more = {"continuation_ids": self.continuation_ids, "partial": self.partial, "retryable": self.retryable}
        return _interrupted, (self.as_dict() | more,)


def _interrupted(fields: dict[str, Any]) -> ContinuationInterrupted:
    return ContinuationInterrupted(fields.pop("message"), **fields)


class ToolError(OnwardError):
    """Raise it in a tool: its text, alone, becomes the error result that the model reads."""


class StopRun(OnwardError):
    """Raise it in a tool to end the run: when the results of its turn are stored, with your text at the end of the result's."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.text = str(text)
        """The result of the call, and the end of the run's text."""


class FailRun(OnwardError):
    """Raise it in a tool to fail the run: the turn's other calls are cancelled, what was done is stored."""

    def __init__(self, cause: Exception | str) -> None:
        super().__init__(cause)
        self.cause = self.__cause__ = cause if isinstance(cause, Exception) else ToolError(cause)
        """Why: `__cause__` of the `RunFailedError`."""


class JournalError(OnwardError):
    """The journal cannot be opened, read or written: the text says why. All that was acknowledged is kept; nothing else is."""


class PriceUnknown(OnwardError):
    """A model without a price was to be called although the cost is limited: give `prices` one for it."""


class SubmissionRefused(OnwardError, ValueError):
    """Your results do not answer what the run waits for (an unknown or answered id). None of them was taken."""


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


class ApprovalProviderError(RunFailedError):
    """The approval provider raised, or did not return an `ApprovalResponse`: mend the provider."""


class HookError(RunFailedError):
    """A hook raised, was too slow, or returned what it may not: mend the hook."""


class AnswerRejected(RunFailedError):
    """`check_answer` rejected the model's answer, and it may not be asked again."""


class StopConditionError(RunFailedError):
    """A stop condition raised, or returned neither a string, a bool nor `None`: mend the condition."""


class RunCancelledError(RunError):
    """The run was cancelled before it came to an end."""


class RunSuspended(RunError):
    """The runtime has stopped, and the run with it. It is no end: spawn its agent with the same journal, and it goes on."""


class LimitReachedError(RunError):
    """The run ended at a limit without an answer; raised only where the caller asked for it."""
