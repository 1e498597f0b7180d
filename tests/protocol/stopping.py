"""Runs as stop conditions see them: steps of calls with their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from protocol.result import StepResult
from protocol.stop import StopState
from protocol.turns import ToolCall, ToolResult, ToolStatus
from protocol.usage import NO_USAGE, Usage

Made = tuple[ToolCall, ToolStatus]
"""A call and how it ended."""


def step(*made: Made) -> StepResult:
    """One step with these calls; ids are unique in the step, which is all that a condition may rely on here."""
    calls = tuple(
        ToolCall(f"c{place}", call.name, call.arguments, call.malformed) for place, (call, _) in enumerate(made)
    )
    results = tuple(ToolResult(f"c{place}", call.name, status, "") for place, (call, status) in enumerate(made))
    return StepResult(0, "", "", calls, results, "tool_calls", NO_USAGE, 0.0)


def state_of(
    steps: Sequence[StepResult] = (),
    *,
    usage: Usage = NO_USAGE,
    elapsed_seconds: float = 0.0,
    cost: float | None = None,
) -> StopState:
    """What a condition is given after these steps."""
    return StopState(
        steps=steps,
        messages=[],
        usage=usage,
        step_number=len(steps) - 1,
        elapsed_seconds=elapsed_seconds,
        cost=cost,
    )


class Watched(Sequence[StepResult]):
    """Steps that count how often one of them is looked at."""

    def __init__(self, steps: Iterable[StepResult]) -> None:
        self._steps = list(steps)
        self.looks = 0

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> StepResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StepResult]: ...
    def __getitem__(self, index: int | slice) -> Any:
        found = self._steps[index]
        self.looks += len(found) if isinstance(found, list) else 1
        return found

    def __iter__(self) -> Iterator[StepResult]:
        for index in range(len(self)):
            yield self[index]
