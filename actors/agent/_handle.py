"""What becomes of the turn in hand: steps 7 to 12 of loop.md section 3."""

from __future__ import annotations

from typing import assert_never

from protocol.errors import ModelReplyError
from protocol.run import Failed, FinalCall, Finished, RunEnd
from protocol.turns import AssistantMessage, TextPart, Turn, UserMessage

from ._answers import answer_rejected, continuation_of, rejection_of
from ._callbacks import failed, met_condition
from ._calls import handle_calls
from ._core import RunCore, finish_word
from ._final import handle_final
from ._services import Services

__all__ = ("handle", "next_step")

EMPTY_REASK = "Your last reply was empty: it held neither text nor a tool call. Answer, or call a tool."
MALFORMED_REASK = "Your last reply could not be read as text or as a tool call. Answer, or make the call again."


async def handle(core: RunCore, services: Services) -> RunEnd | None:
    """Handle the turn in hand: how the run ends, or `None` to go on. Raises `EndRun`."""
    state = core.state
    if state.final is not None:
        return await handle_final(core)
    turn, outcome = state.turn, state.outcome
    assert turn is not None
    assert outcome is not None
    match outcome.kind:
        case "calls":
            end = await handle_calls(core, services, turn)
            return end if end is not None or state.final is not None else await next_step(core, turn)
        case "answer":
            return await _answer(core, turn)
        case "empty" | "malformed":
            return await _no_progress(core, turn)
        case "truncated":
            _store_cut(core)
            return Finished("model", "length")
        case "blocked":
            _store_cut(core)
            return Finished("model", "content_filter", stop_reason=outcome.detail)
        case "failed":
            _store_cut(core)
            return failed("model_reply_error", "the model", ModelReplyError(outcome.detail))
        case _:
            assert_never(outcome.kind)


async def next_step(core: RunCore, turn: Turn) -> RunEnd | None:
    """Another model call would follow: ask the stop conditions (S2), and finalize if that is wanted (S6)."""
    met = await met_condition(core)
    if met is None or isinstance(met, Failed):
        return met
    word = finish_word(turn) or "stop"
    if core.spec.finalize_on_stop is None or "stop" in core.state.unfinalized:
        return Finished("stop_condition", word, stop_reason=met)
    core.state.final = FinalCall(None, stop_reason=met, stop_finish=word)
    return None


async def _answer(core: RunCore, turn: Turn) -> RunEnd | None:
    """Check the answer; go on where it is rejected, where messages wait, or where `continue_when` says so."""
    state = core.state
    text = core.text
    core.history.append(AssistantMessage(turn.parts))
    core.close_step()
    state.reasks = 0
    rejected = await rejection_of(core, text)
    if rejected is not None:
        if state.continues >= core.acting.max_continues:
            return answer_rejected(rejected)
        state.reasked_as = "rejected"
        return await _say(core, turn, rejected)
    if state.stop_requested is None:
        if state.steering:
            return await next_step(core, turn)
        said = await continuation_of(core)
        if said is not None:
            return await _say(core, turn, said)
    return Finished("model", "stop", answer=text)


async def _say(core: RunCore, turn: Turn, text: str) -> RunEnd | None:
    core.state.continues += 1
    core.history.append(UserMessage(text))
    return await next_step(core, turn)


def _store_cut(core: RunCore) -> None:
    """Keep the visible text of a turn that is no whole answer, marked partial."""
    if core.text:
        core.history.append(AssistantMessage((TextPart(core.text),), partial=True))
    core.close_step()


async def _no_progress(core: RunCore, turn: Turn) -> RunEnd | None:
    """Ask again for an empty or malformed turn, of which nothing is stored; a few times in a row (R5)."""
    state = core.state
    outcome = state.outcome
    assert outcome is not None
    core.close_step()
    if state.reasks < core.spec.max_reasks:
        state.reasks += 1
        state.reask = EMPTY_REASK if outcome.kind == "empty" else MALFORMED_REASK
        state.reasked_as = outcome.kind
        return await next_step(core, turn)
    if outcome.kind == "malformed":
        return failed("model_reply_error", "the model", ModelReplyError(f"malformed reply: {outcome.detail}"))
    return Finished("model", "empty", stop_reason=outcome.detail)
