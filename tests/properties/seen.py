"""What the events of each run say, sorted for the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.result import RunSummary


@attrs.define(eq=False)
class SeenCall:
    """A call, as the events tell of it."""

    run: Seen
    requested: ToolRequested
    approvals: list[ApprovalRequired | ApprovalResolved] = attrs.field(factory=list)
    started: bool = False
    approved_first: bool = False
    """Whether all its approvals were given when it started."""
    finished: ToolFinished | None = None
    discarded: bool = False
    """A decision did not let it run."""

    @property
    def number(self) -> int | None:
        number = self.requested.arguments.get("n")
        return number if isinstance(number, int) else None


@attrs.define(eq=False)
class Seen:
    """A run, as the events tell of it."""

    id: str
    path: tuple[str, ...]
    prompt: str
    root: str
    """The root run that it belongs to; its own id for that."""
    calls: dict[str, SeenCall] = attrs.field(factory=dict)
    granted: dict[str, float] = attrs.field(factory=dict)
    """By limit."""
    resolved: dict[str, str] = attrs.field(factory=dict)
    questions: dict[str, ContinuationRequired] = attrs.field(factory=dict)
    rounds: list[int | float] = attrs.field(factory=list)
    """1 for a round for certain, 0 for a step that may be none; a decision's grant as a negative number."""
    final_steps: int = 0
    summary: RunSummary | None = None
    end: RunEvent | None = None
    in_step: list[str] = attrs.field(factory=list)
    waiting: set[str] = attrs.field(factory=set)
    """Messages that wait for a boundary."""
    waited: set[str] = attrs.field(factory=set)
    """Those that waited when the last step ended."""
    left: set[str] = attrs.field(factory=set)
    """Those that were dropped."""

    def window_faults(self, most: float) -> Iterator[str]:
        """The window is never exceeded."""
        used = 0
        for entry in self.rounds:
            if entry < 0:
                used, most = 0, -entry
            else:
                used += int(entry)
            if used > most:
                yield f"{used} rounds in a window of {most}"


def seen_of(events: Sequence[Event]) -> dict[str, Seen]:
    """The runs, by id."""
    runs: dict[str, Seen] = {}
    root = ""
    for event in events:
        if not isinstance(event, RunEvent):
            continue
        if isinstance(event, RunStarted):
            root = root if event.agent_path else event.run
            runs[event.run] = Seen(event.run, event.agent_path, event.prompt, root)
        _take(runs[event.run], event)
    return runs


def _take(run: Seen, event: Any) -> None:
    match event:
        case StepStarted(final=final):
            run.in_step = []
            run.final_steps += final
        case ToolRequested(call=call):
            run.calls[call] = SeenCall(run, event)
            run.in_step.append(call)
        case ToolStarted(call=call):
            seen = run.calls[call]
            seen.started = True
            seen.approved_first = _is_approved(seen)
        case ToolFinished(call=call):
            run.calls[call].finished = event
        case ApprovalRequired(call=call) | ApprovalResolved(call=call):
            run.calls[call].approvals.append(event)
            if isinstance(event, ApprovalResolved):
                run.resolved[event.request] = event.outcome
        case ContinuationRequired(request=request):
            run.questions[request] = event
        case ContinuationResolved():
            _decided(run, event)
        case StepFinished():
            ran = {"ok", "error", "timed_out", "interrupted", "denied"}
            ends = [end.status for call in run.in_step if (end := run.calls[call].finished) is not None]
            run.waited = set(run.waiting)
            run.rounds.append(1 if ran.intersection(ends) else 0)
        case MessageQueued(message=message):
            run.waiting.add(message)
        case MessageDelivered(message=message):
            run.waiting.discard(message)
        case MessageDropped(message=message):
            run.left.add(message)
        case RunFinished() | RunFailed() | RunCancelled():
            run.summary, run.end = event.summary, event
        case _:
            pass


def _is_approved(call: SeenCall) -> bool:
    resolved = [one.outcome for one in call.approvals if isinstance(one, ApprovalResolved)]
    return len(resolved) * 2 == len(call.approvals) and set(resolved) <= {"approved", "edited"}


def _decided(run: Seen, event: ContinuationResolved) -> None:
    question = run.questions[event.request]
    run.resolved[event.request] = event.outcome
    pending = [call.id for call in question.tool_calls]
    for call in event.discarded if event.goes_on else pending:
        run.calls[call].discarded = True
    if not event.goes_on:
        return
    granted = event.granted or 0
    if question.limit.name == "tool_iterations":
        run.rounds.append(-granted)
    else:
        run.granted[question.limit.name] = run.granted.get(question.limit.name, 0) + granted
