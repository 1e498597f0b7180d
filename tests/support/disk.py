"""A disk in memory for the journal: it shows what had been written at any moment, and breaks when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs
import msgspec

from actors.journal import DiskJournal, KnownAgent
from protocol.codec import decode
from protocol.errors import JournalError
from protocol.records import BUDGET_PREFIX, AgentFacts, Record, StoredEvents

Batch = tuple[Record, ...]


def _nothing(_batches: int) -> None:
    return


@attrs.define(eq=False)
class FakeDisk:
    """Implements the journal's `Store`."""

    batches: list[Batch] = attrs.field(factory=list[Batch])
    before_commit: Callable[[int], object] = _nothing
    """Called before each commit with how many are on the disk."""
    full_at: int | None = None
    """How many commits there is room for."""

    def open(self) -> tuple[KnownAgent, ...]:
        found: dict[str, KnownAgent] = {}
        for record in self.records():
            if record.whole and not record.agent.startswith(BUDGET_PREFIX):
                facts = decode(record.facts, AgentFacts)
                found[record.agent] = KnownAgent(record.agent, facts.name, facts.retired, facts.made)
        return tuple(found.values())

    def budgets(self) -> dict[str, bytes]:
        found = [record for record in self.records() if record.agent.startswith(BUDGET_PREFIX)]
        return {record.agent.removeprefix(BUDGET_PREFIX): record.facts for record in found}

    def close(self) -> None:
        pass

    def commit(self, records: Sequence[Record]) -> None:
        self.before_commit(len(self.batches))
        if self.full_at is not None and len(self.batches) >= self.full_at:
            raise JournalError("the disk is full")
        self.batches.append(tuple(records))

    def records(self, agent: str | None = None) -> list[Record]:
        return [record for batch in self.batches for record in batch if agent in {None, record.agent}]

    def read(self, agent: str) -> Sequence[Record]:
        records = self.records(agent)
        last = max(index for index, record in enumerate(records) if record.whole)
        return records[last:]

    def read_all(self, run: str) -> tuple[str, Sequence[Record]]:
        for record in self.records():
            if f'"run":"{run}"'.encode() in record.events:
                return record.agent, self.records(record.agent)
        return "", []

    def read_events(self, agent: str, max_bytes: int) -> StoredEvents:
        events = events_of(self.records(agent))
        kept = len(events)
        while kept and max_bytes > 0:
            kept -= 1
            max_bytes -= len(events[kept])
        return StoredEvents(kept + 1, events[kept:])

    def tidy(self) -> bool:
        return False


def events_of(records: Iterable[Record]) -> list[bytes]:
    """The events of records, in order."""
    return [line for record in records if record.events for line in record.events.split(b"\n")]


def facts_of(record: Record) -> AgentFacts:
    """What a record says beside its events."""
    return msgspec.json.decode(record.facts, type=AgentFacts)


def journal_on(disk: FakeDisk) -> DiskJournal:
    """A journal on that disk, in virtual time."""
    return DiskJournal(lambda: disk, threaded=False, hold_seconds=0)
