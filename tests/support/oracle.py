"""The event oracle: what must hold of any stream of events, said once more and apart from the code that makes them.

It shares no code with `protocol.grammar`. `event_faults` reads a stream and returns what is wrong, in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContentDelta,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    Finalizing,
    HopFinished,
    HopStarted,
    LimitReached,
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    ReasoningDelta,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCallDelta,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.limits import LimitState

Numbered: TypeAlias = Sequence[tuple[int, Event]]

STARTED = {"ok", "timed_out", "interrupted"}
"""Statuses of a call whose body was entered; `error` may be of either kind."""
NOT_STARTED = {"denied", "discarded", "not_run"}


@attrs.define(eq=False)
class _Book:
    """What has been seen of one run."""

    path: tuple[str, ...]
    over: bool = False
    calls: dict[str, str] = attrs.field(factory=dict)
    requests: dict[str, bool] = attrs.field(factory=dict)
    given: set[str] = attrs.field(factory=set)
    """Calls without a body: their results come from the caller."""
    messages: dict[str, bool] = attrs.field(factory=dict)
    step: int | None = None
    steps: int = 0
    hops: int = 0
    """Requests of the step in hand that have ended, where it takes several."""
    final: bool = False
    bodies: int = 0
    """Calls that the caller answers, or that are hand-offs: they have no body."""
    again: bool = False
    """The step in hand may begin anew: its process died before the model's turn was there."""
    stopped_by_gate: bool = False
    finalizing: bool = False
    """A final call has been announced, and its limit with it."""
    last: RunEvent | None = None


@attrs.define(eq=False)
class _Oracle:
    books: dict[str, _Book] = attrs.field(factory=dict)
    requests: set[str] = attrs.field(factory=set)
    faults: list[str] = attrs.field(factory=list)
    at: str = ""

    def need(self, holds: bool, told: str) -> None:
        if not holds:
            self.faults.append(f"{self.at}: {told}")

    def read(self, numbered: Numbered) -> None:
        for place, (number, event) in enumerate(numbered):
            self.at = f"{number} {event.type}"
            self.need(number == numbered[0][0] + place, "the numbers have a gap")
            if isinstance(event, RunEvent):
                self._run_event(event)
        self.at = "the end"
        for run, book in self.books.items():
            self.need(book.over, f"{run} has no terminal event")

    def _run_event(self, event: RunEvent) -> None:
        book = self.books.get(event.run)
        if book is None:
            self.need(isinstance(event, RunStarted), f"the first event of {event.run} is not run_started")
            book = self.books[event.run] = _Book(event.agent_path)
        else:
            self.need(not isinstance(event, RunStarted), "a second start")
            self.need(not book.over, "an event after the end of its run")
        self.need(event.agent_path == book.path, f"agent_path is {event.agent_path}, was {book.path}")
        self._limits(book, event)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, book, event)
        book.last = event

    def _limits(self, book: _Book, event: RunEvent) -> None:
        """`limit_reached` stands directly before what it leads to, and nowhere else (B6)."""
        book.finalizing |= isinstance(event, Finalizing)
        before = book.last
        leads_to = _limit_of(event)
        if isinstance(before, LimitReached):
            self.need(leads_to == before.limit, f"after limit_reached {before.limit}, this one's limit is {leads_to}")
            return
        if isinstance(event, ContinuationRequired):
            self.need(False, "no limit_reached directly before it")
        elif isinstance(event, Finalizing):
            self.need(book.stopped_by_gate, "no limit_reached directly before it, and no gate said no")
        elif isinstance(event, RunFinished) and event.summary.limit is not None:
            told = book.finalizing or book.stopped_by_gate
            self.need(told, "ended by a limit without limit_reached directly before it")

    def requested(self, book: _Book, event: ToolRequested) -> None:
        self.need(event.call not in book.calls, f"{event.call} was requested before")
        self.need(book.step is not None and not book.final, "no step in which tools may be requested")
        book.calls[event.call] = "requested"

    def started(self, book: _Book, event: ToolStarted) -> None:
        self.need(book.calls.get(event.call) == "requested", f"{event.call} is {book.calls.get(event.call)}")
        book.calls[event.call] = "started"
        book.bodies += 1

    def finished(self, book: _Book, event: ToolFinished) -> None:
        state = book.calls.get(event.call)
        self.need(state in {"requested", "started"}, f"{event.call} is {state}")
        self.need(event.started == (state == "started"), f"started={event.started}, but {event.call} is {state}")
        bodiless = event.call in book.given or event.name.startswith("transfer_to_")
        self.need(
            event.started or event.status not in STARTED or (event.status == "ok" and bodiless),
            f"{event.status} without a start",
        )
        self.need(not event.started or event.status not in NOT_STARTED, f"{event.status} after a start")
        self.need(bool(event.text), "a result without text")
        book.calls[event.call] = "finished"

    def step_started(self, book: _Book, event: StepStarted) -> None:
        again, book.again = book.again, False
        self.need(book.step is None or again, f"step {book.step} has not finished")
        self.need(event.step == book.steps, f"the next step is {book.steps}")
        self.need(event.final or not book.final, "a step with tools after the final call")
        book.step, book.final, book.hops = event.step, event.final, 0

    def resumed(self, book: _Book, _event: RunResumed) -> None:
        book.again = book.step is not None and all(state == "finished" for state in book.calls.values())

    def step_finished(self, book: _Book, event: StepFinished) -> None:
        self.need(event.step == book.step, f"the step in hand is {book.step}")
        self._calls_are_answered(book)
        book.step = None
        book.steps += 1

    def spoke(self, book: _Book, _event: RunEvent) -> None:
        self.need(book.step is not None, "no step is in hand")

    def hop(self, book: _Book, event: HopStarted | HopFinished) -> None:
        self.need(book.step is not None, "no step is in hand")
        self.need(event.hop == book.hops, f"the hop in hand is {book.hops}")
        book.hops += isinstance(event, HopFinished)

    def opened(self, book: _Book, event: ContinuationRequired | ApprovalRequired) -> None:
        self.need(event.request not in self.requests, f"{event.request} was asked before")
        self.requests.add(event.request)
        book.requests[event.request] = True
        if isinstance(event, ContinuationRequired):
            pending = [call for call, state in book.calls.items() if state == "requested"]
            asked = [call.id for call in event.tool_calls]
            self.need(asked == pending, f"it asks about {asked}, pending are {pending}")

    def resolved(self, book: _Book, event: ContinuationResolved | ApprovalResolved) -> None:
        self.need(book.requests.get(event.request) is True, f"{event.request} is not open")
        book.requests[event.request] = False
        if isinstance(event, ContinuationResolved) and not event.goes_on:
            book.stopped_by_gate = event.outcome in {"declined", "timed_out"}

    def paused(self, book: _Book, event: RunPaused) -> None:
        for call in event.calls:
            self.need(book.calls.get(call.id) == "requested", f"{call.id} is {book.calls.get(call.id)}")
            book.given.add(call.id)

    def queued(self, book: _Book, event: MessageQueued) -> None:
        self.need(event.message not in book.messages, f"{event.message} was queued before")
        book.messages[event.message] = True

    def taken(self, book: _Book, event: MessageDelivered | MessageDropped) -> None:
        self.need(book.messages.get(event.message) is True, f"{event.message} does not wait")
        book.messages[event.message] = False

    def ended(self, book: _Book, event: RunFinished | RunFailed | RunCancelled) -> None:
        book.over = True
        self._calls_are_answered(book)
        self.need(not any(book.requests.values()), f"requests are still open: {book.requests}")
        self.need(not any(book.messages.values()), f"messages still wait: {book.messages}")
        inner = [run for run, other in self.books.items() if not other.over and _is_below(other.path, book.path)]
        self.need(not inner, f"it ended before the runs below it: {inner}")
        self._summary(book, event)

    def _summary(self, book: _Book, event: RunFinished | RunFailed | RunCancelled) -> None:
        summary = event.summary
        cut = {RunFailed: "failure", RunCancelled: "cancel"}.get(type(event))
        self.need(
            (summary.stopped_by == cut) if cut else (summary.stopped_by not in {"failure", "cancel"}), "stopped_by"
        )
        self.need(summary.counters.steps == book.steps, f"{summary.counters.steps} steps, {book.steps} finished")
        self.need(
            summary.counters.tool_calls == book.bodies,
            f"{summary.counters.tool_calls} tool calls, {book.bodies} started",
        )
        self.need(not summary.answered or bool(summary.text.strip()), "an answer without text")
        self.need(not summary.answered or cut is None, "a cut run has no answer")
        why = summary.limit is not None or summary.stopped_by == "stop_condition"
        self.need(summary.finalized is None or why, "finalized without a limit or a condition")

    def _calls_are_answered(self, book: _Book) -> None:
        left = [call for call, state in book.calls.items() if state != "finished"]
        self.need(not left, f"calls without an end: {left}")


