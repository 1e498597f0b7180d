"""Graceful finalization in a run: when the final call is due, what it is told, and what its reply comes to (F1-F8)."""

from __future__ import annotations

import logging

import attrs

from protocol.errors import ModelReplyError
from protocol.events import Finalizing, Warned
from protocol.finalization import (
    FinalizationContext,
    Instruction,
    built_in_instruction,
    fallback_text,
    final_call_due,
)
from protocol.ledger import Grant
from protocol.limits import LimitName, LimitState, finish_reason_for
from protocol.run import FinalCall, Finished, RunEnd
from protocol.text import clean
from protocol.turns import AssistantMessage, OpaquePart, TextPart, ToolCall

from ._callbacks import call_user, failed
from ._core import RunCore, finish_word

__all__ = ("end_without_call", "handle_final", "prepare_final")

logger = logging.getLogger("onward")


async def prepare_final(core: RunCore, grant: Grant) -> None:
    """Decide whether the call just reserved is the final one, and make its instruction."""
    state = core.state
    spec = core.spec
    while True:
        if state.final is None:
            limit = final_call_due(
                state,
                grant,
                tool_finalization=spec.tool_iteration_limit_finalization is not None,
                llm_finalization=spec.llm_call_limit_finalization is not None,
                gate=spec.continuation is not None,
            )
            if limit is None:
                return
            state.final = FinalCall(limit)
        final = state.final
        if final.instruction is not None:
            return
        instruction = await _instruction(core, final.limit)
        if instruction is None and not final.after_decision:
            state.unfinalized.add(final.limit.name)
            state.final = None
            continue
        if not final.after_decision:
            core.reach(final.limit)
        core.log.emit(Finalizing(run=core.run, agent_path=core.path, limit=final.limit))
        state.final = attrs.evolve(final, instruction=instruction or built_in_instruction(final.limit))
        core.account.holds_final_call = False
        return


async def _instruction(core: RunCore, limit: LimitState) -> str | None:
    """The text of the final call's last message; `None` if the function that makes it failed."""
    spec = core.spec
    options: dict[LimitName, Instruction | None] = {
        "tool_iterations": spec.tool_iteration_limit_finalization,
        "llm_calls": spec.llm_call_limit_finalization,
    }
    option = options.get(limit.name)
    if not callable(option):
        return clean(option) if option else built_in_instruction(limit)
    context = FinalizationContext(limit, core.state.run, core.log.agent_path, core.state.prompt, core.context)
    try:
        text = await call_user(option, context, seconds=spec.callback_timeout_seconds)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"a finalization function returns a str or None, not {type(text).__name__}")
    except Exception as error:
        logger.exception("the %s finalization of agent %s failed", limit.name, spec.name)
        told = f"the {limit.name} finalization raised {type(error).__name__} and is off for this run"
        core.log.emit(Warned(run=core.run, agent_path=core.path, code="finalization_failed", text=told))
        return None
    return clean(text) if text else built_in_instruction(limit)


def handle_final(core: RunCore) -> RunEnd | None:
    """What the final call's reply comes to. Calls in it are neither run nor stored; nothing goes on after it."""
    state = core.state
    turn, outcome, final = state.turn, state.outcome, state.final
    assert turn is not None
    assert outcome is not None
    assert final is not None
    text = core.text
    whole = outcome.kind in {"answer", "calls", "empty"} and not outcome.cut
    if text:
        kept = tuple([part for part in turn.parts if not isinstance(part, ToolCall) and not _of_call(part)])
        core.history.append(AssistantMessage(kept if whole else (TextPart(text),), partial=not whole))
    word = finish_word(turn) or "stop"
    core.close_step()
    if outcome.kind == "failed":
        return failed("model_reply_error", "the model", ModelReplyError(outcome.detail))
    name = final.limit.name
    if text and whole:
        reason = finish_reason_for(name) if final.after_decision else "stop" if word == "tool_calls" else word
        return Finished(name, reason, answer=text, limit=final.limit, finalized="model")
    if text:
        return Finished(name, word, limit=final.limit, finalized="model")
    state.final_calls += 1
    if core.spec.finalization_retry and state.final_calls == 1:
        return None
    return _fallback(core)


def end_without_call(core: RunCore, refused: LimitState) -> RunEnd:
    """How the run ends when the ledger refuses its next model call."""
    state = core.state
    if state.final is not None:
        return _fallback(core)
    if state.reasked_as == "malformed":
        error = ModelReplyError("malformed reply, and no model call is left to ask again")
        return failed("model_reply_error", "the model", error, limit=refused)
    if state.reasked_as is not None:
        return Finished("model", state.reasked_as, limit=refused, tell_limit=True)
    return Finished(refused.name, finish_reason_for(refused.name), limit=refused, tell_limit=True)


def _fallback(core: RunCore) -> RunEnd:
    final = core.state.final
    assert final is not None
    limit = final.limit
    text = fallback_text(limit, core.state.steps)
    return Finished(limit.name, finish_reason_for(limit.name), limit=limit, finalized="fallback", closing_text=text)


def _of_call(part: object) -> bool:
    return isinstance(part, OpaquePart) and part.call is not None
