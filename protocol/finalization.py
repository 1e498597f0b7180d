"""Graceful finalization: one last model call with tools off, so that a limit ends in an answer (loop.md F1-F8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import attrs

from .ledger import Grant
from .limits import LimitState
from .result import StepResult
from .run import RunState
from .turns import AssistantMessage, Message, TextPart, ToolMessage, UserMessage, text_of

__all__ = (
    "UNITS",
    "FinalizationContext",
    "Instruction",
    "allowance",
    "built_in_instruction",
    "decline_texts",
    "fallback_text",
    "final_call_due",
    "flatten_tools",
)


@attrs.frozen
class FinalizationContext:
    """What an instruction function may look at."""

    limit: LimitState | None
    """The limit that is reached; `None`: a stop condition was met."""
    run: str
    agent_path: tuple[str, ...]
    prompt: str
    context: Any = None
    """What the caller gave to `agent.run(context=)`."""


Instruction: TypeAlias = str | Callable[[FinalizationContext], str | Awaitable[str | None] | None]
"""`""` is the built-in text; a text is used as it is; a function is asked (empty or `None`: the built-in text)."""

UNITS = {
    "tool_iterations": "rounds of tool calls",
    "llm_calls": "model calls",
    "tool_calls": "tool calls",
    "total_tokens": "tokens",
    "cost": "US dollars",
    "wall_clock": "seconds",
    "history_bytes": "bytes of stored conversations",
}
"""What a limit counts, as texts say it."""


def allowance(limit: LimitState) -> str:
    """What a limit allows, as texts say it: `5 model calls`, `0.25 US dollars`."""
    number = f"{limit.max:,}" if isinstance(limit.max, int) else f"{limit.max:,.6g}"
    return f"{number} {UNITS[limit.name]}"


def built_in_instruction(limit: LimitState | None) -> str:
    """The instruction of a final call, with the limit and its numbers."""
    why = (
        "The task is stopped here"
        if limit is None
        else f"You have reached the limit of {allowance(limit)} for this task"
    )
    return (
        f"{why}, and no tool can be called any more. Answer now, as well as you can, from what the conversation and the"
        " tool results already hold. Do not write out further tool calls. Say plainly what could not be found out."
    )


def final_call_due(
    state: RunState,
    grant: Grant,
    *,
    tool_finalization: bool,
    llm_finalization: bool,
    gate: bool,
    spent_tools: LimitState | None = None,
    short: LimitState | None = None,
) -> LimitState | None:
    """Whether the model call just reserved must be the final one, and for which limit (F1, F3, G1).

    The last call the run can get is final where that finalization is on, and wins over a full window. A full window
    makes the call final at once without a gate; with one, only where the ledger could not grant the call that would
    follow the gate's question. `spent_tools` is the limit of tool calls that is used up, `short` a limit of tokens, cost,
    time or memory that leaves room for a final call alone; both are given only where their finalization applies.
    """
    off = state.unfinalized
    if llm_finalization and grant.spent is not None and "llm_calls" not in off:
        return grant.spent
    full = tool_finalization and state.window_is_full() and "tool_iterations" not in off
    if full and (not gate or grant.spent is not None):
        return state.tool_limit()
    if spent_tools is not None and "tool_calls" not in off:
        return spent_tools
    if short is not None and short.name not in off:
        return short
    return None


def decline_texts(limit: LimitState, *, timed_out: bool, message: str | None) -> tuple[str, str]:
    """The result text of a call that the gate did not let run, and the user message that tells the model (G5)."""
    kind = limit.name.removeprefix("tool_").removesuffix("s").replace("_", " ")
    if timed_out:
        result = f"Tool call not run: {kind} limit reached, continuation request timed out."
        notice = "Continuation request timed out."
    else:
        result = f"Tool call not run: {kind} limit reached, continuation declined."
        notice = f"Maximum {kind} limit reached. Continuation declined."
    return result, "System notification: " + (message or notice)


def fallback_text(limit: LimitState | None, steps: Sequence[StepResult], *, max_results: int = 10) -> str:
    """A deterministic text for a run whose final call brought none: its last results, shortened (F5)."""
    opening = (
        "The run was stopped before an answer was found."
        if limit is None
        else f"The limit of {allowance(limit)} was reached before an answer was found."
    )
    results = [result for step in steps for result in step.results if result.status == "ok"][-max_results:]
    if not results:
        return f"{opening}\nNo tool had given a result."
    lines = [f"- {result.name}: {_shortened(result.text)}" for result in results]
    return "\n".join([opening, "The last tool results:", *lines])


def _shortened(text: str, max_chars: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[:max_chars] + "..."


def flatten_tools(messages: Sequence[Message]) -> list[Message]:
    """Write tool calls and results as text, for providers that take no tool blocks without definitions (F4)."""
    flat: list[Message] = []
    for message in messages:
        match message:
            case AssistantMessage():
                text = text_of(message.parts)
                if text:
                    flat.append(AssistantMessage((TextPart(text),), message.partial))
            case ToolMessage(results=results):
                flat.append(UserMessage("\n\n".join(f"[Result of {r.name}]\n{r.text}" for r in results)))
            case UserMessage():
                flat.append(message)
    return flat