_HANDLERS: dict[type[RunEvent], Callable[..., None]] = {
    ToolRequested: _Oracle.requested,
    ToolStarted: _Oracle.started,
    ToolFinished: _Oracle.finished,
    StepStarted: _Oracle.step_started,
    StepFinished: _Oracle.step_finished,
    RunPaused: _Oracle.paused,
    RunResumed: _Oracle.resumed,
    ContentDelta: _Oracle.spoke,
    ReasoningDelta: _Oracle.spoke,
    ToolCallDelta: _Oracle.spoke,
    HopStarted: _Oracle.hop,
    HopFinished: _Oracle.hop,
    ContinuationRequired: _Oracle.opened,
    ApprovalRequired: _Oracle.opened,
    ContinuationResolved: _Oracle.resolved,
    ApprovalResolved: _Oracle.resolved,
    MessageQueued: _Oracle.queued,
    MessageDelivered: _Oracle.taken,
    MessageDropped: _Oracle.taken,
    RunFinished: _Oracle.ended,
    RunFailed: _Oracle.ended,
    RunCancelled: _Oracle.ended,
}


def _limit_of(event: RunEvent) -> LimitState | None:
    if isinstance(event, (ContinuationRequired, Finalizing)):
        return event.limit
    if isinstance(event, (RunFinished, RunFailed, RunCancelled)):
        return event.summary.limit
    return None


def _is_below(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return len(path) > len(other) and path[: len(other)] == other


def event_faults(numbered: Numbered) -> list[str]:
    """What is wrong with a stream in which every run has ended."""
    oracle = _Oracle()
    oracle.read(numbered)
    return oracle.faults


def check_events(numbered: Numbered) -> None:
    """Raise `AssertionError` with all that is wrong with a stream in which every run has ended."""
    assert event_faults(numbered) == []
