"""Conditions on what a run has used: soft bounds, looked at after a step. A limit is the strict form of each."""

from __future__ import annotations

from ._checks import check_amount, check_count
from ._state import StopCondition, StopState, Verdict

__all__ = ("cost_budget", "time_budget", "token_budget")


def token_budget(n: int) -> StopCondition:
    """Stop when the run, with all it started, has used `n` tokens or more, input and output together.

    Of calls that did not report their usage, what is known counts. Raises `SpecError` unless `n` is an integer >= 1.
    """
    check_count(token_budget, "n", n)

    def token_budget_reached(state: StopState) -> Verdict:
        return f"token budget ({n}) reached" if state.usage.total_tokens >= n else None

    return token_budget_reached


def cost_budget(x: float) -> StopCondition:
    """Stop when the run, with all it started, has cost `x` US dollars or more.

    It does not fire while the cost is unknown: a model without a price. Raises `SpecError` unless `x` is a finite
    number above 0.
    """
    check_amount(cost_budget, "x", x, unit="US dollars")

    def cost_budget_reached(state: StopState) -> Verdict:
        return f"cost budget (${x}) reached" if state.cost is not None and state.cost >= x else None

    return cost_budget_reached


def time_budget(seconds: float) -> StopCondition:
    """Stop when the run has lasted for `seconds` or longer; a step that is going on is not cut.

    Raises `SpecError` unless `seconds` is a finite number above 0.
    """
    check_amount(time_budget, "seconds", seconds, unit="seconds")

    def time_budget_reached(state: StopState) -> Verdict:
        return f"time budget ({seconds} s) reached" if state.elapsed_seconds >= seconds else None

    return time_budget_reached
