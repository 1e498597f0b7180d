"""A turn with calls: the gate or the limit, the tools, the exchange (steps 8 to 10 of loop.md section 3)."""

from __future__ import annotations

from protocol.events import ContinuationResolved, PendingCall, RunPaused, RunResumed
from protocol.finalization import allowance
from protocol.ids import new_id
from protocol.limits import finish_reason_for
from protocol.run import Finished, Pause, RunEnd
from protocol.turns import ToolCall

from ._approvals import approved
from ._callbacks import EndRun, failed
from ._core import RunCore, finish_word
from ._gate import ask_gate, decline, end_at_limit, stopped_at_gate, store_declined
from ._handoff import hand_over, set_aside_transfers, take_transfer
from ._park import park
from ._resolve import Ready, resolve
from ._services import Services
from ._toolbox import EnterTools, RunTools

__all__ = ("answer_calls", "at_full_window", "store_calls")

DISCARDED_TEXT = "Tool execution canceled by user during continuation."
CUT_TEXT = (
    "Not run: your output was cut by the token limit before the tool calls were complete, and nothing was run."
    " Write less before the call, or split the work into smaller calls."
)


async def answer_calls(core: RunCore, services: Services) -> RunEnd | None:
    """Give every call of the turn in hand its result: the gate or the limit first, then the tools. Raises `EndRun`."""
    state = core.state
    if core.parking:
        await park(core)
    if state.decision is None and not state.counted and state.window_is_full():
        end = await at_full_window(core, services)
        if end is not None:
            return end
    decision = state.decision
    if decision is not None and not decision.goes_on:
        decline(core, decision)
    elif calls := _round(core, decision):
        ready = [item for call in calls if (item := resolve(core, call)) is not None]
        if core.plain_tools and core.offered is core.tools:
            await _run_bodies(core, services, ready)
        else:
            await _run_decided(core, services, ready)
    return None


def store_calls(core: RunCore) -> RunEnd | None:
    """Append the exchange, and see what it leads to."""
    state = core.state
    turn, outcome, decision, overrun = state.turn, state.outcome, state.decision, state.overrun
    refused = state.uncontinued
    assert turn is not None
    assert outcome is not None
    if decision is not None and not decision.goes_on:
        store_declined(core, decision)
        return None
    core.store_exchange(decision.message if decision is not None else None)
    if not outcome.cut:
        state.reasks = 0
    elif state.reasks >= core.spec.max_reasks:
        return Finished("model", "length", limit=refused, tell_limit=refused is not None)
    else:
        state.reasks += 1
        state.reasked_as = "length"
    if state.tool_stop is not None:
        return Finished("tool", finish_word(turn) or "stop", closing_text=state.tool_stop)
    hand_over(core)
    if overrun is not None and not _goes_on_after(core):
        return Finished(overrun.name, finish_reason_for(overrun.name), limit=overrun, tell_limit=True)
    return None


def _round(core: RunCore, decision: ContinuationResolved | None) -> list[ToolCall]:
    """Count the round, and answer what is discarded or cut; the calls that are left to run."""
    state, outcome = core.state, core.state.outcome
    assert outcome is not None
    if decision is not None:
        for call in core.calls:
            if call.id in decision.discarded:
                core.answer(call, "discarded", decision.tool_message or DISCARDED_TEXT)
    left = [call for call in core.calls if call.id not in state.results]
    if not left and decision is not None:
        return left
    if not state.counted:
        state.counted = True
        state.window += 1
        state.tool_iterations += 1
    if not outcome.cut:
        return left
    for call in left:
        core.answer(call, "error", CUT_TEXT)
    return []


def _goes_on_after(core: RunCore) -> bool:
    """Whether a used-up allowance of tool calls leads to a final call or to the gate, and not to the end (B4)."""
    spec, account = core.spec, core.account
    if spec.tool_iteration_limit_finalization is not None and "tool_calls" not in core.state.unfinalized:
        return True
    if "tool_calls" not in spec.gate_on:
        return False
    # The gate can raise the run's own limit, as far as those above it allow.
    most, ceiling = account.limits.max_tool_calls, account.ceiling("tool_calls")
    return most is not None and account.tool_calls >= most and (ceiling is None or ceiling > 0)


