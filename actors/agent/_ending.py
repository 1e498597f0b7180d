"""The end of a run, which needs no service and no await.

It may come after a crash, in a cancelled scope, or from the watchdog while a tool still ignores its cancel. Whatever has
happened, it leaves a history in which every call has its result, events with one terminal at the end, a ledger without
open reservations, and no open request.
"""

from __future__ import annotations

from protocol.events import ErrorInfo, MessageDropped, RunCancelled, RunFailed, RunFinished
from protocol.history import INTERRUPTED_TEXT
from protocol.result import RunResult
from protocol.run import Cancelled, Failed, Finished, RunEnd
from protocol.text import clean, is_visible
from protocol.turns import AssistantMessage, TextPart, ToolCall, ToolResult, raw_text_of

from ._charges import settle_ledger
from ._core import RunCore

__all__ = ("TIME_TEXT", "finish")

ENDED_TEXT = "Not run: the run ended before this call began."
TIME_TEXT = "Cut when the time of the run was over: it may have had an effect."


def finish(core: RunCore, end: RunEnd) -> None:
    """End the run, once; a second call does nothing."""
    if core.suspended:
        _let_go(core)
    if core.log.over or core.suspended:
        return
    for child in tuple(core.children):
        finish(child, Cancelled("the run that started it is over"))
    core.end = end
    if core.starter is not None:
        core.starter.take_back()
    core.activity.finish()
    state = core.state
    for request in core.log.grammar.open_requests:
        core.requests.end(request, core.requests_end_as)
    state.open_request = None
    _settle_turn(core)
    for message in state.steering:
        core.log.emit(MessageDropped(run=core.run, agent_path=core.path, message=message.id, reason="the run ended"))
    settle_ledger(core)
    core.account.leave_tools(core.bodies_allowed)
    core.bodies_allowed = 0
    result = core.result = core.result_at(end)
    _tell_end(core, end, result)
    core.shared.watch.ended[type(end).__name__.lower(), result.stopped_by] += 1
    core.account.tell_ended(is_root=not core.path)
    core.keep()
    _let_go(core)


def _tell_end(core: RunCore, end: RunEnd, result: RunResult) -> None:
    limit = end.limit if isinstance(end, Failed) or (isinstance(end, Finished) and end.tell_limit) else None
    if limit is not None:
        core.reach(limit)
    match end:
        case Finished():
            core.log.emit(RunFinished(run=core.run, agent_path=core.path, summary=result.summary()))
        case Failed(code=code, message=text):
            core.log.emit(
                RunFailed(run=core.run, agent_path=core.path, error=ErrorInfo(code, text), summary=result.summary())
            )
        case Cancelled(reason=reason):
            core.log.emit(RunCancelled(run=core.run, agent_path=core.path, reason=reason, summary=result.summary()))


def _let_go(core: RunCore) -> None:
    """Let go on whoever waits for the run."""
    core.over.set()
    core.rests.set()
    core.stirred.set()
    core.steps_stirred.set()
    core.parked = True


def _settle_turn(core: RunCore) -> None:
    """Answer what is open of the turn in hand, and store it."""
    state = core.state
    turn = state.turn
    if turn is None:
        _store_shown(core)
        return
    if not core.calls:  # the watchdog was faster than what would have stored it
        if core.text:
            core.history.append(AssistantMessage((TextPart(core.text),), partial=True))
        return
    entered = core.log.grammar.open_calls
    given = state.pause.results if state.pause is not None else {}
    for call in core.calls:
        if call.id not in state.results:
            core.record(given.get(call.id) or _unsettled(core, call, entered=entered.get(call.id, False)))
    decision = state.decision
    core.store_exchange(decision.message if decision is not None and decision.goes_on else None)


def _store_shown(core: RunCore) -> None:
    """Keep the visible text of a reply that did not come to its end (R3), or the stored one that it was to go on with."""
    state = core.state
    text, stored = clean("".join(state.shown)), state.resumed
    state.shown = []
    if stored is not None:
        message = stored if not text else AssistantMessage((TextPart(raw_text_of(stored.parts) + text),), partial=True)
    elif is_visible(text):
        message = AssistantMessage((TextPart(text),), partial=True)
    else:
        return
    state.resumed = None
    state.texts.append(raw_text_of(message.parts))
    core.history.append(message)


def _unsettled(core: RunCore, call: ToolCall, *, entered: bool) -> ToolResult:
    if not entered:
        return ToolResult(call.id, call.name, "not_run", ENDED_TEXT)
    if core.time_is_up is not None:
        return ToolResult(call.id, call.name, "timed_out", TIME_TEXT, True)
    return ToolResult(call.id, call.name, "interrupted", INTERRUPTED_TEXT, True)
