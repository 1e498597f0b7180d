"""Slots that several parties share: round robin over those who wait, first come first served within each.

How it works. A *line* is one party's queue; the lines stand in a circle. A slot that becomes free goes to the first of
the line whose turn it is, and that line goes behind all others. So whoever is first in a line waits for at most one slot
per line that stood before his, however long those lines are.

A slot always belongs to somebody: it is handed over in the one synchronous step that wakes its new holder. From then on a
cancel cannot reach that wait any more, and before that it takes the waiter out of its line; so none is ever lost.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from typing import final

import attrs
import trio

__all__ = ("FairLimiter", "SlotStatistics")


@attrs.frozen
class SlotStatistics:
    """The state of slots that are shared."""

    in_use: int
    total: int
    waiting: int
    """How many wait for one."""
    waited_seconds: float
    """What all who had to wait have waited so far, those who gave up included."""


@attrs.define(eq=False)
class _Waiter:
    task: trio.lowlevel.Task
    since: float


@final
class FairLimiter:
    """So many slots, and a line for each party that wants them."""

    def __init__(self, total: int, *, spares_one: bool = False) -> None:
        """Of several slots, one that `spares_one` gives the last free one only to a party that has none.

        So a party whose slots never come back cannot shut out the others by itself.
        """
        self._total = total
        self._spare = 1 if spares_one and total > 1 else 0
        self._in_use = 0
        self._held: dict[Hashable, int] = {}
        self._lines: dict[Hashable, deque[_Waiter]] = {}
        """Those who wait, in the order in which the lines have their turn."""
        self._waited_seconds = 0.0

    async def acquire(self, line: Hashable) -> None:
        """Have a slot, as one of this line; wait for it if need be. A wait that is cancelled ends at once."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.has_room(line):  # whoever waits may not: he would have it
            self._take(line)
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        waiter = _Waiter(trio.lowlevel.current_task(), trio.current_time())
        self._lines.setdefault(line, deque()).append(waiter)

        def give_up(_raise_cancel: object) -> trio.lowlevel.Abort:
            waiting = self._lines[line]
            waiting.remove(waiter)
            if not waiting:
                del self._lines[line]
            self._waited_seconds += trio.current_time() - waiter.since
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(give_up)

    def release(self, line: Hashable) -> None:
        """Give back a slot of this line. Raises `RuntimeError` if it has none."""
        held = self._held.get(line, 0)
        if not held:
            raise RuntimeError(f"{line!r} gives back a slot that it does not have")
        if held == 1:
            del self._held[line]
        else:
            self._held[line] = held - 1
        self._in_use -= 1
        if self._lines:
            self._hand_over()

    @contextlib.asynccontextmanager
    async def slot(self, line: Hashable) -> AsyncGenerator[None]:
        """Hold a slot inside the block."""
        await self.acquire(line)
        try:
            yield
        finally:
            self.release(line)

    def has_room(self, line: Hashable) -> bool:
        """Whether one of this line would have a slot at once."""
        free = self._total - self._in_use
        return free > self._spare or (free > 0 and line not in self._held)

    def statistics(self) -> SlotStatistics:
        """A frozen look at the slots."""
        waiting = [waiter.since for line in self._lines.values() for waiter in line]
        waited = self._waited_seconds
        if waiting:
            waited += trio.current_time() * len(waiting) - sum(waiting)
        return SlotStatistics(self._in_use, self._total, len(waiting), waited)

    def _take(self, line: Hashable) -> None:
        self._in_use += 1
        self._held[line] = self._held.get(line, 0) + 1

    def _hand_over(self) -> None:
        while self._in_use < self._total:
            line = next(filter(self.has_room, self._lines), None)
            if line is None:
                return
            waiting = self._lines.pop(line)
            waiter = waiting.popleft()
            if waiting:
                self._lines[line] = waiting
            self._take(line)
            self._waited_seconds += trio.current_time() - waiter.since
            trio.lowlevel.reschedule(waiter.task)
