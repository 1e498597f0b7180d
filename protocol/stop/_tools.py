"""Conditions on the tools of the last step."""

from __future__ import annotations

from collections.abc import Sequence

from ..turns import ToolResult
from ._checks import check_names
from ._state import StopCondition, StopState, Verdict

__all__ = ("has_tool_call", "has_tool_result")


def has_tool_call(*names: str) -> StopCondition:
    """Stop when the last step called one of these tools, whatever became of the call but `discarded`.

    Raises `SpecError` without a name, or for one that is no text.
    """
    check_names(has_tool_call, names)

    def tool_was_called(state: StopState) -> Verdict:
        for result in _last_results(state):
            if result.name in names and result.status != "discarded":
                return f"tool '{result.name}' was called"
        return None

    return tool_was_called


def has_tool_result(*names: str) -> StopCondition:
    """Stop when a call of the last step to one of these tools succeeded: its status is `ok`.

    Raises `SpecError` without a name, or for one that is no text.
    """
    check_names(has_tool_result, names)

    def tool_returned(state: StopState) -> Verdict:
        for result in _last_results(state):
            if result.name in names and result.status == "ok":
                return f"tool '{result.name}' returned a result"
        return None

    return tool_returned


def _last_results(state: StopState) -> Sequence[ToolResult]:
    return state.steps[-1].results if state.steps else ()
