"""Worker threads for synchronous tools: bounded, and not used up by those that ignore a cancel.

A thread cannot be cancelled. One whose call is over (timed out, cancelled) is abandoned: its slot is given back, so that
other tools go on, and it is counted until it ends. Too many of those at once, and no new thread is started.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import trio

from protocol.errors import ToolError

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


@attrs.define(eq=False)
class _Work:
    """One call in a thread."""

    done: bool = False


@attrs.define(eq=False)
class ToolThreads:
    """The threads of one runtime."""

    limiter: trio.CapacityLimiter
    max_abandoned: int = 64
    _abandoned: list[_Work] = attrs.field(factory=list[_Work])

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Hold the right to run one thread. Raises `ToolError` if too many abandoned ones still run."""
        if self.statistics().abandoned >= self.max_abandoned:
            raise ToolError(f"{self.max_abandoned} tool threads that timed out or were cancelled still run; try later")
        owner = object()
        await self.limiter.acquire_on_behalf_of(owner)
        try:
            yield
        finally:
            self.limiter.release_on_behalf_of(owner)

    async def run(self, fn: Callable[[], T], abandoned: Callable[[], object]) -> T:
        """Run `fn` in a thread; call `abandoned` if it is left running. Hold a `slot()` meanwhile."""
        work = _Work()

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
        self._abandoned = [work for work in self._abandoned if not work.done]
        limiter = self.limiter.statistics()
        total = int(limiter.total_tokens)
        return ThreadStatistics(int(limiter.borrowed_tokens), total, limiter.tasks_waiting, len(self._abandoned))
