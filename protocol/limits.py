"""Limits and what is counted against them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .errors import SpecError

__all__ = ("Counters", "LimitName", "LimitState", "Limits", "finish_reason_for")

LimitName: TypeAlias = Literal["tool_iterations", "llm_calls", "tool_calls", "total_tokens", "cost", "wall_clock"]
"""A limit, as `limit.name` says it in results and events."""

_FINISH_REASONS: dict[LimitName, str] = {
    "tool_iterations": "max_iterations",
    "llm_calls": "max_llm_calls",
    "tool_calls": "max_tool_calls",
    "total_tokens": "budget",
    "cost": "budget",
    "wall_clock": "deadline",
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


@attrs.frozen(kw_only=True)
class Limits:
    """What one run may use. `None` is no limit.

    Raises `SpecError` (a `ValueError`) for anything but `None` or an integer of at least 1.
    """

    max_tool_iterations: int | None = attrs.field(default=None, validator=at_least_one)
    """Tool rounds in one window: since the run began, or since the last approval."""
    max_llm_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Model calls of the run and of all that it starts: a strict outer budget."""


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
