"""Readers of a stream: cursors that wait where they have caught up, and are told what they missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from protocol.events import Event

from ..kit import Party, current_party, waiting_for

if TYPE_CHECKING:
    from ._run_log import RunLog
    from ._stream import Entry, EventStream

__all__ = ("EventReader", "EventsLost")


@attrs.frozen
class EventsLost:
    """Stands in for `count` events that were dropped before this reader came to them."""

    count: int


class EventReader:
    """An async iterator over a stream: every event in order, or `EventsLost` where it fell too far behind.

    A reader of one run ends after that run's terminal event. Leaving the iteration changes nothing for the run.
    """

    def __init__(self, stream: EventStream, after: int, log: RunLog | None, party: Party | None = None) -> None:
        self.seq = after
        """Number of the last event returned."""
        self._stream = stream
        self._log = log
        self._party = party
        self._path = log.agent_path if log is not None else ()
        self._chunk: list[Entry] = []
        self._at = 0

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> Event | EventsLost:
        while True:
            while self._at < len(self._chunk):
                if self._ended():
                    raise StopAsyncIteration
                event, _ = self._chunk[self._at]
                self._at += 1
                self.seq += 1
                if self._path and getattr(event, "agent_path", ())[: len(self._path)] != self._path:
                    continue
                return event
            if self._ended():
                raise StopAsyncIteration
            lost = await self._next_chunk()
            if lost is not None:
                return lost

    def _ended(self) -> bool:
        last = self._log.last if self._log is not None else None
        return last is not None and self.seq >= last

    async def _next_chunk(self) -> EventsLost | None:
        """Take the events that are there, or wait for one; say how many were dropped meanwhile."""
        first, chunk = self._stream.read(self.seq, 64)
        self._at = 0
        self._chunk = []
        if first > self.seq + 1:
            await trio.lowlevel.checkpoint()
            gone = first - 1
            if self._log is not None and self._log.last is not None:
                gone = min(gone, self._log.last)
            lost, self.seq = gone - self.seq, gone
            return EventsLost(lost)
        if chunk:
            self._chunk = chunk
            await trio.lowlevel.checkpoint()
        else:
            await self._wait()
        return None

    async def _wait(self) -> None:
        woken = trio.Event()
        self._stream.arm(woken.set)
        party = self._party if current_party.get() is not self._party else None  # a tool may look at its own run
        try:
            with waiting_for(party):
                await woken.wait()
        finally:
            self._stream.disarm(woken.set)
