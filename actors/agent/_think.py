"""One model call: steps 1 to 6 of loop.md section 3."""

from __future__ import annotations

import msgspec

from protocol.errors import ActorCrashed, ActorGone, ContextOverflow, ContinuationInterrupted, ModelError
from protocol.events import MessageDelivered, StepStarted, ToolRequested
from protocol.joining import input_of
from protocol.ledger import Grant
from protocol.model import ForceTool, Model, ModelRequest
from protocol.outcome import Outcome, outcome_of
from protocol.run import RunEnd
from protocol.turns import Turn, Unfinished, UserMessage, raw_text_of

from ._budget import Reserve
from ._callbacks import EndRun, call_hook, failed
from ._charges import hold, report_usage, settle_ledger
from ._compact import make_room, make_room_again, measure
from ._continue import continued, resume_stored, resuming
from ._core import RunCore
from ._final import end_without_call, prepare_final
from ._gate import stopped
from ._given import given_messages
from ._limits import ask_about_limits, out_of_memory
from ._prepare import is_changed, plain_request, prepare, tools_off
from ._resolve import bind_calls
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
    _drop_stale_question(core)
    state.step_began = core.elapsed_seconds
    if core.shared.memory is not None and (full := out_of_memory(core)) is not None:
        return end_without_call(core, full)
    grant = await services.budget.ask(Reserve())
    state.reservation, state.sent = grant.number, False
    if grant.refused is not None:
        return end_without_call(core, grant.refused)
    if state.final is not None or core.may_finalize:
        await prepare_final(core, grant)
    if state.steering:
        _deliver_steering(core)
    core.log.emit(StepStarted(run=core.run, agent_path=core.path, step=state.step, final=state.final is not None))
    if core.acting.compact is not None:
        await make_room(core)
    request, model = await prepare(core) if is_changed(core) else plain_request(core)
    if state.resumed is not None:
        request = resuming(core, request, model.profile)
    if core.journal.durable:
        state.leaving = True
        await core.barrier()
    return await _call(core, services, request, model)


def _drop_stale_question(core: RunCore) -> None:
    """End a question that was asked before a restart, where by the limits of today nobody is asked."""
    state = core.state
    if state.open_request is not None:
        core.requests.end(state.open_request, "cancelled")
        state.open_request = None


async def _call(core: RunCore, services: Services, request: ModelRequest, model: Model) -> RunEnd | None:
    """Send the request, and take the turn that it brings in hand."""
    try:
        lacking = hold(core, request, model)
        if lacking is not None:
            return end_without_call(core, lacking)
        try:
            if request.resume is None:
                turn = await services.session.ask(Think(request, model))
            else:
                turn = await resume_stored(core, services, request, model)
        except ContextOverflow as refusal:
            request, turn = await _ask_shorter(core, services, request, model, refusal)
        measure(core, request, model, turn)
        outcome = outcome_of(turn, request.max_tokens or model.profile.default_max_tokens)
        if outcome.cut:
            request, turn, outcome = await continued(core, services, request, model, turn)
    except (EndRun, ActorGone, ActorCrashed):
        raise
    except Exception as error:  # noqa: BLE001  a model is foreign code
        if isinstance(error, ModelError):
            _keep_partial(core, error)
        return failed(_code_of(error), "the model", error)
    _take(core, turn, request, outcome)
    return None


def _keep_partial(core: RunCore, error: ModelError) -> None:
    """Keep what the model says it had of its reply, where that is more than was shown (R3)."""
    state, partial = core.state, error.partial
    if partial is not None:
        text = raw_text_of(partial.parts) if core.hop is None else core.hop.shown_with(raw_text_of(partial.parts))
        if len(text) > len("".join(state.shown)):
            state.shown = [text]
    if isinstance(error, ContinuationInterrupted) and error.token is not None:
        state.unfinished = Unfinished(error.token, error.interaction_id, error.continuation_ids)


def _deliver_steering(core: RunCore) -> None:
    waiting, core.state.steering = core.state.steering, []
    for message in waiting:
        core.history.append(UserMessage(message.text))
        core.log.emit(MessageDelivered(run=core.run, agent_path=core.path, message=message.id))
    core.keep()


