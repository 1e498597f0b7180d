"""Limits and what is counted against them."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import attrs

from .errors import SpecError

__all__ = ("Counters", "LimitName", "LimitState", "Limits", "above_zero", "at_least_one", "finish_reason_for")

LimitName: TypeAlias = Literal[
    "tool_iterations", "llm_calls", "tool_calls", "total_tokens", "cost", "wall_clock", "history_bytes"
]
"""A limit, as `limit.name` says it in results and events. All are a run's own or a budget's, but for `history_bytes`: that
is the runtime's, of all its conversations together."""

_FINISH_REASONS: dict[LimitName, str] = {
    "tool_iterations": "max_iterations",
    "llm_calls": "max_llm_calls",
    "tool_calls": "max_tool_calls",
    "total_tokens": "budget",
    "cost": "budget",
    "wall_clock": "deadline",
    "history_bytes": "max_history_bytes",
}


def finish_reason_for(limit: LimitName) -> str:
    """The finish reason of a run that a limit ended (loop.md section 7)."""
    return _FINISH_REASONS[limit]


@attrs.frozen
class LimitState:
    """A limit at the moment it changed the course of a run."""

    name: LimitName
    max: int | float
    used: int | float


def at_least_one(_instance: object, field: attrs.Attribute[int | None], value: int | None) -> None:
    """Validate a limit: `None` for no limit, else an integer of 1 or more."""
    if value is None:
        return
    if type(value) is not int or value < 1:
        raise SpecError(f"{field.name} must be an integer >= 1, or None for no limit; it is {value!r}")


def above_zero(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    """Validate a limit: `None` for no limit, else a finite number above 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise SpecError(f"{field.name} must be a number above 0, or None for no limit; it is {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """What one run may use, or what a `Budget` holds. `None` is no limit.

    Raises `SpecError` (a `ValueError`) for what is neither `None` nor a number that a limit can be.
    """

    max_tool_iterations: int | None = attrs.field(default=None, validator=at_least_one)
    """Tool rounds in one window: since the run began, or since the last approval. Never shared: a run's own."""
    max_llm_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Model calls, those of all that a run starts included: a strict outer budget."""
    max_tool_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Tool bodies entered."""
    max_total_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """Tokens of all classes; what a call does not report is charged as an estimate."""
    max_cost: float | None = attrs.field(default=None, validator=above_zero)
    """US dollars."""
    wall_clock_seconds: float | None = attrs.field(default=None, validator=above_zero)
    """Seconds of work: waits for a decision or for the caller do not count."""

    def of(self, name: LimitName) -> int | float | None:
        """The value of the limit with this name."""
        match name:
            case "tool_iterations":
                return self.max_tool_iterations
            case "llm_calls":
                return self.max_llm_calls
            case "tool_calls":
                return self.max_tool_calls
            case "total_tokens":
                return self.max_total_tokens
            case "cost":
                return self.max_cost
            case "wall_clock":
                return self.wall_clock_seconds
            case "history_bytes":
                return None  # the runtime's


@attrs.frozen
class Counters:
    """What a run has used so far."""

    steps: int = 0
    """Turns of the model, re-asks and the final call included."""
    llm_calls: int = 0
    """Model calls counted against the run's account, those of its sub-agents included."""
    tool_iterations: int = 0
    """Tool rounds over all windows."""
    window: int = 0
    """Tool rounds in the present window."""
    tool_calls: int = 0
    """Tool bodies entered."""
