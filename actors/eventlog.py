"""The event log: one stream per root agent; numbered, encoded once, bounded; readers are cursors.

A stream has two marks. `end` is the last number given; `visible` is the last number that is durable, and so the last
one that a remote reader may see. Without a journal on disk the two are one.

A stream is a list with a base, trimmed in lumps: a slice from the middle of a deque costs ten times as much. It is
bounded by bytes. A reader that falls behind the base is told how many events it lost, once, and goes on.

A reader that has caught up arms itself on the stream; the next event disarms and wakes it. So emitting costs the same
with a thousand idle readers that sleep as with none, and a reader is woken once for any number of events.

A follower (a client somewhere) holds what it has not got yet, up to a bound of its own: the log is its queue, one for all
followers, and none of them can make it longer than the one that may lag most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import attrs
import trio

from protocol.codec import encode_event, encode_strictly
from protocol.events import Event, RunEvent, Warned
from protocol.grammar import Grammar
from protocol.ids import new_id

from .journal import Journal, MemoryJournal

__all__ = ("Entry", "EventReader", "EventStream", "EventsLost", "Follower", "RunLog", "StreamStatistics")

_TRIM = 0.25
"""The part of the bound that is cut off at once when it is exceeded."""
_LOOK_BYTES = 131_072
"""How much may come until the log looks whether a follower is lost."""
MAX_KNOWN_RUNS = 10_000
"""Runs that a stream can tell from unknown ones."""


@attrs.frozen
class EventsLost:
    """Stands in for `count` events that were dropped before this reader came to them."""

    count: int


Entry = tuple[Event, bytes]
"""An event and its JSON."""


@attrs.frozen
class StreamStatistics:
    """The state of a stream."""

    name: str
    epoch: str
    oldest: int
    """Number of the oldest event still held; `end + 1` if none is."""
    end: int
    visible: int
    bytes: int
    faults: int
    """Events that could not be encoded as they were."""


class Follower(Protocol):
    """Somebody for whom a stream keeps what he has not got yet."""

    seq: int
    """The last number that he needs no longer."""

    def is_lost(self) -> bool:
        """Whether he is too far behind to be waited for. Asked when the log is full; must not raise or change the log."""
        ...


class EventStream:
    """The numbered events of one root agent, from the oldest still held to the newest. Numbers start at 1."""

    def __init__(self, name: str, *, journal: Journal | None = None, max_bytes: int = 256 * 1024) -> None:
        self.name = name
        self.epoch = new_id("epoch")
        """Changes when the numbering cannot be continued."""
        self._journal: Journal = journal or MemoryJournal()
        self._durable = self._journal.durable
        self._entries: list[Entry] = []
        self._base = 1
        self._visible = 0
        self._bytes = 0
        self._dropped_bytes = 0
        self._visible_bytes = 0
        self._max_bytes = max_bytes
        self._trim_at = max_bytes
        self._faults = 0
        self._armed: dict[Callable[[], None], None] = {}
        self._followers: dict[Follower, None] = {}
        self.closed = False
        """Whether no further event comes."""
        self.runs: dict[str, str | None] = {}
        """The last runs that speak here, each with the type of its terminal event once that is out."""

    @property
    def end(self) -> int:
        """The last number given; 0 if there is none."""
        return self._base + len(self._entries) - 1

    @property
    def oldest(self) -> int:
        """The lowest number that can still be read."""
        return self._base

    @property
    def visible(self) -> int:
        """The last number that is durable."""
        return self._visible if self._durable else self.end

    @property
    def visible_bytes(self) -> int:
        """How many bytes all events up to `visible` took, those that are held no longer included."""
        return self._visible_bytes if self._durable else self._dropped_bytes + self._bytes

    def append(self, event: Event) -> int:
        """Number, encode and keep an event. Never raises, never waits; returns its number."""
        try:
            data = encode_strictly(event)
        except Exception as error:  # noqa: BLE001  whatever a value does, the log must not fail
            data = self._changed(event, error)
        entries = self._entries
        entries.append((event, data))
        number = self._base + len(entries) - 1
        self._bytes += len(data)
        if self._bytes > self._trim_at:
            self._trim()
        if self._durable:
            written = self._dropped_bytes + self._bytes
            self._journal.after(self._journal.append(data), partial(self._show, number, written))
        if self._armed:
            self._wake()
        return number

    def _changed(self, event: Event, error: Exception) -> bytes:
        """Encode what can be, and warn: before the event, which may be the last of its run."""
        self._faults += 1
        if isinstance(event, RunEvent) and type(event) is not Warned:
            fault = f"{type(error).__name__}: {error}"
            text = f"the next {event.type} held what JSON cannot, and was changed: {fault}"[:500]
            self.append(Warned(run=event.run, agent_path=event.agent_path, code="event_changed", text=text))
        return encode_event(event)

    def read(self, after: int, limit: int = 1000) -> tuple[int, list[Entry]]:
        """The events numbered above `after`, at most `limit`: the number of the first one, and they."""
        first = max(after + 1, self._base)
        start = first - self._base
        return first, self._entries[start : start + limit]

    def visible_bytes_after(self, after: int) -> int:
        """How many bytes the visible events numbered above `after` take, as far as they are held."""
        entries = self._entries[max(0, after + 1 - self._base) : self.visible + 1 - self._base]
        return sum(len(data) for _, data in entries)

    def close(self) -> None:
        """Say that no further event comes, and wake whoever waits for one."""
        self.closed = True
        self._wake()

    def hold(self, follower: Follower) -> None:
        """Keep what a follower has not got yet, until he is lost or released."""
        self._followers[follower] = None
        self._trim_at = min(self._trim_at, self._bytes + _LOOK_BYTES)

    def release(self, follower: Follower) -> None:
        """Take back a `hold`."""
        self._followers.pop(follower, None)

    def arm(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, at the next event."""
        self._armed[wake] = None

    def disarm(self, wake: Callable[[], None]) -> None:
        """Take back an `arm`."""
        self._armed.pop(wake, None)

    def reader(self, *, after: int | None = None, log: RunLog | None = None) -> EventReader:
        """A cursor behind number `after` (`None`: behind the newest), for all events or for those of one run.

        The reader of a run gives what the run and those below it say, and ends after its terminal event.
        """
        return EventReader(self, self.end if after is None else after, log)

    def statistics(self) -> StreamStatistics:
        """A frozen look at the stream."""
        return StreamStatistics(self.name, self.epoch, self._base, self.end, self.visible, self._bytes, self._faults)

    def _show(self, number: int, written: int) -> None:
        self._visible = max(self._visible, number)
        self._visible_bytes = max(self._visible_bytes, written)
        self._wake()

    def _wake(self) -> None:
        armed, self._armed = self._armed, {}
        for wake in armed:
            wake()

    def _trim(self) -> None:
        """Cut the log to its bound, but for what followers need; called when it is full, and now and then for them."""
        needed = min([follower.seq for follower in self._followers if not follower.is_lost()], default=self.end)
        step = int(self._max_bytes * _TRIM)
        if self._bytes > self._max_bytes:
            self._cut(min(len(self._entries) - 1, needed + 1 - self._base), self._max_bytes - step)
        if self._followers:
            self._trim_at = self._bytes + min(step, _LOOK_BYTES)
        else:
            self._trim_at = max(self._max_bytes, self._bytes + step)

    def _cut(self, most: int, goal: int) -> None:
        """Drop the oldest events, at most so many, until no more than `goal` bytes are left."""
        before, cut = self._bytes, 0
        while self._bytes > goal and cut < most:
            self._bytes -= len(self._entries[cut][1])
            cut += 1
        del self._entries[:cut]
        self._base += cut
        self._dropped_bytes += before - self._bytes


