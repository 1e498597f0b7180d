"""The event log: one stream per root agent; numbered, encoded once, bounded; readers are cursors.

A stream has two marks. `end` is the last number given; `visible` is the last number that is durable, and so the last
one that a remote reader may see. Where nobody writes it down the two are one.

A stream is a list with a base, trimmed in lumps: a slice from the middle of a deque costs ten times as much. It is
bounded by bytes. A reader that falls behind the base is told how many events it lost, once, and goes on.

A reader that has caught up arms itself on the stream; the next event disarms and wakes it. So emitting costs the same
with a thousand idle readers that sleep as with none, and a reader is woken once for any number of events.

A follower (a client somewhere) holds what it has not got yet, up to a bound of its own: the log is its queue, one for all
followers, and none of them can make it longer than the one that may lag most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import attrs

from protocol.codec import decode_event, encode_event, encode_strictly
from protocol.events import TERMINAL_EVENTS, ContentDelta, Event, ReasoningDelta, RunEvent, ToolCallDelta, Warned
from protocol.ids import new_id
from protocol.records import StoredEvents

from ..kit import Party
from ._reader import EventReader

if TYPE_CHECKING:
    from ._run_log import RunLog

__all__ = ("Appended", "Entry", "EventStream", "Follower", "StreamStatistics")

_DELTAS = frozenset({ContentDelta, ReasoningDelta, ToolCallDelta})

_TRIM = 0.25
"""The part of the bound that is cut off at once when it is exceeded."""
_LOOK_BYTES = 131_072
"""How much may come until the log looks whether a follower is lost."""
MAX_KNOWN_RUNS = 10_000
"""Runs that a stream can tell from unknown ones."""


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


class Appended(Protocol):
    """Told of each event: how many bytes it takes, and whether it is `more` than a piece of a reply."""

    def __call__(self, size: int, *, more: bool) -> object:
        """Take note of it. Never waits."""
        ...


class Follower(Protocol):
    """Somebody for whom a stream keeps what he has not got yet."""

    seq: int
    """The last number that he needs no longer."""

    def is_lost(self) -> bool:
        """Whether he is too far behind to be waited for. Asked when the log is full; must not raise or change the log."""
        ...


class EventStream:
    """The numbered events of one root agent, from the oldest still held to the newest. Numbers start at 1.

    Whoever writes them down gives `appended`: it takes what is unsaved with `take_unsaved`, and says what is durable with
    `show`. Without it an event is durable when it is said. `epoch` and `stored` continue a stream that was written down.
    """

    def __init__(
        self,
        name: str,
        *,
        appended: Appended | None = None,
        max_bytes: int = 256 * 1024,
        epoch: str = "",
        stored: StoredEvents | None = None,
    ) -> None:
        self.name = name
        self.epoch = epoch or new_id("epoch")
        """Changes when the numbering cannot be continued."""
        self._appended = appended
        self._unsaved: list[bytes] = []
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
        self._ended: dict[str, str] = {}
        if stored is not None:
            self._take_up(stored)

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
        return self.end if self._appended is None else self._visible

    @property
    def visible_bytes(self) -> int:
        """How many bytes all events up to `visible` took, those that are held no longer included."""
        return self._dropped_bytes + self._bytes if self._appended is None else self._visible_bytes

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
        if self._appended is not None:
            self._unsaved.append(data)
            self._appended(len(data), more=type(event) not in _DELTAS)
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

    def reader(self, *, after: int | None = None, log: RunLog | None = None, party: Party | None = None) -> EventReader:
        """A cursor behind number `after` (`None`: behind the newest), for all events or for those of one run.

        The reader of a run gives what the run and those below it say, and ends after its terminal event; whoever reads it
        waits for `party`.
        """
        return EventReader(self, self.end if after is None else after, log, party)

    def statistics(self) -> StreamStatistics:
        """A frozen look at the stream."""
        return StreamStatistics(self.name, self.epoch, self._base, self.end, self.visible, self._bytes, self._faults)

    def take_unsaved(self) -> tuple[int, list[bytes]]:
        """The events that have not been taken, for whoever writes them down: the number of the first one, and they."""
        unsaved, self._unsaved = self._unsaved, []
        return self.end - len(unsaved) + 1, unsaved

    def show(self, number: int) -> None:
        """All up to this number is durable."""
        if number > self._visible:
            if self._visible + 1 < self._base:
                self._visible_bytes = self._dropped_bytes
            shown = self._entries[max(0, self._visible + 1 - self._base) : max(0, number + 1 - self._base)]
            self._visible_bytes += sum(len(data) for _, data in shown)
            self._visible = number
            if self._armed:
                self._wake()

    def know(self, run: str, end: str | None) -> None:
        """Tell this run from an unknown one: with the type of its terminal event, or `None` while it goes on."""
        self.runs[run] = end
        if end is not None and self._appended is not None:
            self._ended[run] = end
        if len(self.runs) > MAX_KNOWN_RUNS:
            del self.runs[next(iter(self.runs))]

    def take_ended(self) -> dict[str, str]:
        """The runs whose end has not been taken, for whoever writes them down."""
        ended, self._ended = self._ended, {}
        return ended

    def _take_up(self, stored: StoredEvents) -> None:
        self._base = stored.first
        self._entries = [(decode_event(data), data) for data in stored.events]
        self._bytes = self._visible_bytes = sum(map(len, stored.events))
        self._visible = self.end
        for event, _ in self._entries:
            if isinstance(event, RunEvent):
                self.know(event.run, event.type if isinstance(event, TERMINAL_EVENTS) else None)

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
