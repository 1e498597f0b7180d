"""Conditions on the number of steps."""

from __future__ import annotations

from ._checks import check_count
from ._state import StopCondition, StopState, Verdict

__all__ = ("DEFAULT_MAX_STEPS", "is_loop_finished", "is_step_count", "max_steps")

DEFAULT_MAX_STEPS = 20
"""The steps of an agent that sets no stop condition and no limit of its own (S5)."""


def is_step_count(n: int) -> StopCondition:
    """Stop when exactly `n` steps are finished. Raises `SpecError` unless `n` is an integer >= 1."""
    check_count(is_step_count, "n", n)

    def is_step_count_reached(state: StopState) -> Verdict:
        return f"maximum number of steps ({n}) reached" if len(state.steps) == n else None

    return is_step_count_reached


def max_steps(n: int) -> StopCondition:
    """Stop when `n` steps or more are finished. Raises `SpecError` unless `n` is an integer >= 1."""
    check_count(max_steps, "n", n)

    def max_steps_reached(state: StopState) -> Verdict:
        return f"maximum number of steps ({n}) reached" if len(state.steps) >= n else None

    return max_steps_reached


def is_loop_finished() -> StopCondition:
    """Never fire: the run ends when the model does, or at a limit."""

    def loop_finished(_state: StopState) -> Verdict:
        return None

    return loop_finished