async def _run_decided(core: RunCore, services: Services, ready: list[Ready]) -> None:
    """Hooks, approvals, the caller's own tools, hand-offs: all that may stand between a call and its result."""
    entered = core.acting.around_tool is not None and bool(ready)
    if entered:
        ready = await services.toolbox.ask(EnterTools(ready))
        _raise_failure(core)
    ready = await approved(core, services, ready)
    ready = set_aside_transfers(core, ready)
    bodies = [item for item in ready if not item.tool.external]
    await _run_bodies(core, services, bodies, always=entered)
    external = [item for item in ready if item.tool.external]
    if external:
        await _wait_for_caller(core, external)
    take_transfer(core)


async def _run_bodies(core: RunCore, services: Services, bodies: list[Ready], *, always: bool = False) -> None:
    """Run as many of the bodies as the ledger allows, in call order (B4)."""
    wanted = len(bodies)
    granted, overrun = core.account.enter_tools(wanted)
    if overrun is not None:
        core.state.overrun = overrun
        text = f"Not run: the limit of {allowance(overrun)} was reached."
        for item in bodies[granted:]:
            core.answer(item.call, "not_run", text)
        del bodies[granted:]
    if not granted and not always:
        return
    core.bodies_allowed += granted
    if core.journal.durable:
        if core.parking:
            await park(core)
        core.state.entering += [item.call.id for item in bodies[: core.acting.max_parallel_tools]]
        await core.barrier()
    _raise_failure(core)
    core.activity.wait()
    try:
        await services.toolbox.ask(RunTools(bodies))
    finally:
        core.activity.resume()
    if core.bodies_allowed:  # a hook has left its `proceed()`, or no thread was to be had
        core.account.leave_tools(core.bodies_allowed)
        core.bodies_allowed = 0
    _raise_failure(core)


def _raise_failure(core: RunCore) -> None:
    """End the run if a tool, or the hook around one, has failed it (T6)."""
    if core.failure is not None:
        raise EndRun(failed("tool_failed_run", "a tool", core.failure))


async def _wait_for_caller(core: RunCore, calls: list[Ready]) -> None:
    """Pause until the caller has given the results of its own tools (T7). Raises `EndRun` if the run is stopped."""
    state = core.state
    if state.stop_requested is not None:
        raise EndRun(stopped_at_gate(core))
    pause = state.pause
    if pause is None:
        pending = tuple([PendingCall(item.call.id, item.call.name, item.shown) for item in calls])
        pause = state.pause = Pause(new_id("q"), pending)
    core.log.emit(RunPaused(run=core.run, agent_path=core.path, request=pause.request, calls=pause.calls))
    core.rests.set()
    core.activity.wait()
    try:
        if len(pause.results) < len(pause.calls):
            await core.submitted.wait()
    finally:
        core.activity.resume()
    if len(pause.results) == len(pause.calls):
        counters = state.counters(core.account.llm_calls)
        core.log.emit(RunResumed(run=core.run, agent_path=core.path, counters=counters))
    state.pause = None
    for call in pause.calls:
        result = pause.results.get(call.id)
        if result is not None:
            core.record(result)
            if result.status == "ok" and core.offered[call.name].ends_run:
                core.stop_by_tool("")
    if len(pause.results) < len(pause.calls):
        raise EndRun(stopped_at_gate(core))


async def at_full_window(core: RunCore, services: Services) -> RunEnd | None:
    """The window is full and the model wants tools: end at the limit, or ask whether it may go on (G1)."""
    state = core.state
    if core.spec.continuation is None:
        return end_at_limit(core, state.tool_limit())
    if state.stop_requested is not None:
        return stopped_at_gate(core)
    refusal = core.account.refusal()
    if refusal is not None:
        return end_at_limit(core, refusal)
    decision = await ask_gate(core, services, state.tool_limit())
    state.decision = decision
    if decision.outcome in {"cancelled", "agent_ended"}:
        return stopped_at_gate(core)
    if decision.goes_on:
        state.window = 0
        state.window_max = int(decision.granted or 0) or core.spec.max_tool_iterations
    return None
