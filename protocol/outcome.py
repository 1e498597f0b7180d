"""What became of a turn: one total function (step 6 of the loop).

Calls that are present decide, not the finish reason, except where the turn was cut. `answer` needs a positive
end signal and visible content: a cut, blocked, failed, empty or malformed turn never passes for one.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .turns import ReasoningPart, ToolCall, Turn, calls_of

__all__ = ("Outcome", "OutcomeKind", "outcome_of")

OutcomeKind: TypeAlias = Literal["calls", "answer", "truncated", "blocked", "empty", "malformed", "failed"]
"""What a turn is, for the loop."""


@attrs.frozen
class Outcome:
    """The kind of a turn, and why where that is not plain."""

    kind: OutcomeKind
    cut: bool = False
    """Cut by a token limit, or by a server that paused: none of its calls may run, whole ones neither."""
    detail: str = ""
    """Unless it is plain: what was wrong, in words."""


_CUT = {"length", "paused"}
_CALLS = Outcome("calls")
_ANSWER = Outcome("answer")


def outcome_of(turn: Turn, max_tokens: int | None = None) -> Outcome:
    """Map how the stream ended, the finish reason, the calls and the visible text to one outcome.

    `max_tokens` is the output cap of the (last) request, if it had one: a server may report another reason although
    the cap cut the arguments of a call.
    """
    calls = calls_of(turn.parts)
    if turn.end == "lost":
        return Outcome("failed", detail="the reply broke off before its end")
    if calls:
        if turn.finish in _CUT or _cap_cut_a_call(turn, calls, max_tokens):
            return Outcome("calls", cut=True)
        return _CALLS
    match turn.finish:
        case "length" | "paused":
            return Outcome("truncated", cut=True, detail="" if turn.text else _why_no_text(turn, max_tokens))
        case "content_filter":
            return Outcome("blocked", detail=turn.raw_finish or "content_filter")
        case "malformed":
            return Outcome("malformed", detail=turn.raw_finish or "malformed")
        case "tool_calls":
            return Outcome("empty", detail="tool calls were announced, but there were none")
        case "other" if not turn.text:
            return Outcome("failed", detail=f"the reply ended with {turn.raw_finish!r} and held nothing")
        case "stop" | "other" | None:
            return _ANSWER if turn.text else Outcome("empty", detail="the reply held no text and no tool calls")


def _cap_cut_a_call(turn: Turn, calls: tuple[ToolCall, ...], max_tokens: int | None) -> bool:
    output = (turn.hops[-1] if turn.hops else turn).usage.output_tokens
    if max_tokens is None or output is None or output < max_tokens:
        return False
    return any(call.malformed is not None and call.malformed.lstrip().startswith("{") for call in calls)


def _why_no_text(turn: Turn, max_tokens: int | None) -> str:
    if turn.finish == "paused":
        return "the server paused its work before any visible text"
    cap = "the cap on output tokens" + ("" if max_tokens is None else f" ({max_tokens})")
    reasoned = bool(turn.usage.reasoning_tokens) or any(isinstance(part, ReasoningPart) for part in turn.parts)
    spent = "reasoning used up" if reasoned else "the reply used up"
    return f"{spent} {cap} before any visible text"
