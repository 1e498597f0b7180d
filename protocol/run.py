"""All variables of a run's loop, in one object that can be written down and taken up again.

The loop begins with "if there is no turn, think": a state that was restored with a turn goes on at the gate or the
tools of that turn. That guard is the whole of re-entry.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from .events import ContinuationResolved, PendingCall
from .limits import Counters, LimitName, Limits, LimitState
from .outcome import Outcome
from .result import Finalized, RunResult, StepResult, StoppedBy
from .spending import Spending
from .turns import AssistantMessage, Message, ToolResult, Turn, Unfinished
from .usage import Usage

__all__ = (
    "NOTHING_KEPT",
    "Asked",
    "Cancelled",
    "Failed",
    "FinalCall",
    "Finished",
    "Kept",
    "Pause",
    "QueuedMessage",
    "RunEnd",
    "RunState",
    "result_of",
)


@attrs.frozen
class QueuedMessage:
    """A steering message that waits for a boundary."""

    id: str
    text: str


@attrs.frozen
class FinalCall:
    """The run is in its final call, or about to make it: tools are off and nothing goes on after it."""

    limit: LimitState | None
    """The limit whose instruction is used; `None`: a stop condition was met."""
    instruction: str | None = None
    """The transient last message; `None` until it has been made."""
    after_decision: bool = False
    """A gate declined or timed out: the finish reason is the limit's, whatever the model's was."""
    stop_reason: str | None = None
    """Why the condition stopped the run, where one did."""
    stop_finish: str = "stop"
    """The finish reason of the step after which it did."""


@attrs.frozen
class Kept:
    """What a `prepare_step` hook changed for the rest of the run (H2)."""

    system: str | msgspec.UnsetType | None = msgspec.UNSET
    messages: tuple[Message, ...] | None = None
    """Sent in place of the first `replaces` stored messages; the history is not changed."""
    replaces: int = 0


NOTHING_KEPT = Kept()
"""What a run has kept that no hook has changed."""


@attrs.define
class Pause:
    """The run waits for its caller to give the results of these calls (T7)."""

    request: str
    calls: tuple[PendingCall, ...]
    results: dict[str, ToolResult] = attrs.field(factory=dict[str, ToolResult])
    """What has been given."""


@attrs.frozen
class Finished:
    """The run came to an end that is a result."""

    stopped_by: StoppedBy
    finish_reason: str
    answer: str | None = None
    """The model's whole answer, if that is what ended the run."""
    stop_reason: str | None = None
    limit: LimitState | None = None
    finalized: Finalized | None = None
    tell_limit: bool = False
    """The limit has not been told yet: `limit_reached` comes directly before the terminal event (B6)."""
    closing_text: str = ""
    """Text of the runtime's own (the fallback), after the texts of the turns."""


@attrs.frozen
class Failed:
    """The run failed."""

    error: Exception
    code: str
    message: str
    limit: LimitState | None = None
    """The limit that left no way but to fail; it is told directly before the terminal event."""


@attrs.frozen
class Cancelled:
    """The run was cancelled."""

    reason: str


RunEnd: TypeAlias = Finished | Failed | Cancelled
"""How a run ends."""


@attrs.frozen
class Asked:
    """A request for the approval of a call."""

    request: str
    digest: str
    """Of what was shown: the answer binds exactly that."""


