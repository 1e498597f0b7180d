"""Reading a run step by step, and so holding it (M1)."""

from __future__ import annotations

from typing import final

from protocol.result import StepResult

from ..kit import waiting_for
from ._core import RunCore

__all__ = ("StepReader",)


@final
class StepReader:
    """Gives the finished steps of a run, in order; the model is called again when the next one is asked for."""

    def __init__(self, core: RunCore) -> None:
        self._core = core
        self._given = 0
        if not core.over.is_set():
            core.steps_asked = max(len(core.state.steps), core.steps_asked or 0)

    def __aiter__(self) -> StepReader:
        return self

    async def __anext__(self) -> StepResult:
        core = self._core
        steps = core.state.steps
        if self._given == len(steps) and not core.over.is_set():
            core.steps_asked = self._given + 1
            core.stir_steps()
        while self._given == len(steps):
            if core.over.is_set():
                raise StopAsyncIteration
            with waiting_for(core.turn):
                await core.steps_stirred.wait()
        self._given += 1
        return steps[self._given - 1]
