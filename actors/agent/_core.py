"""One run, as the driver and its services share it: settings, state, and the ways out (log, history, ledger).

`finish` needs no service and no await: it may be called after a crash, in a cancelled scope, or by the watchdog while
a tool still ignores its cancel. Whatever has happened, it leaves a history in which every call has its result, events
with one terminal at the end, a ledger without open reservations, and no open request.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio

from protocol.events import (
    ContinuationOutcome,
    ErrorInfo,
    LimitReached,
    MessageDropped,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    ToolFinished,
)
from protocol.gate import RequestTable
from protocol.history import INTERRUPTED_TEXT, History
from protocol.ledger import Account
from protocol.limits import LimitState
from protocol.model import ToolDefinition
from protocol.normalise import Arguments, parse_arguments
from protocol.result import RunResult, StepResult
from protocol.run import Cancelled, Failed, Finished, RunEnd, RunState, result_of
from protocol.stop import StopCondition
from protocol.text import clean, is_visible
from protocol.turns import (
    AssistantMessage,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    ToolStatus,
    Turn,
    UserMessage,
)
from protocol.usage import UNKNOWN_USAGE, Usage

from ..eventlog import RunLog
from ..journal import Journal
from ..tools import Tool
from ._spec import AgentSpec

__all__ = ("RunCore", "finish_word")

ENDED_TEXT = "Not run: the run ended before this call began."


@attrs.define(eq=False)
class RunCore:
    """Everything a run is made of but its tasks."""

    spec: AgentSpec
    state: RunState
    log: RunLog
    history: History
    account: Account
    requests: RequestTable
    journal: Journal
    conditions: tuple[StopCondition, ...]
    tools: dict[str, Tool]
    context: Any = None
    """What the caller gave to `agent.run(context=)`."""
    run: str = attrs.field(init=False)
    path: tuple[str, ...] = attrs.field(init=False)
    definitions: tuple[ToolDefinition, ...] = attrs.field(init=False)
    began: float = attrs.field(factory=trio.current_time)
    arguments: Arguments = attrs.field(factory=dict[str, dict[str, Any]])
    """Decoded arguments of the turn in hand."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of the turn in hand, and its visible text: worked out once."""
    text: str = ""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    cancel_reason: str | None = None
    requests_end_as: ContinuationOutcome = "cancelled"
    """What becomes of a request that is open when the run ends."""
    coming_end: RunEnd | None = None
    """How the driver ended, while its services are still being joined."""
    end: RunEnd | None = None
    result: RunResult | None = None
    children: list[RunCore] = attrs.field(factory=list["RunCore"])
    """Runs that a tool of this one has started and that are not over."""
    over: trio.Event = attrs.field(factory=trio.Event)
    """Set when the terminal event is out."""
    stirred: trio.Event = attrs.field(factory=trio.Event)
    """Set when the run is cancelled or over: what the watchdog waits for."""

    def __attrs_post_init__(self) -> None:
        self.run = self.log.run
        self.path = self.log.agent_path
        self.definitions = tuple([tool.definition for tool in self.tools.values()])

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run began."""
        return trio.current_time() - self.began

    @property
    def usage(self) -> Usage:
        """What the run and all it started have used, the step in hand included."""
        return self.account.tally.total(self.state.spent)

    def start(self) -> None:
        """Store the prompt and emit the first event."""
        state = self.state
        model = self.spec.model.name
        self.log.emit(
            RunStarted(run=self.run, agent_path=self.path, agent=self.spec.name, model=model, prompt=state.prompt)
        )
        self.history.append(UserMessage(state.prompt))

    def resume(self) -> None:
        """Take up a run whose state was written down, where `start` would begin one."""
        state = self.state
        if state.turn is not None:
            self.hold(state.turn)
        else:
            self._settle_ledger()  # a call that was in flight counts if it had been sent; it is made again as a new one
            state.spent = None
        asked = self.calls if state.final is None else ()
        requests = () if state.open_request is None else (state.open_request,)
        self.log.grammar.restore([call.id for call in asked if call.id not in state.results], requests)
        self.log.emit(RunResumed(run=self.run, agent_path=self.path, counters=state.counters(self.account.llm_calls)))

    def hold(self, turn: Turn) -> None:
        """Take a turn in hand."""
        self.state.turn = turn
        self.calls = turn.calls
        self.text = turn.text

    def arguments_of(self, call: ToolCall) -> dict[str, Any]:
        """The decoded arguments of a call of the turn in hand."""
        arguments = self.arguments.get(call.id)
        return arguments if arguments is not None else parse_arguments(call.arguments) or {}

    def cancel(self, reason: str) -> None:
        """Cancel the run: its tasks now, the run itself when they have joined or the grace time is over."""
        if not self.over.is_set() and self.cancel_reason is None:
            self.cancel_reason = clean(reason)
            self.scope.cancel(reason)
            self.stirred.set()

    def stop(self, reason: str) -> None:
        """End the run at its next boundary; a wait for a decision is cut at once."""
        if self.state.stop_requested is None and not self.over.is_set():
            self.state.stop_requested = clean(reason)
            for request in self.log.grammar.open_requests:
                self.requests.end(request, self.requests_end_as)

    def reach(self, limit: LimitState) -> None:
        """Say that a limit changes the course (B6)."""
        self.log.emit(LimitReached(run=self.run, agent_path=self.path, limit=limit))

    def record(self, result: ToolResult) -> None:
        """Enter a call's result, once, and say so: history and events are settled from the same record."""
        if result.call in self.state.results or self.log.over:
            return
        self.state.results[result.call] = result
        self.log.emit(
            ToolFinished(
                run=self.run,
                agent_path=self.path,
                call=result.call,
                name=result.name,
                status=result.status,
                started=result.entered,
                text=result.text,
            )
        )

    def answer(self, call: ToolCall, status: ToolStatus, text: str) -> None:
        """Answer a call whose body is not entered."""
        self.record(ToolResult(call.id, call.name, status, text))

    def store_exchange(self, message: str | None = None) -> None:
        """Append the turn in hand with the results of all its calls, and close the step. One step, no await (R3)."""
        state = self.state
        turn = state.turn
        assert turn is not None
        results = tuple([state.results[call.id] for call in self.calls])
        self.history.append_exchange(AssistantMessage(turn.parts), results, message)
        self.close_step(results)

    def close_step(self, results: tuple[ToolResult, ...] = ()) -> None:
        """The turn in hand has been handled."""
        state = self.state
        turn = state.turn
        assert turn is not None
        now = self.elapsed_seconds
        word = finish_word(turn)
        reasoning = "".join([part.text for part in turn.parts if type(part) is ReasoningPart])
        final = state.final is not None
        calls = self.calls if results else ()
        state.steps.append(
            StepResult(
                state.step, self.text, reasoning, calls, results, word, turn.usage, now - state.step_began, final
            )
        )
        self.log.emit(
            StepFinished(
                run=self.run,
                agent_path=self.path,
                step=state.step,
                finish_reason=word,
                usage=turn.usage,
                dropped_calls=turn.dropped_calls,
            )
        )
        state.step += 1
        state.turn = state.outcome = state.decision = None
        state.results = {}
        state.counted = False
        self.arguments = {}
        self.calls = ()
        self.text = ""

    def finish(self, end: RunEnd) -> None:
        """End the run, once. Synchronous: needs no service."""
        if self.log.over:
            return
        for child in tuple(self.children):
            child.finish(Cancelled("the run that started it is over"))
        self.end = end
        state = self.state
        for request in self.log.grammar.open_requests:
            self.requests.end(request, self.requests_end_as)
        state.open_request = None
        self._settle_turn()
        for message in state.steering:
            self.log.emit(
                MessageDropped(run=self.run, agent_path=self.path, message=message.id, reason="the run ended")
            )
        self._settle_ledger()
        result = self.result = result_of(
            state,
            end,
            messages=tuple(self.history.view()),
            usage=self.account.usage,
            llm_calls=self.account.llm_calls,
            elapsed_seconds=self.elapsed_seconds,
        )
        limit = end.limit if isinstance(end, Failed) or (isinstance(end, Finished) and end.tell_limit) else None
        if limit is not None:
            self.reach(limit)
        match end:
            case Finished():
                self.log.emit(RunFinished(run=self.run, agent_path=self.path, summary=result.summary()))
            case Failed(code=code, message=text):
                self.log.emit(
                    RunFailed(run=self.run, agent_path=self.path, error=ErrorInfo(code, text), summary=result.summary())
                )
            case Cancelled(reason=reason):
                self.log.emit(RunCancelled(run=self.run, agent_path=self.path, reason=reason, summary=result.summary()))
        self.over.set()
        self.stirred.set()

    def _settle_turn(self) -> None:
        state = self.state
        turn = state.turn
        if turn is None:
            self._store_shown()
            return
        if not self.calls:
            return
        entered = self.log.grammar.open_calls
        for call in self.calls:
            if call.id not in state.results:
                self.record(_unsettled(call, entered=entered.get(call.id, False)))
        decision = state.decision
        self.store_exchange(decision.message if decision is not None and decision.goes_on else None)

    def _store_shown(self) -> None:
        """Keep the visible text of a reply that did not come to its end (R3)."""
        text = clean("".join(self.state.shown))
        self.state.shown = []
        if is_visible(text):
            self.state.texts.append(text)
            self.history.append(AssistantMessage((TextPart(text),), partial=True))

    def _settle_ledger(self) -> None:
        """Settle what was sent, give back what was not: also a grant that its asker never came to see."""
        state = self.state
        for number in self.account.open_reservations:
            if number == state.reservation and (state.sent or state.spent is not None):
                self.account.settle(number, state.spent or UNKNOWN_USAGE)
            else:
                self.account.release(number)
        state.reservation = 0


def _unsettled(call: ToolCall, *, entered: bool) -> ToolResult:
    if entered:
        return ToolResult(call.id, call.name, "interrupted", INTERRUPTED_TEXT, True)
    return ToolResult(call.id, call.name, "not_run", ENDED_TEXT)


def finish_word(turn: Turn) -> str | None:
    """A turn's finish reason in the common words; one that the profile does not know, verbatim."""
    return turn.raw_finish if turn.finish == "other" else turn.finish
