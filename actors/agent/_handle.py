"""What becomes of the turn in hand: steps 7 to 12 of loop.md section 3.

`answer_calls` gives a turn with calls its results, `store` puts the turn away, `next_step` asks whether another model call
may follow: the driver's three, and those of a loop of the user's own.
"""

from __future__ import annotations

from typing import assert_never

from protocol.errors import ModelReplyError
from protocol.run import Failed, FinalCall, Finished, RunEnd
from protocol.turns import AssistantMessage, TextPart, UserMessage

from ._answers import answer_rejected, continuation_of, rejection_of
from ._callbacks import failed, met_condition
from ._calls import store_calls
from ._core import RunCore
from ._final import follow_final, handle_final

__all__ = ("follow_up", "next_step", "settle", "stopped_by_condition", "store", "wants_tools")

EMPTY_REASK = "Your last reply was empty: it held neither text nor a tool call. Answer, or call a tool."
MALFORMED_REASK = "Your last reply could not be read as text or as a tool call. Answer, or make the call again."


async def settle(core: RunCore) -> RunEnd | None:
    """Put the turn in hand away, and ask whether another model call may follow. Raises `EndRun`.

    A turn that was stored before a restart is only followed up.
    """
    state = core.state
    end = await (store(core) if state.stored is None else follow_up(core))
    if end is None and state.final is None:
        end = await next_step(core)
    if end is None:
        state.stored = None
    return end


def wants_tools(core: RunCore) -> bool:
    """Whether the turn in hand asks for tools, and may."""
    state = core.state
    return state.final is None and state.outcome is not None and state.outcome.kind == "calls"


async def follow_up(core: RunCore) -> RunEnd | None:
    """What follows upon a turn that has been stored, before the conditions are asked. Raises `EndRun`."""
    match core.state.stored:
        case "answer":
            return await _follow_answer(core, core.state.steps[-1].text)
        case "final":
            return await follow_final(core)
        case _:
            return None


async def store(core: RunCore) -> RunEnd | None:
    """Put the turn in hand away, its calls answered: how it ends the run, or `None` if another model call would follow.

    Raises `EndRun`.
    """
    state = core.state
    if state.final is not None:
        return await handle_final(core)
    outcome = state.outcome
    assert outcome is not None
    match outcome.kind:
        case "calls":
            return store_calls(core)
        case "answer":
            return await _answer(core)
        case "empty" | "malformed":
            return _no_progress(core)
        case "truncated":
            limit = state.uncontinued
            _store_cut(core)
            return Finished(
                "model", "length", stop_reason=outcome.detail or None, limit=limit, tell_limit=limit is not None
            )
        case "blocked":
            _store_cut(core)
            return Finished("model", "content_filter", stop_reason=outcome.detail)
        case "failed":
            _store_cut(core)
            return failed("model_reply_error", "the model", ModelReplyError(outcome.detail))
        case _:
            assert_never(outcome.kind)


async def next_step(core: RunCore) -> RunEnd | None:
    """Another model call would follow: ask the stop conditions (S2), and finalize if that is wanted (S6)."""
    if core.state.stop_requested is not None:
        return None  # no call follows: the run ends at this boundary
    met = await met_condition(core)
    if met is None or isinstance(met, Failed):
        return met
    end = stopped_by_condition(core, met)
    if core.spec.finalize_on_stop is None:
        return end
    core.state.final = FinalCall(None, stop_reason=met, stop_finish=end.finish_reason)
    return None


def stopped_by_condition(core: RunCore, reason: str) -> Finished:
    """How a run ends that a condition stopped."""
    return Finished("stop_condition", core.state.steps[-1].finish_reason or "stop", stop_reason=reason)


async def _answer(core: RunCore) -> RunEnd | None:
    """Store the answer."""
    state = core.state
    turn, text = state.turn, core.text
    assert turn is not None
    core.history.append(AssistantMessage(turn.parts))
    core.close_step()
    state.reasks = 0
    state.stored = "answer"
    return await _follow_answer(core, text)


async def _follow_answer(core: RunCore, text: str) -> RunEnd | None:
    """Check the answer; go on where it is rejected, where messages wait, or where `continue_when` says so."""
    state = core.state
    rejected = await rejection_of(core, text)
    if rejected is not None:
        if state.continues >= core.acting.max_continues:
            return answer_rejected(rejected)
        state.reasked_as = "rejected"
        _say(core, rejected)
        return None
    if state.stop_requested is None:
        if state.steering:
            state.stored = "turn"
            return None
        said = await continuation_of(core)
        if said is not None:
            _say(core, said)
            return None
    return Finished("model", "stop", answer=text)


def _say(core: RunCore, text: str) -> None:
    core.state.stored = "turn"
    core.state.continues += 1
    core.history.append(UserMessage(text))
    core.keep()


def _store_cut(core: RunCore) -> None:
    """Keep the visible text of a turn that is no whole answer, marked partial."""
    if core.text:
        core.history.append(AssistantMessage((TextPart(core.text),), partial=True))
    core.close_step()


def _no_progress(core: RunCore) -> RunEnd | None:
    """Ask again for an empty or malformed turn, of which nothing is stored; a few times in a row (R5)."""
    state = core.state
    outcome = state.outcome
    assert outcome is not None
    core.close_step()
    if state.reasks < core.spec.max_reasks:
        state.reasks += 1
        state.reask = EMPTY_REASK if outcome.kind == "empty" else MALFORMED_REASK
        state.reasked_as = outcome.kind
        return None
    if outcome.kind == "malformed":
        return failed("model_reply_error", "the model", ModelReplyError(f"malformed reply: {outcome.detail}"))
    return Finished("model", "empty", stop_reason=outcome.detail)