async def _ask_shorter(
    core: RunCore, services: Services, request: ModelRequest, model: Model, refusal: ContextOverflow
) -> tuple[ModelRequest, Turn]:
    """The request was refused for its length: send a shorter one, as a call of its own.

    First the stored conversation is compacted, a few times; then `on_context_overflow` is asked, once (H8). Raises the last
    refusal where nothing makes it shorter, or no call is left.
    """
    refused = 1
    while core.acting.compact is not None and refused <= core.acting.max_compactions:
        request = await _reserved_again(core, services, request, model, refusal)
        shorter = await make_room_again(core, request, refusal, attempt=refused)
        if shorter is None:
            break
        request = shorter
        try:
            return request, await _sent_again(core, services, request, model, refused)
        except ContextOverflow as again:
            refusal, refused = again, refused + 1
    shortened = await _shortened(core, request)
    if shortened is None:
        raise refusal
    request = await _reserved_again(core, services, shortened, model, refusal)
    return request, await _sent_again(core, services, request, model, refused)


async def _reserved_again(
    core: RunCore, services: Services, request: ModelRequest, model: Model, refusal: ContextOverflow
) -> ModelRequest:
    """Count one call more: its request, which may be the final call's. Raises the refusal if there is no call left."""
    settle_ledger(core)
    report_usage(core)
    state = core.state
    grant = await services.budget.ask(Reserve())
    state.reservation, state.sent = grant.number, False
    if grant.refused is not None:
        raise refusal
    if state.final is None and core.may_finalize:
        return await _finalized(core, grant, request, model)
    return request


async def _sent_again(core: RunCore, services: Services, request: ModelRequest, model: Model, refused: int) -> Turn:
    """Send a request whose call is counted, after so many that were refused."""
    lacking = hold(core, request, model)
    if lacking is not None:
        raise EndRun(end_without_call(core, lacking))
    if core.journal.durable:
        core.state.leaving = True
        await core.barrier()
    if request.resume is not None:
        return await resume_stored(core, services, request, model, refused=refused)
    return await services.session.ask(Think(request, model))


async def _finalized(core: RunCore, grant: Grant, request: ModelRequest, model: Model) -> ModelRequest:
    """A request that is ready, turned into the final call if the call just reserved is that one."""
    await prepare_final(core, grant)
    final = core.state.final
    if final is None:
        return request
    return tools_off(msgspec.structs.replace(request, tail=final.instruction), model.profile)


async def _shortened(core: RunCore, request: ModelRequest) -> ModelRequest | None:
    """The request with what `on_context_overflow` makes of its messages; `None` to let it fail (H8)."""
    hook = core.acting.on_context_overflow
    if hook is None:
        return None
    messages = await call_hook(core, "on_context_overflow", hook, request.messages)
    if messages is None:
        return None
    return msgspec.structs.replace(request, messages=given_messages(messages, "on_context_overflow"))


def _take(core: RunCore, turn: Turn, request: ModelRequest, outcome: Outcome) -> None:
    """Take the turn in hand: what it is, and which calls it asks for."""
    state = core.state
    state.shown = []
    state.resumed = state.reask = state.reasked_as = None
    core.message = ""
    state.context_tokens = input_of(turn)
    state.unfinished = turn.unfinished
    state.outcome = outcome
    asked = state.final is None and outcome.kind == "calls"
    core.hold(turn)
    if asked and not outcome.cut:
        bind_calls(core, turn)
    if core.text:
        state.texts.append(core.text)
    calls = core.calls
    choice = request.tool_choice
    state.obeyed_choice = choice != "auto" and any(choice in {"required", ForceTool(call.name)} for call in calls)
    if state.obeyed_choice and choice == core.acting.tool_choice:
        state.spent_choice = True
    if not asked:
        return
    for call in calls:
        event = ToolRequested(
            run=core.run,
            agent_path=core.path,
            call=call.id,
            name=call.name,
            arguments=core.arguments_of(call),
            repaired=call.repaired,
        )
        core.log.emit(event)


def _code_of(error: Exception) -> str:
    name = type(error).__name__ if type(error).__module__.startswith("protocol.") else "ModelError"
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")
