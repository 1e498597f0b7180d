"""Chat Completions: why a reply ended, in the words of many servers. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from protocol.turns import Finish

__all__ = ("failed", "finish_of", "outranking")

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "malformed_function_call": "malformed",
}
_FAILED = {"error", "abort"}


def finish_of(reason: str | None) -> Finish | None:
    """A server's finish reason in common words; `None` if it gave none, `other` if the word is not known."""
    if reason is None:
        return None
    word = reason.strip().lower()
    # Some put what was found behind a colon: "content_filter: SAFETY".
    return _FINISHES.get(word) or _FINISHES.get(word.partition(":")[0]) or "other"


def failed(reason: str) -> bool:
    """Whether a reason says that the server gave up."""
    return reason.lower() in _FAILED


def outranking(reasons: Iterable[str]) -> str:
    """The reason that counts, of all that a reply was given: a cut by a limit outranks the others.

    Servers and routers write `tool_calls` or `stop` over the cut of a reply that held the beginning of a call.
    """
    told = [reason for reason in reasons if reason]
    return next((reason for reason in told if finish_of(reason) == "length"), told[-1] if told else "")
