"""The seam between the runtime and what survives it.

Who has something to be kept touches the journal, synchronously, and has a position; what must wait for the disk asks to
be called `after` it, or waits until it is `flushed`. When the journal makes a commit it asks all who touched it for their
record, in one step without an await. Without a journal everything is durable the moment it is said.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs
import trio

from protocol.errors import JournalError
from protocol.records import Made, Record, StoredAgent, StoredEvents
from protocol.spending import AccountFacts

__all__ = ("DiskStatistics", "Journal", "KnownAgent", "MemoryJournal", "Source")


class Source(Protocol):
    """Who writes records: an agent, or a budget."""

    def take(self) -> Record | None:
        """What is to be written, as of now. Never waits, never raises."""
        ...

    def written(self) -> None:
        """The record that was taken last is durable."""
        ...


@attrs.frozen
class KnownAgent:
    """An agent that a journal holds."""

    id: str
    name: str
    retired: bool
    """It was stopped for good, and is not brought back."""
    made: Made | None = None
    """How a client had it made; `None`: it is the host's own."""


@attrs.frozen
class DiskStatistics:
    """The state of a journal."""

    commits: int
    records: int
    forming: int
    """Sources whose records will be in the next commit."""
    forming_bytes: int
    waiting: int
    """Tasks that wait for the disk."""
    failure: str | None
    lag_seconds: float = 0.0
    """How long the oldest of what is not durable yet has waited; 0.0: all is."""


class Journal(Protocol):
    """Where records go. Positions grow, over all agents of a runtime."""

    @property
    def durable(self) -> bool:
        """Whether anything is kept: if not, records need not be made at all."""
        ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Inside the block it can be used, while `serve` runs. Raises `JournalError` if it cannot be opened, or has failed."""
        ...

    async def serve(self, on_failure: Callable[[], object]) -> None:
        """Write what is touched, until `finish`: cancelling alone does not stop it. A commit that fails is told of."""
        ...

    async def finish(self) -> None:
        """Write what has been touched up to now, within some time, and nothing after it."""
        ...

    def touch(self, source: Source, size: int = 0) -> int:
        """Take note that `source` has something to write, of about that size; return its position. Never waits."""
        ...

    def after(self, position: int, fn: Callable[[], None]) -> None:
        """Call `fn` once everything up to `position` is durable: at once if it is."""
        ...

    async def flushed(self, position: int | None = None) -> None:
        """Wait until everything up to `position` (`None`: all up to now) is durable. Raises `JournalError`."""
        ...

    def agents(self) -> tuple[KnownAgent, ...]:
        """The agents that were in it when it was opened, oldest first."""
        ...

    def statistics(self) -> DiskStatistics | None:
        """A frozen look at the journal; `None` if it keeps nothing."""
        ...

    def budgets(self) -> Mapping[str, AccountFacts]:
        """What had been used of named budgets by runs that had ended, when it was opened."""
        ...

    async def load(self, agent: str, max_bytes: int) -> tuple[StoredAgent, StoredEvents]:
        """An agent, and its newest events of about that size. Raises `JournalError`."""
        ...

    async def load_step(self, run: str, step: int) -> StoredAgent | None:
        """The agent of a run as it was when a step of it had ended; `None` if nothing is known of that. Raises `JournalError`."""
        ...


class MemoryJournal:
    """No journal: nothing is kept, nothing is waited for."""

    durable = False

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open nothing."""
        yield

    async def serve(self, on_failure: Callable[[], object]) -> None:  # noqa: ARG002
        """Write nothing."""
        await trio.lowlevel.checkpoint()

    async def finish(self) -> None:
        """There is nothing to write."""

    def touch(self, source: Source, size: int = 0) -> int:  # noqa: ARG002  the interface of a real one
        """Keep nothing."""
        return 0

    def after(self, position: int, fn: Callable[[], None]) -> None:  # noqa: ARG002
        """Call `fn` now."""
        fn()

    async def flushed(self, position: int | None = None) -> None:  # noqa: ARG002
        """Wait for nothing."""
        await trio.lowlevel.checkpoint()

    def agents(self) -> tuple[KnownAgent, ...]:
        """None."""
        return ()

    def statistics(self) -> DiskStatistics | None:
        """There is nothing to look at."""
        return None

    def budgets(self) -> Mapping[str, AccountFacts]:
        """None."""
        return {}

    async def load(self, agent: str, max_bytes: int) -> tuple[StoredAgent, StoredEvents]:  # noqa: ARG002
        """There is none: raises `JournalError`."""
        await trio.lowlevel.checkpoint()
        raise JournalError(f"there is no journal, and so nothing is known of agent {agent}")

    async def load_step(self, run: str, step: int) -> StoredAgent | None:
        """There is none: raises `JournalError`."""
        await trio.lowlevel.checkpoint()
        raise JournalError(f"there is no journal, and so nothing is known of step {step} of run {run}")
