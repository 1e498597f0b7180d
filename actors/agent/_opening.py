"""The core of a run: made for a new one, and for one that was written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import trio

from protocol.codec import encode
from protocol.events import Rollback, RunResumed, ToolStarted
from protocol.grammar import CallState
from protocol.history import INTERRUPTED_TEXT, History
from protocol.idem import IdempotencyStore
from protocol.ids import new_id
from protocol.ledger import Account
from protocol.records import RunFacts, StoredAgent, end_of
from protocol.requests import Resolution
from protocol.run import Cancelled, RunEnd, RunState
from protocol.stopwatch import Activity
from protocol.turns import ToolResult

from ..eventlog import EventStream, RunLog
from ._budgets import check_prices
from ._callbacks import failed
from ._charges import settle_ledger
from ._core import RunCore
from ._ending import finish
from ._ground import Ground
from ._spec import AgentSpec, stop_conditions

__all__ = ("GroundOf", "as_fork", "core_of", "open_core", "own_settings", "resume", "take_up")

CHILD_TEXT = "the process ended while the tool that started it ran"
LOOP = "loop"
GroundOf: TypeAlias = Callable[[str], Ground | None]
"""What the agent of that id stands on, if it is here and has not run yet."""


def open_core(
    ground: Ground,
    spec: AgentSpec,
    state: RunState,
    log: RunLog,
    *,
    above: Account,
    activity: Activity | None = None,
    context: Any = None,
) -> RunCore:
    """Everything a run is made of. Its account draws on the one `above` it, and on its agent's budget."""
    parents = [above]
    if spec.budget is not None:
        parents.append(spec.budget.account)
    account = Account(
        state.run,
        state.limits,
        tuple(parents),
        clock=trio.current_time,
        holds_final_call=spec.llm_call_limit_finalization is not None,
    )
    if account.limits_cost:
        check_prices(1.0, spec.prices, spec.model.name)
    watches = [one.stopwatch for one in account.chain if one.stopwatch is not None]
    if activity is not None:
        watches += [watch for watch in activity.watches if watch not in watches]
    return RunCore(
        spec=spec,
        state=state,
        log=log,
        history=ground.history,
        account=account,
        requests=ground.requests,
        journal=ground.journal,
        conditions=stop_conditions(spec),
        activity=Activity(tuple(watches)),
        models=ground.models,
        shared=ground.shared,
        keepers=ground.keepers,
        gauge=ground.gauge,
        context=context,
    )


def own_settings(spec: AgentSpec, agents: AgentSpec, context: Any, *, is_own_loop: bool) -> tuple[str, ...]:
    """What was given for one run alone, and is code: it cannot be written down."""
    if spec is agents and context is None and not is_own_loop:
        return ()
    given = {
        LOOP: is_own_loop,
        "stop_when": spec.stop_when is not agents.stop_when,
        "continuation": spec.continuation is not agents.continuation,
        "context": context is not None,
    }
    return tuple([name for name, was_given in given.items() if was_given])


def core_of(
    ground: Ground, facts: RunFacts, spec: AgentSpec, stream: EventStream, *, above: Account, context: Any = None
) -> RunCore:
    """The core of a run that was written down, with the limits that it was started with."""
    if facts.given != spec.limits():
        spec = spec.for_run(limits=facts.given)
    return _core_of(ground, facts, spec, stream, above=above, context=context)


def _core_of(
    ground: Ground, facts: RunFacts, spec: AgentSpec, stream: EventStream, *, above: Account, context: Any = None
) -> RunCore:
    state = facts.whole_state()
    return open_core(ground, spec, state, RunLog(stream, state.run, state.agent_path), above=above, context=context)


def take_up(core: RunCore, facts: RunFacts, ground_of: GroundOf) -> None:
    """Let a run stand where it stood when it was written down; one that had come to its end ends now."""
    state = core.state
    core.account.take_up(facts.account, alone=True)
    core.given = facts.given
    core.began = trio.current_time() - facts.elapsed_seconds
    core.observed = facts.observed
    resume(core, facts)
    _reopen(core, facts)
    for child in facts.children:
        _end_child(core, child, ground_of)
    _interrupt(core, facts)
    end = _end_of(core, facts)
    if end is not None:
        finish(core, end)
        return
    if state.turn is None and facts.message:
        core.log.emit(Rollback(run=core.run, agent_path=core.path, message=facts.message, to=0))
        state.shown = []
    _say_what_is_missing(core, facts)


