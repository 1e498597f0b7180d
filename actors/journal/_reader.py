"""Looking into a journal's file, while a runtime may be writing it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, final

import attrs

from protocol.codec import decode_event
from protocol.errors import JournalError
from protocol.events import Event
from protocol.records import StoredAgent, fold

from ._journal import KnownAgent

if TYPE_CHECKING:
    from ._sqlite import SQLiteStore

__all__ = ("JournalReader", "StoredEvent", "read_journal")


@attrs.frozen
class StoredEvent:
    """An event as it was written."""

    seq: int
    """Its number; of merged deltas, that of the first."""
    at: float
    """When it was written, in seconds since 1970."""
    event: Event


@final
class JournalReader:
    """A look into a file; made by `read_journal()`. What is asked for is read when it is asked for."""

    def __init__(self, store: SQLiteStore, known: tuple[KnownAgent, ...]) -> None:
        self._store = store
        self._known = known

    @property
    def agents(self) -> tuple[KnownAgent, ...]:
        """All agents, oldest first."""
        return self._known

    def find(self, agent: str) -> KnownAgent:
        """An agent by its id, or by its name where that is the only one of it. Raises `JournalError`."""
        found = [one for one in self._known if agent in {one.id, one.name}]
        if len(found) == 1:
            return found[0]
        if found:
            raise JournalError(f"there are {len(found)} agents named {agent}: {', '.join(one.id for one in found)}")
        there = ", ".join(f"{one.name} ({one.id})" for one in self._known[:20])
        raise JournalError(f"there is no agent {agent!r}; there are: {there or 'none'}")

    def agent(self, agent: str) -> StoredAgent:
        """What brings the agent back: its conversation, and the run that is not over. Raises `JournalError`."""
        try:
            return fold(agent, self._store.read(agent))
        except ValueError as error:
            raise JournalError(f"the journal holds a record of agent {agent} that cannot be read: {error}") from error

    def events(self, agent: str) -> Iterator[StoredEvent]:
        """Its events, from the oldest that is still there. Raises `JournalError`."""
        for seq, at, lines in self._store.lines_of(agent):
            number = seq
            for line in lines:
                try:
                    event = decode_event(line)
                except ValueError as error:
                    raise JournalError(f"event {number} of agent {agent} cannot be read: {error}") from error
                yield StoredEvent(number, at, event)
                number += getattr(event, "n", 1)


@contextlib.contextmanager
def read_journal(path: str | os.PathLike[str]) -> Generator[JournalReader]:
    """Open a journal to look at it; nothing is changed. Raises `JournalError` if it cannot be read."""
    from ._sqlite import SQLiteStore

    store = SQLiteStore(Path(path), read_only=True)
    try:
        yield JournalReader(store, store.open())
    finally:
        store.close()
