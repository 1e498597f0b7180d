"""One model call: steps 1 to 6 of loop.md section 3."""

from __future__ import annotations

import msgspec

from protocol.errors import ActorCrashed, ActorGone, ContextOverflow, ModelError
from protocol.events import MessageDelivered, StepStarted, ToolRequested
from protocol.history import first_fault
from protocol.limits import LimitState
from protocol.model import ForceTool, ModelRequest
from protocol.normalise import parse_arguments
from protocol.outcome import outcome_of
from protocol.run import RunEnd
from protocol.turns import Turn, UserMessage
from protocol.usage import UNKNOWN_USAGE

from ._budget import Reserve
from ._callbacks import EndRun, call_hook, failed
from ._core import RunCore
from ._final import end_without_call, prepare_final
from ._gate import stopped
from ._limits import ask_about_limits
from ._prepare import Prepared, prepare
from ._services import Services
from ._session import Think

__all__ = ("think",)


async def think(core: RunCore, services: Services) -> RunEnd | None:
    """Make one model call and take its turn in hand; or say how the run ends without it. Raises `EndRun`."""
    state = core.state
    if state.stop_requested is not None:
        return stopped(core)
    if core.spec.gate_on:
        await ask_about_limits(core, services)
    state.step_began = core.elapsed_seconds
    refused = await _reserve(core, services)
    if refused is not None:
        return end_without_call(core, refused)
    _deliver_steering(core)
    core.log.emit(StepStarted(run=core.run, agent_path=core.path, step=state.step, final=state.final is not None))
    prepared = await prepare(core)
    try:
        _hold(core, prepared)
        turn = await _ask(core, services, prepared)
    except (EndRun, ActorGone, ActorCrashed):
        raise
    except Exception as error:  # noqa: BLE001  a model is foreign code
        if isinstance(error, ModelError) and error.partial is not None:
            text = error.partial.text
            if len(text) > len("".join(state.shown)):
                state.shown = [text]
        return failed(_code_of(error), "the model", error)
    _take(core, turn, prepared)
    return None


async def _reserve(core: RunCore, services: Services) -> LimitState | None:
    """Count the call, and decide whether it is the final one; the limit that refuses it."""
    state = core.state
    grant = await services.budget.ask(Reserve(state.reservation, state.spent))
    state.reservation, state.sent, state.spent = grant.number, False, None
    if grant.refused is None:
        await prepare_final(core, grant)
    return grant.refused


def _deliver_steering(core: RunCore) -> None:
    waiting, core.state.steering = core.state.steering, []
    for message in waiting:
        core.history.append(UserMessage(message.text))
        core.log.emit(MessageDelivered(run=core.run, agent_path=core.path, message=message.id))


def _hold(core: RunCore, prepared: Prepared) -> None:
    """Hold the tokens and the cost of the request that is about to leave; one that is too big is not sent (B1)."""
    core.estimate = core.estimate_of(prepared.request, prepared.model)
    if not core.account.holds_amounts:
        return
    tokens, cost = core.amounts_of(prepared.request, prepared.model, core.estimate)
    lacking = core.account.hold(core.state.reservation, tokens, cost)
    if lacking is not None:
        core.account.release(core.state.reservation)
        core.state.reservation = 0
        raise EndRun(end_without_call(core, lacking))


async def _ask(core: RunCore, services: Services, prepared: Prepared) -> Turn:
    if core.journal.durable:
        await core.journal.flushed()
    try:
        return await services.session.ask(Think(prepared.request, prepared.model))
    except ContextOverflow:
        shorter = await _shortened(core, prepared.request)
        if shorter is None:
            raise
        state = core.state
        spent = state.spent or core.spending_of(UNKNOWN_USAGE, None, prepared.model.name, core.estimate)
        grant = await services.budget.ask(Reserve(state.reservation, spent))
        state.reservation, state.sent, state.spent = grant.number, False, None
        if grant.refused is not None:
            raise
        prepared.request = shorter
        _hold(core, prepared)
        return await services.session.ask(Think(shorter, prepared.model))


async def _shortened(core: RunCore, request: ModelRequest) -> ModelRequest | None:
    """The request with what `on_context_overflow` makes of its messages; `None` to let it fail (H8)."""
    hook = core.acting.on_context_overflow
    if hook is None:
        return None
    messages = await call_hook(core, "on_context_overflow", hook, request.messages)
    if messages is None:
        return None
    fault = first_fault(tuple(messages))
    if fault is not None:
        raise EndRun(failed("hook_error", "on_context_overflow", ValueError(fault)))
    return msgspec.structs.replace(request, messages=tuple(messages))


def _take(core: RunCore, turn: Turn, prepared: Prepared) -> None:
    """Take the turn in hand: what it is, and which calls it asks for."""
    state = core.state
    request = prepared.request
    core.hold(turn)
    state.shown = []
    state.reask = state.reasked_as = None
    state.context_tokens = turn.usage.input_tokens if turn.usage.uncached_input_tokens is not None else None
    outcome = state.outcome = outcome_of(turn, request.max_tokens)
    if core.text:
        state.texts.append(core.text)
    calls = core.calls
    choice = request.tool_choice
    state.obeyed_choice = choice == "required" or isinstance(choice, ForceTool) if calls else False
    if state.obeyed_choice and choice == core.acting.tool_choice:
        state.spent_choice = True
    if state.final is None and outcome.kind == "calls":
        for call in calls:
            arguments = core.arguments.get(call.id)
            if arguments is None:
                arguments = parse_arguments(call.arguments) or {}
            event = ToolRequested(run=core.run, agent_path=core.path, call=call.id, name=call.name, arguments=arguments)
            core.log.emit(event)


def _code_of(error: Exception) -> str:
    name = type(error).__name__ if type(error).__module__.startswith("protocol.") else "ModelError"
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")