def resume(core: RunCore, facts: RunFacts | None = None) -> None:
    """Take up a run whose state was written down, where `start` would begin one."""
    state = core.state
    state.sent = state.sent or state.leaving
    acting = core.spec.agent_named(state.acting)
    if acting is not None:
        core.act_as(acting)
    if state.offered is not None:
        core.offered = {name: tool for name, tool in core.tools.items() if name in state.offered}
    if state.turn is not None:
        core.hold(state.turn)
    else:
        settle_ledger(core)  # a call that was in flight counts if it had been sent; it is made again as a new one
        state.spent = None
    if facts is not None:
        core.log.grammar.restore(facts.calls, [one.request.request for one in facts.asked])
    else:
        asked = core.calls if state.final is None else ()
        calls: dict[str, CallState] = {call.id: "requested" for call in asked if call.id not in state.results}
        requests = [*([state.open_request] if state.open_request is not None else [])]
        core.log.grammar.restore(calls, [*requests, *[asked.request for asked in state.approvals.values()]])
    core.log.emit(RunResumed(run=core.run, agent_path=core.path, counters=state.counters(core.account.llm_calls)))


def _reopen(core: RunCore, facts: RunFacts) -> None:
    """The open questions can be answered at once: before whoever asked them asks again."""
    now = trio.current_time()
    for one in facts.asked:
        deadline = None if one.seconds_left is None else now + one.seconds_left
        core.requests.open(one.request, deadline, lambda resolution: _tell(core, resolution))


def _tell(core: RunCore, resolution: Resolution) -> None:
    if core.log.emit(resolution):
        core.requests.note_number(resolution.request, core.log.number)


def _interrupt(core: RunCore, facts: RunFacts) -> None:
    """A call that had been entered is never run again: it may have had an effect (T9)."""
    state = core.state
    for call in core.calls:
        if call.id in state.results:
            continue
        if call.id in state.entering and facts.calls.get(call.id) == "requested":  # it may have been entered
            state.tool_calls += 1
            facts.bodies_allowed -= 1
            core.log.emit(ToolStarted(run=core.run, agent_path=core.path, call=call.id, name=call.name))
            facts.calls[call.id] = "started"
        if facts.calls.get(call.id) == "started":
            core.record(ToolResult(call.id, call.name, "interrupted", INTERRUPTED_TEXT, True))
    core.account.leave_tools(facts.bodies_allowed)


def _end_of(core: RunCore, facts: RunFacts) -> RunEnd | None:
    if facts.end is not None:
        return end_of(facts.end)
    if facts.cancel is not None:
        core.cancel_reason = facts.cancel
        return Cancelled(facts.cancel)
    if facts.failure is not None:
        return failed("tool_failed_run", "a tool", RuntimeError(facts.failure))
    if LOOP in facts.own:
        return Cancelled("the process ended, and a loop of its own cannot be taken up")
    return None


def _say_what_is_missing(core: RunCore, facts: RunFacts) -> None:
    """What the run had and cannot be given again."""
    state = core.state
    told = [
        f"{name}= was given for this run alone; now the agent's own holds" for name in facts.own if name != "context"
    ]
    if "context" in facts.own and core.context is None:
        told.append("its context= was not written down: give spawn(context=) one")
    if state.acting is not None and core.acting is core.spec:
        told.append(f"it had been handed over to {state.acting}, which is not there; {core.spec.name} goes on")
    gone = [call.name for call in core.calls if call.id not in state.results and call.name not in core.tools]
    if gone:
        told.append(f"the model asked for tools that are not there: {', '.join(gone)}")
    if facts.asked and core.spec.continuation is None and state.open_request is not None:
        told.append("its question about going on is open, and the agent has no continuation= any more")
    for text in told:
        core.warn("not_brought_back", f"the run goes on, but not as it was: {text}")


def _end_child(parent: RunCore, facts: RunFacts, ground_of: GroundOf) -> None:
    """A run that a tool had started ends with the call that started it, in the conversation of its agent if that is there."""
    ground = ground_of(facts.conversation)
    if ground is None:
        ground = Ground(
            History(), parent.requests, IdempotencyStore(), parent.journal, parent.models, parent.shared, parent.keepers
        )
    else:
        ground = ground.under(parent)
    core = _core_of(ground, facts, parent.spec, parent.log.stream, above=parent.account)
    state = core.state
    core.account.take_up(facts.account, alone=False)
    core.began = trio.current_time() - facts.elapsed_seconds
    core.log.grammar.restore(facts.calls, [one.request.request for one in facts.asked], phase="running")
    state.sent = state.sent or state.leaving
    if state.turn is not None:
        core.hold(state.turn)
    _reopen(core, facts)
    for child in facts.children:
        _end_child(core, child, ground_of)
    _interrupt(core, facts)
    finish(core, Cancelled(CHILD_TEXT))


def as_fork(stored: StoredAgent) -> StoredAgent:
    """The same agent as a new one, whose run is a new run; what was open of it is the first one's."""
    run = stored.run
    if run is not None and run.end is not None:
        run = None  # it was the last step
    if run is not None:
        state = run.whole_state()
        state.run = run.run = new_id("run")
        state.open_request, state.approvals, state.pause = None, {}, None
        state.sent = state.leaving = False  # what was about to leave then is no call of this run
        run.state, run.asked, run.children = msgspec.Raw(encode(state)), [], []
        run.calls, run.cancel, run.message = {}, None, ""
    return StoredAgent(new_id("agent"), stored.name, messages=stored.messages, run=run)
