"""The seam between the runtime and what survives it.

A record is appended synchronously and has a position; what must wait for the disk asks to be called `after` it, or
waits until it is `flushed`. Without a journal on disk a record is durable the moment it is appended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

__all__ = ("Journal", "MemoryJournal")


class Journal(Protocol):
    """Where records go. Positions grow by one, over all agents of a runtime."""

    @property
    def durable(self) -> bool:
        """Whether anything is kept: if not, records need not be made at all."""
        ...

    def append(self, record: bytes) -> int:
        """Take a record; return its position. Never waits."""
        ...

    def after(self, position: int, fn: Callable[[], None]) -> None:
        """Call `fn` once everything up to `position` is durable: at once if it is."""
        ...

    async def flushed(self, position: int | None = None) -> None:
        """Wait until everything up to `position` (`None`: all appended so far) is durable."""
        ...


class MemoryJournal:
    """No journal: nothing is kept, nothing is waited for."""

    durable = False

    def append(self, record: bytes) -> int:  # noqa: ARG002  the interface of a real one
        """Keep nothing."""
        return 0

    def after(self, position: int, fn: Callable[[], None]) -> None:  # noqa: ARG002
        """Call `fn` now."""
        fn()

    async def flushed(self, position: int | None = None) -> None:  # noqa: ARG002
        """Wait for nothing."""
        await trio.lowlevel.checkpoint()
