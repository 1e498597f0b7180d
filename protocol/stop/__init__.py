"""Stop conditions: when a run ends although the model would go on (loop.md section 4).

Conditions run after every step, so none of the built-in ones gets slower as a run gets longer. They keep no state:
one condition may serve any number of runs.
"""

from __future__ import annotations

from ._budgets import cost_budget, time_budget, token_budget
from ._progress import consecutive_errors, no_progress
from ._state import StopCondition, StopState, Verdict, reason_of
from ._steps import DEFAULT_MAX_STEPS, is_loop_finished, is_step_count, max_steps
from ._tools import has_tool_call, has_tool_result

__all__ = (
    "DEFAULT_MAX_STEPS",
    "StopCondition",
    "StopState",
    "Verdict",
    "consecutive_errors",
    "cost_budget",
    "has_tool_call",
    "has_tool_result",
    "is_loop_finished",
    "is_step_count",
    "max_steps",
    "no_progress",
    "reason_of",
    "time_budget",
    "token_budget",
)
