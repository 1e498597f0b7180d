"""Worker threads for synchronous tools: bounded, and not used up by those that ignore a cancel.

A thread cannot be cancelled. One whose call is over (timed out, cancelled) is abandoned: its slot is given back, so that
other tools go on, and it is counted until it ends. Too many of those at once, and no new thread is started; an agent that
has left many behind is refused long before the others are.

Agents share the threads fairly, each with its sub-agents; no agent alone has the last one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import trio

from protocol.errors import SpecError, ToolError

from ..kit import FairLimiter

__all__ = ("ThreadStatistics", "ToolThreads")

T = TypeVar("T")


@attrs.frozen
class ThreadStatistics:
    """The state of the worker threads."""

    running: int
    """Threads whose call is waited for."""
    total: int
    waiting: int
    """Calls that wait for a thread."""
    abandoned: int
    """Threads that still run although their call is over."""
    waited_seconds: float = 0.0
    """What all calls that had to wait for a thread have waited."""


@attrs.define(eq=False)
class _Work:
    """One call in a thread."""

    line: Hashable
    done: bool = False


@attrs.define(eq=False)
class ToolThreads:
    """The threads of one runtime. Whoever wants one says which agent it is for."""

    total: int = 40
    max_abandoned: int = 256
    max_abandoned_each: int = 64
    """Of one agent."""
    _slots: FairLimiter = attrs.field(init=False)
    _abandoned: list[_Work] = attrs.field(factory=list[_Work])

    def __attrs_post_init__(self) -> None:
        if type(self.total) is not int or self.total < 1:
            raise SpecError(f"tool_threads must be an integer >= 1; it is {self.total!r}")
        self._slots = FairLimiter(self.total, spares_one=True)

    @asynccontextmanager
    async def slot(self, line: Hashable) -> AsyncGenerator[None, None]:
        """Hold the right to run one thread. Raises `ToolError` if too many abandoned ones still run."""
        self._look_for_too_many(line)
        await self._slots.acquire(line)
        try:
            self._look_for_too_many(line)  # those that had the slot before may have left theirs behind
            yield
        finally:
            self._slots.release(line)

    async def run(self, fn: Callable[[], T], line: Hashable, abandoned: Callable[[], object]) -> T:
        """Run `fn` in a thread; call `abandoned` if it is left running. Hold a `slot()` meanwhile."""
        work = _Work(line)

        def body() -> T:
            try:
                return fn()
            finally:
                work.done = True

        try:
            return await trio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
        except trio.Cancelled:
            if not work.done:
                self._abandoned.append(work)
                abandoned()
            raise

    def statistics(self) -> ThreadStatistics:
        """A frozen look at the threads."""
        self._forget_ended()
        slots = self._slots.statistics()
        return ThreadStatistics(slots.in_use, slots.total, slots.waiting, len(self._abandoned), slots.waited_seconds)

    def _look_for_too_many(self, line: Hashable) -> None:
        if not self._abandoned:
            return
        self._forget_ended()
        own = sum(work.line == line for work in self._abandoned)
        if own >= self.max_abandoned_each or len(self._abandoned) >= self.max_abandoned:
            whose = f"{own} of this agent's" if own >= self.max_abandoned_each else f"{len(self._abandoned)}"
            raise ToolError(f"{whose} tool threads that timed out or were cancelled still run; try later")

    def _forget_ended(self) -> None:
        self._abandoned = [work for work in self._abandoned if not work.done]