class RunState(msgspec.Struct, omit_defaults=True):
    """Where a run stands. Everything in it encodes as JSON and decodes again."""

    run: str
    prompt: str
    limits: Limits
    agent_path: tuple[str, ...] = ()
    window_max: int | None = None
    """Rounds that fit the present window; a gate's grant may have resized it."""
    step: int = 0
    """Number of the step in hand."""
    window: int = 0
    tool_iterations: int = 0
    tool_calls: int = 0
    reasks: int = 0
    """Edges without progress in a row."""
    reask: str | None = None
    """The transient message of the next call, if it is a re-ask."""
    reasked_as: str | None = None
    """The finish reason the run has if that re-ask cannot be made."""
    reservation: int = 0
    """The call that is reserved and neither settled nor released; 0: none."""
    sent: bool = False
    """Whether the request of that reservation has been handed to the transport."""
    leaving: bool = False
    """Whether it may have been, after a crash: written down before the request leaves, so that no call is lost count of."""
    spent: Spending | None = None
    """What the model calls of the step in hand used, once it is known."""
    turn: Turn | None = None
    """Answered by the model and not yet stored."""
    outcome: Outcome | None = None
    results: dict[str, ToolResult] = {}
    """Results of the turn's calls so far: the one record that history and events are settled from."""
    counted: bool = False
    """Whether this turn has been counted as a round."""
    entering: list[str] = []
    """Calls whose body may have been entered, after a crash: written down before it is, so that none is run twice."""
    uncontinued: LimitState | None = None
    """The limit that kept this turn, which was cut, from being continued (B1)."""
    resumed: AssistantMessage | None = None
    """The partial answer that the run continues; `None` once it has a turn."""
    offered: tuple[str, ...] | None = None
    """Names of the tools that the request of this turn offered; `None`: all of them (H3)."""
    decision: ContinuationResolved | None = None
    """The gate's answer to this turn."""
    open_request: str | None = None
    """The gate's question that waits for an answer."""
    approvals: dict[str, Asked] = {}
    """The requests for approval of this turn's calls, by call: asked again under the same id after a restart."""
    stored: Literal["answer", "final", "turn"] | None = None
    """The turn in hand has been stored, and what follows upon it is not over: its hooks and conditions. What it was."""
    closing: Finished | None = None
    """How the run ends, if its final answer is not rejected."""
    pause: Pause | None = None
    """The calls of this turn that wait for the caller."""
    overrun: LimitState | None = None
    """The limit that kept calls of this turn from running (B4)."""
    tool_stop: str | None = None
    """A tool of this turn ends the run, with this text (T6)."""
    acting: str | None = None
    """The agent that a hand-off gave the run to; `None`: the one that it began with."""
    transfer: str | None = None
    """The agent that this turn hands the run over to."""
    kept: Kept = NOTHING_KEPT
    custom_data: Any = None
    """Carried from step to step by the hooks; must encode as JSON to outlive a restart."""
    continues: int = 0
    """How often `continue_when` or `check_answer` kept the run going."""
    obeyed_choice: bool = False
    """The step before forced a tool choice and was obeyed (H3)."""
    spent_choice: bool = False
    """The agent's own forced tool choice has been obeyed."""
    final: FinalCall | None = None
    final_calls: int = 0
    unfinalized: set[LimitName] = set()
    """Limits whose instruction function failed: the run goes on as if their finalization were off."""
    shown: list[str] = []
    """The visible text of the turn in flight, as far as it has been shown; of a stored answer that goes on, what is new."""
    texts: list[str] = []
    """The visible text of every turn."""
    steps: list[StepResult] = []
    steering: list[QueuedMessage] = []
    stop_requested: str | None = None
    """The caller's reason to stop at the next boundary."""
    context_tokens: int | None = None
    unfinished: Unfinished | None = None
    """What continues the decode of the last turn, if it could go on."""
    step_began: float = 0.0
    """On the run's own clock: seconds since it began."""

    def window_is_full(self) -> bool:
        """Whether another round would exceed the window."""
        return self.window_max is not None and self.window >= self.window_max

    def tool_limit(self) -> LimitState:
        """The limit of tool iterations, as of now."""
        return LimitState("tool_iterations", self.window_max or 0, self.window)

    def counters(self, llm_calls: int) -> Counters:
        """What has been used; `llm_calls` is the account's."""
        return Counters(len(self.steps), llm_calls, self.tool_iterations, self.window, self.tool_calls)


def result_of(
    state: RunState,
    end: RunEnd | None,
    *,
    messages: tuple[Message, ...],
    usage: Usage,
    llm_calls: int,
    cost: float | None,
    elapsed_seconds: float,
) -> RunResult:
    """Fold a run into its result. For a failed or cancelled run it is the partial one, and for a paused one too."""
    match end:
        case None:
            finished = Finished("pending_tools", state.steps[-1].finish_reason or "stop" if state.steps else "stop")
        case Finished():
            finished = end
        case Failed(code=code, limit=limit):
            finished = Finished("failure", code, limit=limit)
        case Cancelled(reason=reason):
            finished = Finished("cancel", "cancelled", stop_reason=reason)
    texts = [*state.texts, finished.closing_text]
    return RunResult(
        run=state.run,
        text=finished.answer if finished.answer is not None else "\n\n".join(text for text in texts if text),
        answered=finished.answer is not None,
        finish_reason=finished.finish_reason,
        stopped_by=finished.stopped_by,
        stop_reason=finished.stop_reason,
        limit=finished.limit or (state.final.limit if state.final else None),
        finalized=finished.finalized,
        steps=tuple(state.steps),
        messages=messages,
        usage=usage,
        context_tokens=state.context_tokens,
        cost=cost,
        counters=state.counters(llm_calls),
        undelivered=tuple(message.text for message in state.steering),
        elapsed_seconds=elapsed_seconds,
        unfinished=state.unfinished,
    )