class EventReader:
    """An async iterator over a stream: every event in order, or `EventsLost` where it fell too far behind.

    A reader of one run ends after that run's terminal event. Leaving the iteration changes nothing for the run.
    """

    def __init__(self, stream: EventStream, after: int, log: RunLog | None) -> None:
        self.seq = after
        """Number of the last event returned."""
        self._stream = stream
        self._log = log
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
        try:
            await woken.wait()
        finally:
            self._stream.disarm(woken.set)


class RunLog:
    """A run's way into its root's stream: the grammar refuses, and counts, what may not come."""

    __slots__ = ("_admit", "_append", "_runs", "agent_path", "grammar", "last", "number", "refused", "run")

    def __init__(self, stream: EventStream, run: str, agent_path: tuple[str, ...] = ()) -> None:
        self.run = run
        self.agent_path = agent_path
        self.grammar = Grammar()
        self.refused = 0
        """Events that came where none may."""
        self.last: int | None = None
        """Number of the terminal event, when it is out."""
        self.number = 0
        """Number of the run's last event."""
        self._admit = self.grammar.admit
        self._append = stream.append
        self._runs = stream.runs
        stream.runs[run] = None
        if len(stream.runs) > MAX_KNOWN_RUNS:
            del stream.runs[next(iter(stream.runs))]

    @property
    def over(self) -> bool:
        """Whether the terminal event is out."""
        return self.last is not None

    def emit(self, event: RunEvent) -> bool:
        """Append an event of this run. Never raises; returns whether it could come."""
        if not self._admit(event):
            self.refused += 1
            return False
        self.number = number = self._append(event)
        if self.grammar.phase == "over":
            self.last = number
            self._runs[self.run] = event.type
        return True
