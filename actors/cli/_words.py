"""How the command says things: calls, counters, tokens, limits and ends, each on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from protocol.errors import (
    ContextOverflow,
    ModelError,
    ModelRateLimited,
    ModelReplyError,
    ModelServerError,
    ModelTimeout,
    ModelUnreachable,
)
from protocol.events import ApprovalRequired, ContextCompacted, ContinuationRequired, RunPaused
from protocol.limits import LimitState
from protocol.result import RunResult, RunSummary
from protocol.usage import Usage

from ._style import harmless, one_line

__all__ = (
    "call_line",
    "closing_text",
    "compaction_words",
    "count",
    "end_line",
    "hint_for",
    "limit_words",
    "summary_line",
    "token_words",
    "waits_for",
)

_LIMITS = {
    "tool_iterations": "tool iterations",
    "llm_calls": "model calls",
    "tool_calls": "tool calls",
    "total_tokens": "tokens",
    "cost": "US dollars",
    "wall_clock": "seconds",
    "history_bytes": "bytes of conversations",
}

_HINTS: tuple[tuple[type[ModelError], str], ...] = (
    (ModelUnreachable, "Start the server, or correct --base-url. (--model rules needs no server.)"),
    (ModelRateLimited, "Wait a little and try again, or raise the limit at the provider."),
    (ContextOverflow, "Ask for less at once, or take a model with a larger context window."),
    (ModelServerError, "The server's own log says more; try again later."),
    (ModelTimeout, "The server was reached and is silent: its own log says more."),
    (ModelReplyError, "Is --base-url the address of an OpenAI-compatible server, up to its /v1?"),
)


def count(number: int, thing: str) -> str:
    """The number with its thing: `1 file`, `2 files`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def call_line(name: str, arguments: Mapping[str, Any], max_chars: int = 100) -> str:
    """A call as a person reads it: the name, and what it is called with."""
    said = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return one_line(f"{name}({said})", max_chars)


def limit_words(limit: LimitState) -> str:
    """How far a limit is used: `3 of 3 tool iterations`."""
    return f"{limit.used:g} of {limit.max:g} {_LIMITS[limit.name]}"


def compaction_words(event: ContextCompacted) -> str:
    """What a compaction made of the conversation."""
    return (
        f"conversation compacted by {harmless(event.by)}: {event.messages_before:,} -> {event.messages_after:,} messages,"
        f" about {event.tokens_before:,} -> {event.tokens_after:,} tokens"
    )


def token_words(usage: Usage) -> str:
    """The tokens; what was not reported is called unknown."""
    if not usage.complete and usage.total_tokens == 0:
        return "tokens unknown"
    said = f"{usage.input_tokens:,} tokens in, {usage.output_tokens or 0:,} out"
    return said if usage.complete else f"at least {said} (some unknown)"


def summary_line(result: RunResult | RunSummary) -> str:
    """Calls, iterations, tokens, cost and time."""
    counters = result.counters
    cost = "cost unknown" if result.cost is None else f"${result.cost:.4f}"
    parts = (
        count(counters.llm_calls, "model call"),
        count(counters.tool_iterations, "tool iteration"),
        count(counters.tool_calls, "tool call"),
        token_words(result.usage),
        cost,
        f"{result.elapsed_seconds:.2f} s",
    )
    return " | ".join(parts)


def end_line(result: RunResult | RunSummary) -> str:
    """How the run ended, where that is not plain from its answer."""
    if result.answered:
        return "" if result.limit is None else f"Answered at the limit: {limit_words(result.limit)}."
    if result.limit is not None:
        return f"Stopped without an answer: {limit_words(result.limit)} used. A higher limit would let it go on."
    match result.stopped_by:
        case "caller":
            return f"Stopped: {result.stop_reason or 'asked to'}."
        case "stop_condition" | "tool":
            return f"Stopped by a condition: {result.stop_reason or result.stopped_by}."
        case _:
            return f"No whole answer: the model's reply ended with {result.finish_reason!r}."


def closing_text(result: RunResult | RunSummary, texts: Sequence[str]) -> str:
    """What the runtime added to the texts of the turns, which were shown as they came."""
    shown = "\n\n".join([text for text in texts if text])
    if result.answered or not result.text.startswith(shown):
        return ""
    return result.text.removeprefix(shown).lstrip("\n")


def hint_for(error: BaseException | None) -> str:
    """What to try, for an error that a model call ended in; `""` for any other."""
    return next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")


def waits_for(request: ContinuationRequired | ApprovalRequired | RunPaused) -> str:
    """What a run waits for, and how long yet: `a decision: 3 of 3 tool iterations, 8 calls; 600 s left`."""
    match request:
        case ContinuationRequired(limit=limit, tool_calls=calls, expires_in_seconds=seconds):
            said = f"a decision: {limit_words(limit)}, {count(len(calls), 'call')}"
        case ApprovalRequired(name=name, arguments=arguments, expires_in_seconds=seconds):
            said = f"an approval: {call_line(name, arguments)}"
        case RunPaused(calls=calls):
            said, seconds = f"the results of {count(len(calls), 'call')}, which its caller runs", None
    return said if seconds is None else f"{said}; {seconds:g} s left"
