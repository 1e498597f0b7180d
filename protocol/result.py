"""What a run comes to (loop.md section 7)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import msgspec

from .errors import LimitReachedError
from .limits import Counters, LimitName, LimitState
from .turns import Hop, Message, ToolCall, ToolResult, Unfinished
from .usage import Usage

__all__ = ("Finalized", "RunResult", "RunSummary", "StepResult", "StoppedBy")

StoppedBy: TypeAlias = (
    LimitName | Literal["model", "stop_condition", "tool", "caller", "pending_tools", "failure", "cancel"]
)
"""Who ended the run; `failure` and `cancel` only in the partial result of an error."""

Finalized: TypeAlias = Literal["model", "fallback"]
"""Whether the final call answered, or the deterministic fallback text had to."""


class StepResult(msgspec.Struct, frozen=True, gc=False):
    """One finished step: a turn of the model and what became of its calls."""

    number: int
    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    finish_reason: str | None
    usage: Usage
    seconds: float
    """From the reservation of the call to the end of the step, waits for a decision included."""
    final: bool = False
    """The final call: made with tools off because of a limit."""
    cost: float | None = None
    """US dollars; `None`: unknown."""
    hops: tuple[Hop, ...] = ()
    """The requests that the turn took, where it was continued; `usage` and `cost` are their sum."""
    raw_finish_reason: str | None = None
    """The model's own word, where it is another one."""


@attrs.frozen(kw_only=True)
class RunSummary:
    """The result without its messages and steps: what the terminal event carries."""

    text: str
    answered: bool
    finish_reason: str
    stopped_by: StoppedBy
    stop_reason: str | None
    limit: LimitState | None
    finalized: Finalized | None
    usage: Usage
    context_tokens: int | None
    cost: float | None
    counters: Counters
    elapsed_seconds: float


@attrs.frozen(kw_only=True)
class RunResult:
    """What a run came to. It is never an error that a limit was reached: look at `answered` and `limit`."""

    run: str
    text: str
    """The model's whole answer; in every other case the visible texts of all turns, parted by a blank line, then the
    fallback text if there is one."""
    answered: bool
    """True only for a whole answer of the model."""
    finish_reason: str
    """`stop`, `length`, `content_filter`, `empty`, a limit's (`max_iterations`, `max_llm_calls`) or the model's own."""
    stopped_by: StoppedBy
    stop_reason: str | None
    """Why the condition or the caller stopped the run."""
    limit: LimitState | None
    """The limit that changed the course of the run, if one did."""
    finalized: Finalized | None
    steps: tuple[StepResult, ...]
    messages: tuple[Message, ...]
    """The agent's whole conversation at the end of the run."""
    usage: Usage
    """Of this run and all it started."""
    context_tokens: int | None
    """Input tokens of the last request; `None`: not reported."""
    cost: float | None
    """In US dollars; `None`: unknown, never 0 for want of a price."""
    counters: Counters
    undelivered: tuple[str, ...]
    """Steering messages that still waited when the run ended."""
    elapsed_seconds: float
    unfinished: Unfinished | None = None
    """What continues the last turn's decode, where the provider would go on and did not: its token, owner and ids."""

    def summary(self) -> RunSummary:
        """The result without messages and steps."""
        names = [field.name for field in attrs.fields(RunSummary)]
        return RunSummary(**{name: getattr(self, name) for name in names})

    def raise_for_limit(self) -> None:
        """Raise `LimitReachedError` if a limit ended the run without a whole answer."""
        if self.limit is not None and not self.answered:
            limit = self.limit
            raise LimitReachedError(
                f"the limit {limit.name} ({limit.max}) was reached, used {limit.used}", partial=self
            )
