"""Conditions on calls that lead nowhere: the same one again and again, or nothing but failures.

Both read the calls backwards from the last step and leave off as soon as they know. A last step without a call that
counts cannot make a row longer, so it is judged at once: a long stretch without calls is not walked after each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from ..normalise import parse_arguments
from ..result import StepResult
from ..turns import ToolCall, ToolResult
from ._checks import check_count
from ._state import StopCondition, StopState, Verdict

__all__ = ("consecutive_errors", "no_progress")


def no_progress(k: int) -> StopCondition:
    """Stop when the last `k` calls, in the order the model made them and over steps, are identical.

    Identical are calls of one tool whose arguments are the same JSON value: white space, the order of keys and the
    spelling of a number do not matter. Calls that ended `discarded` are not seen. Raises `SpecError` unless `k` is an
    integer >= 2.
    """
    check_count(no_progress, "k", k, least=2)

    def no_progress_made(state: StopState) -> Verdict:
        calls = _seen_backwards(state.steps)
        last = next(calls, None)
        if last is None:
            return None
        for _ in range(k - 1):
            call = next(calls, None)
            if call is None or not _identical(call, last):
                return None
        return f"no progress: the last {k} calls of tool '{last.name}' are identical"

    return no_progress_made


def consecutive_errors(k: int) -> StopCondition:
    """Stop when the last `k` results, in call order and over steps, are failures: `error` or `timed_out`.

    Only an `ok` breaks the row. `interrupted`, `denied`, `discarded` and `not_run` say nothing of the tool, which was
    kept from an outcome: they neither count nor break it. Raises `SpecError` unless `k` is an integer >= 1.
    """
    check_count(consecutive_errors, "k", k)

    def consecutive_errors_reached(state: StopState) -> Verdict:
        outcomes = _outcomes_backwards(state.steps)
        for _ in range(k):
            result = next(outcomes, None)
            if result is None or result.status == "ok":
                return None
        return "the last tool call failed" if k == 1 else f"the last {k} tool calls failed"

    return consecutive_errors_reached


def _seen_backwards(steps: Sequence[StepResult]) -> Iterator[ToolCall]:
    """The calls that were not discarded, the last one first; none if the last step has none."""
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        discarded = {result.call for result in step.results if result.status == "discarded"}
        seen = [call for call in step.calls if call.id not in discarded]
        yield from reversed(seen)
        if not seen and index == len(steps) - 1:
            return


def _outcomes_backwards(steps: Sequence[StepResult]) -> Iterator[ToolResult]:
    """The results of calls that came to an outcome, the last one first; none if the last step has none."""
    for index in range(len(steps) - 1, -1, -1):
        outcomes = [result for result in steps[index].results if result.status in {"ok", "error", "timed_out"}]
        yield from reversed(outcomes)
        if not outcomes and index == len(steps) - 1:
            return


def _identical(left: ToolCall, right: ToolCall) -> bool:
    if left.name != right.name or left.malformed != right.malformed:
        return False
    if left.arguments == right.arguments:
        return True
    arguments, others = parse_arguments(left.arguments), parse_arguments(right.arguments)
    return arguments is not None and others is not None and _same(arguments, others)


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values; Python's own takes `true` for 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        mapping, other = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return mapping.keys() == other.keys() and all(_same(value, other[key]) for key, value in mapping.items())
    if isinstance(left, list) and isinstance(right, list):
        items, others = cast("list[Any]", left), cast("list[Any]", right)
        return len(items) == len(others) and all(map(_same, items, others))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
