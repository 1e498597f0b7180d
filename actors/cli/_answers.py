"""What a person may answer at the limit, and what each answer means. Pure."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from protocol.events import PendingCall
from protocol.gate import ContinuationRequest, ContinuationResponse

from ._style import Style, one_line
from ._words import call_line, limit_words

__all__ = ("HELP", "Misread", "WantsHelp", "WantsText", "deadline_words", "question", "read_answer")

HELP = """\
  a               approve: run the calls and go on
  s TEXT          approve with steering: run the calls, then the model reads TEXT
  x               discard: go on without running the calls; x 1 3 discards only these
  d [REASON]      decline: no more calls, the model answers from what it has"""

_SHOWN = 20
"""Pending calls that are listed; more are counted."""


@attrs.frozen
class Misread:
    """No answer: `why` says what would be one."""

    why: str


@attrs.frozen
class WantsText:
    """Approve with steering, and the text is still to be typed."""


@attrs.frozen
class WantsHelp:
    """Show the question again."""


Answer: TypeAlias = ContinuationResponse | Misread | WantsText | WantsHelp


def read_answer(line: str, calls: tuple[PendingCall, ...]) -> Answer:
    """Read what was typed. Whatever is not clearly an answer is none, and never an approval."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    match word.lower():
        case "a" | "approve" | "y" | "yes":
            return Misread("to say something to the model, answer: s TEXT") if rest else ContinuationResponse("approve")
        case "s" | "steer":
            return ContinuationResponse("approve", message=rest) if rest else WantsText()
        case "x" | "discard":
            return _discard(rest, calls)
        case "d" | "decline" | "n" | "no":
            return ContinuationResponse("decline", message=rest or None)
        case "?" | "h" | "help":
            return WantsHelp()
        case "":
            return Misread("answer a, s TEXT, x or d (? for help)")
        case _:
            return Misread(f"{one_line(word, 40)!r} is no answer; answer a, s TEXT, x or d (? for help)")


def _discard(rest: str, calls: tuple[PendingCall, ...]) -> Answer:
    if not rest:
        return ContinuationResponse("approve", discard_tool_calls=True)
    chosen: list[str] = []
    for word in rest.replace(",", " ").split():
        number = int(word) if word.isascii() and word.isdecimal() and len(word) < 6 else 0
        if not 1 <= number <= len(calls):
            return Misread(f"{one_line(word, 40)!r} is no call; x takes numbers from 1 to {len(calls)}")
        chosen.append(calls[number - 1].id)
    return ContinuationResponse("approve", discard_tool_calls=frozenset(chosen))


def question(request: ContinuationRequest, style: Style) -> str:
    """What is asked, over several lines: the limit, the pending calls, the answers."""
    calls = request.tool_calls
    wants = "1 more call" if len(calls) == 1 else f"{len(calls)} more calls"
    head = f"Limit reached: {limit_words(request.limit)} ({request.total_iterations} in all)."
    lines = [style.bold(style.yellow(f"{head} The model wants {wants}:"))]
    lines += [f"  {number:>2}  {call_line(call.name, call.arguments)}" for number, call in enumerate(calls[:_SHOWN], 1)]
    if len(calls) > _SHOWN:
        lines.append(f"      ... and {len(calls) - _SHOWN} more")
    lines.append(style.dim(HELP))
    if request.expires_in_seconds is not None:
        becomes = "approved" if request.on_timeout == "approve" else "declined"
        lines.append(style.dim(deadline_words(request.expires_in_seconds, becomes)))
    return "\n".join(lines)


def deadline_words(seconds: float, becomes: str) -> str:
    """Until when an answer is waited for, and what becomes of the question then."""
    return f"Without an answer within {seconds:g} s it is {becomes}."
