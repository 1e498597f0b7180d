"""Graceful finalization in a run: when the final call is due, what it is told, and what its reply comes to (F1-F8)."""

from __future__ import annotations

import attrs

from protocol.errors import ModelReplyError
from protocol.events import Finalizing
from protocol.finalization import (
    FinalizationContext,
    built_in_instruction,
    fallback_text,
    final_call_due,
)
from protocol.ledger import Grant
from protocol.limits import LimitName, LimitState, finish_reason_for
from protocol.run import FinalCall, Finished, RunEnd
from protocol.text import clean
from protocol.turns import AssistantMessage, OpaquePart, TextPart, ToolCall

from ..logs import get_logger
from ._answers import answer_rejected, rejection_of
from ._callbacks import EndRun, call_user, failed
from ._core import RunCore, finish_word
from ._limits import short_of

__all__ = ("end_without_call", "follow_final", "handle_final", "prepare_final")

logger = get_logger(__name__)

_ONE_OPTION: tuple[set[LimitName], ...] = (
    {"tool_iterations", "tool_calls"},
    {"total_tokens", "cost", "wall_clock", "history_bytes"},
)
"""The limits that one finalization option covers: off for one is off for all of them (F1, F2)."""


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
                spent_tools=_spent_tools(core),
                short=short_of(core) if spec.budget_finalization is not None else None,
            )
            if limit is None:
                return
            state.final = FinalCall(limit)
        final = state.final
        if final.instruction is not None:
            return
        instruction = await _instruction(core, final.limit)
        if instruction is None and final.limit is None:
            raise EndRun(_stopped_by_condition(final))
        if instruction is None and not final.after_decision:
            assert final.limit is not None
            state.unfinalized |= next((names for names in _ONE_OPTION if final.limit.name in names), {final.limit.name})
            state.final = None
            continue
        if final.limit is not None:
            if not final.after_decision:
                core.reach(final.limit)
            core.log.emit(Finalizing(run=core.run, agent_path=core.path, limit=final.limit))
        state.final = attrs.evolve(final, instruction=instruction or built_in_instruction(final.limit))
        core.account.holds_final_call = False
        return


def _spent_tools(core: RunCore) -> LimitState | None:
    return None if core.spec.tool_iteration_limit_finalization is None else core.account.spent_tools()


def _name_of(limit: LimitState | None) -> str:
    return "stop" if limit is None else limit.name


async def _instruction(core: RunCore, limit: LimitState | None) -> str | None:
    """The text of the final call's last message; `None` if the function that makes it failed."""
    spec = core.spec
    name = _name_of(limit)
    option = {
        "tool_iterations": spec.tool_iteration_limit_finalization,
        "tool_calls": spec.tool_iteration_limit_finalization,
        "llm_calls": spec.llm_call_limit_finalization,
        "stop": spec.finalize_on_stop,
    }.get(name, spec.budget_finalization)
    if not callable(option):
        return clean(option) if option else built_in_instruction(limit)
    context = FinalizationContext(limit, core.state.run, core.log.agent_path, core.state.prompt, core.context)
    try:
        text = await call_user(option, context, seconds=spec.callback_timeout_seconds)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"a finalization function returns a str or None, not {type(text).__name__}")
    except Exception as error:
        logger.exception("a finalization failed", limit=name, agent_name=spec.name)
        core.warn(
            "finalization_failed", f"the {name} finalization raised {type(error).__name__} and is off for this run"
        )
        return None
    return clean(text) if text else built_in_instruction(limit)


async def handle_final(core: RunCore) -> RunEnd | None:
    """What the final call's reply comes to. Calls in it are neither run nor stored; nothing goes on after it."""
    state = core.state
    turn, outcome, final = state.turn, state.outcome, state.final
    assert turn is not None
    assert outcome is not None
    assert final is not None
    text = core.text
    whole = outcome.kind in {"answer", "calls", "empty"} and not outcome.cut
    whole = whole and turn.finish not in {"content_filter", "malformed"}  # calls beside the text do not make it whole
    if text:
        kept = tuple([part for part in turn.parts if not isinstance(part, ToolCall) and not _of_call(part)])
        core.history.append(AssistantMessage(kept if whole else (TextPart(text),), partial=not whole))
    word = finish_word(turn) or "stop"
    core.close_step()
    if outcome.kind == "failed":
        return failed("model_reply_error", "the model", ModelReplyError(outcome.detail))
    if final.limit is None:
        reason = final.stop_finish if not (text and whole) else "stop" if word == "tool_calls" else word
        ended = Finished("stop_condition", reason, stop_reason=final.stop_reason)
    else:
        name = final.limit.name
        reason = finish_reason_for(name) if final.after_decision else "stop" if word == "tool_calls" else word
        ended = Finished(name, reason, limit=final.limit)
    if text and whole:
        state.stored, state.closing = "final", attrs.evolve(ended, answer=text, finalized="model")
        return await follow_final(core)
    if text:
        return attrs.evolve(ended, finish_reason=word, finalized="model")
    state.final_calls += 1
    if core.spec.finalization_retry and state.final_calls == 1:
        return None
    return _fallback(core)


async def follow_final(core: RunCore) -> RunEnd:
    """Check the final answer, which has been stored."""
    closing = core.state.closing
    assert closing is not None
    assert closing.answer is not None
    rejected = await rejection_of(core, closing.answer)
    return closing if rejected is None else answer_rejected(rejected, limit=closing.limit)


def end_without_call(core: RunCore, refused: LimitState) -> RunEnd:
    """How the run ends when the ledger refuses its next model call."""
    state = core.state
    final = state.final
    if final is not None and final.limit is None and not state.final_calls:
        return _stopped_by_condition(final)
    if final is not None:
        return _fallback(core)
    if state.reasked_as == "malformed":
        error = ModelReplyError("malformed reply, and no model call is left to ask again")
        return failed("model_reply_error", "the model", error, limit=refused)
    if state.reasked_as == "rejected":
        return answer_rejected("no model call is left to ask again", limit=refused)
    if state.reasked_as is not None:
        return Finished("model", state.reasked_as, limit=refused, tell_limit=True)
    return Finished(refused.name, finish_reason_for(refused.name), limit=refused, tell_limit=True)


def _fallback(core: RunCore) -> RunEnd:
    final = core.state.final
    assert final is not None
    limit = final.limit
    text = fallback_text(limit, core.state.steps)
    if limit is None:
        return Finished(
            "stop_condition",
            final.stop_finish,
            stop_reason=final.stop_reason,
            finalized="fallback",
            closing_text=text,
        )
    return Finished(limit.name, finish_reason_for(limit.name), limit=limit, finalized="fallback", closing_text=text)


def _stopped_by_condition(final: FinalCall) -> RunEnd:
    return Finished("stop_condition", final.stop_finish, stop_reason=final.stop_reason)


def _of_call(part: object) -> bool:
    return isinstance(part, OpaquePart) and part.call is not None
