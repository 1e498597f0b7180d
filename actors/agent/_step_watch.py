"""Says who holds the one thread that all agents live in.

trio calls a task and has it back at its next checkpoint. What is between them, one step, holds everybody else. Each step
is timed here, which costs something; so it is done only where it was asked for.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator

import trio

from protocol.errors import SpecError

from ..logs import get_logger
from ._context import current_run

__all__ = ("StepWatch", "watching")

logger = get_logger(__name__)


class StepWatch(trio.abc.Instrument):
    """Tells of steps longer than `seconds`: in the log, and by a `warning` event of the run that the task works for."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began = math.inf  # of the step in which the watch begins nobody knows
        self.found = 0
        """How many there were."""
        self._token = trio.lowlevel.current_trio_token()
        self._teller: trio.lowlevel.Task | None = None
        """Trio's own task that tells of them: not watched, or a slow log would be told of in the log."""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002
        """A step begins."""
        self._began = self._clock()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """It has ended."""
        seconds = self._clock() - self._began
        if seconds > self._seconds and task is not self._teller:
            self.found += 1
            self._token.run_sync_soon(self._tell, task, seconds)

    def _tell(self, task: trio.lowlevel.Task, seconds: float) -> None:
        self._teller = trio.lowlevel.current_task()
        what = "call what blocks in a thread, or make it async"
        text = f"the task {task.name} held everything up for {seconds:.3g} s: {what}"
        logger.warning("a task held everything up", task=task.name, seconds=round(seconds, 3))
        run = task.context.get(current_run)
        if run is not None and not run.core.log.over:
            run.core.warn("held_up", text)


@contextlib.contextmanager
def watching(seconds: float | None) -> Generator[StepWatch | None]:
    """Watch the steps of all tasks inside the block, unless that is `None`. Raises `SpecError` for what is no time."""
    if seconds is None:
        yield None
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise SpecError(f"slow_step_seconds must be a number above 0, or None to watch nothing; it is {seconds!r}")
    watch = StepWatch(seconds)
    trio.lowlevel.add_instrument(watch)
    try:
        yield watch
    finally:
        trio.lowlevel.remove_instrument(watch)
