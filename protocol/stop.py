"""Stop conditions: when a run ends although the model would go on (loop.md section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from .errors import SpecError
from .result import StepResult
from .turns import Message
from .usage import Usage

__all__ = (
    "DEFAULT_MAX_STEPS",
    "StopCondition",
    "StopState",
    "Verdict",
    "has_tool_call",
    "is_loop_finished",
    "is_step_count",
    "max_steps",
    "reason_of",
)

DEFAULT_MAX_STEPS = 20
"""The steps of an agent that sets no stop condition and no limit of its own (S5)."""


class StopState(msgspec.Struct, frozen=True, kw_only=True):
    """What a condition may look at: read-only views, not copies."""

    steps: Sequence[StepResult]
    """All finished steps of the run; the last one is the step just finished."""
    messages: Sequence[Message]
    usage: Usage
    step_number: int
    """Zero-based number of the step just finished."""
    elapsed_seconds: float
    cost: float | None = None
    """In US dollars; `None`: unknown."""
    context: Any = None
    """What the caller gave to `agent.run(context=)`."""


Verdict: TypeAlias = str | bool | None
"""What a condition returns."""
StopCondition: TypeAlias = Callable[[StopState], Verdict | Awaitable[Verdict]]
"""`None`, `""` or `False` to go on; a text to stop, and why; `True` to stop for the condition's name."""


def reason_of(condition: StopCondition, verdict: object) -> str | None:
    """The reason a verdict gives, or `None` to go on. Raises `TypeError` for what is no verdict."""
    if verdict is None or verdict is False or verdict == "":
        return None
    if verdict is True:
        return str(getattr(condition, "__name__", type(condition).__name__))
    if isinstance(verdict, str):
        return verdict
    raise TypeError(f"a stop condition returns a str, a bool or None, not {type(verdict).__name__}")


def _count(name: str, n: int) -> int:
    if type(n) is not int or n < 1:
        raise SpecError(f"{name}(n): n must be an integer >= 1; it is {n!r}")
    return n


def is_step_count(n: int) -> StopCondition:
    """Stop when exactly `n` steps are finished."""
    _count("is_step_count", n)

    def is_step_count_reached(state: StopState) -> Verdict:
        return f"maximum number of steps ({n}) reached" if len(state.steps) == n else None

    return is_step_count_reached


def max_steps(n: int) -> StopCondition:
    """Stop when `n` steps or more are finished."""
    _count("max_steps", n)

    def max_steps_reached(state: StopState) -> Verdict:
        return f"maximum number of steps ({n}) reached" if len(state.steps) >= n else None

    return max_steps_reached


def has_tool_call(*names: str) -> StopCondition:
    """Stop when the last step called one of these tools, whatever became of the call but `discarded`."""
    if not names:
        raise SpecError("has_tool_call() needs at least one tool name")

    def tool_was_called(state: StopState) -> Verdict:
        for result in state.steps[-1].results:
            if result.name in names and result.status != "discarded":
                return f"tool '{result.name}' was called"
        return None

    return tool_was_called


def is_loop_finished() -> StopCondition:
    """Never fire: the run ends when the model does, or at a limit."""

    def loop_finished(_state: StopState) -> Verdict:
        return None

    return loop_finished
