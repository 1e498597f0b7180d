"""The stop conditions of a case, in the words of the cases, as real functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from protocol.stop import StopCondition, StopState, Verdict, has_tool_result
from protocol.turns import ToolResult

from .phrases import Phrases
from .program import Case

Seen: TypeAlias = list[tuple[ToolResult, ...]]
"""The results of the last step, each time that a condition was asked."""
Maker: TypeAlias = Callable[[Seen, re.Match[str]], StopCondition]

CONDITIONS = Phrases[Maker]("stop conditions")


def conditions_of(program: Case, seen: Seen) -> dict[str, Any]:
    """The setting `stop_when` of a case that has one; what the condition looks at is kept in `seen`."""
    if "stop_when" not in program:
        return {}
    maker, found = CONDITIONS.find(program["stop_when"])
    return {"stop_when": [maker(seen, found)]}


@CONDITIONS.says(r"a result of tool (\w+) in the last step equals '(.*)'")
def _a_result_equals(seen: Seen, told: re.Match[str]) -> StopCondition:
    def condition(state: StopState) -> Verdict:
        seen.append(state.steps[-1].results)
        return any((result.name, result.text) == told.groups() for result in state.steps[-1].results)

    return condition


@CONDITIONS.says(r"tool (\w+) was executed")
def _was_executed(_seen: Seen, told: re.Match[str]) -> StopCondition:
    return has_tool_result(told[1])
