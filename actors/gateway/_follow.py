"""Following an agent: a cursor over its stream, from which the frames of a client are made.

Nothing is kept for a client but the number it has got: the log itself is the queue, encoded once and shared by all, and
holds what a client has not got yet up to a bound. Clients that are equally far are sent the same bytes. For one that is
slow, neighbouring deltas are merged; for one that is very slow, deltas of finished messages go. A merge begins behind the
number that the client has, so it never spans one that a client may resume from.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection

import attrs

from protocol.events import TERMINAL_EVENTS, Event

from ..eventlog import Entry, EventStream
from ._parts import DELTAS, Parts, shrunk
from ._shared import Shared

__all__ = ("ALWAYS", "Following", "FollowingLostError", "Pressure")

ALWAYS = frozenset({
    "continuation_required",
    "continuation_resolved",
    "approval_required",
    "approval_resolved",
    "run_paused",
    "run_resumed",
    "agent_failed",
    "agent_stopped",
    *[kind.__struct_config__.tag for kind in TERMINAL_EVENTS],
})
"""Events that no filter leaves out."""
TELL_SKIPPED_SECONDS = 0.5
"""How long left-out events may wait to be told of: with all that comes on top, within a second."""
FRAME_GOAL_BYTES = 65_536
"""When a frame is long enough: a longer one would keep other clients waiting."""
_ENVELOPE = 256
"""More than what stands around the events of a message."""
_BATCH = 1024
_BATCH_UNDER_PRESSURE = 8192


class Pressure(enum.IntEnum):
    """How far a client is behind what may wait for it."""

    NONE = 0
    MERGE = 1
    """Half: adjacent deltas are merged."""
    THIN = 2
    """Three quarters: deltas of finished messages go, too."""


class FollowingLostError(Exception):
    """The client is too far behind: it has to attach again."""


@attrs.define(eq=False)
class Following:
    """One client's cursor over one agent's stream: from `seq` on, which is the last number that was sent."""

    agent: str
    stream: EventStream
    seq: int
    shared: Shared
    deltas: bool = True
    types: Collection[str] | None = None
    max_bytes: int = 1_048_576
    """What may wait to be sent: beyond it, the log does not hold it any longer."""
    frame_bytes: int = 1_048_576
    """The longest frame: an event that fits in none is cut."""
    on_news: Callable[[Following], None] | None = None
    """Called once, when there is something new after `rest()`."""
    on_lost: Callable[[Following], None] | None = None
    """Called when the log gives this client up."""
    told: int = -1
    """The number that the last heartbeat told."""
    due: float = math.inf
    """When what was left out has to be told: a time of the clock that `take` is given."""
    _looked: int = attrs.field(init=False)
    _skipped: int = 0
    _until: int | None = None
    _got_bytes: int = attrs.field(init=False)
    _backlog: int = attrs.field(init=False)
    _wake: Callable[[], None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._looked = self.seq
        # What is there already is sent in peace: only what comes from now on makes a client slow.
        self._got_bytes = self.stream.visible_bytes
        self._backlog = self.stream.visible
        self._wake = self._tell_news

    @property
    def lag_bytes(self) -> int:
        """What has come since the attach and waits to be sent. One event that is sent cut, as no frame holds it, is no lag."""
        lag = self.stream.visible_bytes - self._got_bytes
        if lag > self.max_bytes:
            _, entries = self.stream.read(self._looked, self.stream.visible - self._looked)
            lag -= next((len(data) for _, data in entries if len(data) > self._whole), 0)
        return lag

    @property
    def behind(self) -> bool:
        """Whether there are events that were not looked at."""
        return self._looked < self._visible

    @property
    def over(self) -> bool:
        """Whether all has been sent, and no further event comes."""
        return self.stream.closed and self.seq == self.stream.end

    @property
    def _whole(self) -> int:
        """The room that a frame has with nothing else in it, at least."""
        return self.frame_bytes - 2 * _ENVELOPE

    @property
    def _visible(self) -> int:
        visible = self.stream.visible
        return visible if self._until is None else min(visible, self._until)

    def begin(self) -> None:
        """Have the log keep what this client has not got yet."""
        self.stream.hold(self)

    def end(self) -> None:
        """Leave no trace in the stream."""
        self.stream.release(self)
        self.stream.disarm(self._wake)

    def rest(self) -> None:
        """All has been looked at: be told when there is more."""
        self.stream.arm(self._wake)

    def freeze(self) -> None:
        """Go no further than to what is visible now."""
        self._until = self.stream.visible

    def is_lost(self) -> bool:
        """Whether the client is too far behind. The log asks when it is full."""
        lost = self.lag_bytes > self.max_bytes or self.stream.oldest > self._looked + 1
        if lost and self.on_lost is not None:
            self.on_lost(self)
        return lost

    def take(self, now: float, room: int, pressure: Pressure = Pressure.NONE) -> bytes | None:
        """The next `events` notification, of at most `room` bytes; `None` if there is nothing to tell, or no room.

        Raises `FollowingLostError` if what comes next is no longer in the log.
        """
        if self.stream.oldest > self._looked + 1:
            raise FollowingLostError(f"the log of {self.agent} no longer holds what comes next")
        if self.deltas and self.types is None and not pressure and not self._skipped:
            return self._take_all(room)
        return self._take_some(now, room - _ENVELOPE, pressure)

    def _tell_news(self) -> None:
        if self.on_news is not None:
            self.on_news(self)

    def _take_all(self, room: int) -> bytes | None:
        seq, visible = self.seq, self._visible
        if visible <= seq:
            return None
        made = self.shared.get(seq, visible)
        if made is None:
            first, entries = self.stream.read(seq, min(_BATCH, visible - seq))
            fitting, size = _fitting(entries, room - _ENVELOPE, self._whole)
            if not fitting:
                return None
            message = _message(self.agent, self.stream.epoch, first, b",".join(fitting))
            made = self.shared.keep(seq, visible, first + len(fitting) - 1, size, message)
        if len(made.message) > room:
            return None
        self._advance(made.last, made.size)
        self.seq = self._looked
        return made.message

    def _take_some(self, now: float, room: int, pressure: Pressure) -> bytes | None:
        """The same with what is not wanted left out, and what a slow client can do without."""
        visible = self._visible
        limit = _BATCH_UNDER_PRESSURE if pressure else _BATCH
        first, entries = self.stream.read(self._looked, min(limit, visible - self._looked))
        parts = Parts(self._skipped)
        taken = size = 0
        for number, (event, data) in enumerate(entries, first):
            if parts.shown >= FRAME_GOAL_BYTES:
                break
            if not self._wants(event) or (
                pressure >= Pressure.THIN and isinstance(event, DELTAS) and self.shared.finished_after(event, number)
            ):
                parts.skip()
            elif parts.size + len(data) + 1 <= room:
                if pressure and isinstance(event, DELTAS):
                    parts.merge(event, len(data))
                else:
                    parts.add(data)
            elif parts.empty and room >= self._whole:
                parts.add(shrunk(event, room - parts.size - _ENVELOPE))
            else:
                break
            taken += 1
            size += len(data)
        self._advance(self._looked + taken, size)
        self._skipped = parts.skipped
        if parts.empty and not self._must_tell(now):
            return None
        message = _message(self.agent, self.stream.epoch, self.seq + 1, parts.joined())
        self.seq, self._skipped, self.due = self._looked, 0, math.inf
        return message

    def _must_tell(self, now: float) -> bool:
        """Whether events that were left out have waited long enough, now that there is nothing else to tell."""
        if not self._skipped:
            return False
        if self.due == math.inf:
            self.due = now + TELL_SKIPPED_SECONDS
        return now >= self.due or self.stream.closed or self._until is not None

    def _advance(self, last: int, size: int) -> None:
        beyond = last > self._backlog
        if beyond and self._looked < self._backlog:  # part of this was there at the attach
            self._got_bytes = self.stream.visible_bytes - self.stream.visible_bytes_after(last)
        elif beyond:
            self._got_bytes += size
        self._looked = last

    def _wants(self, event: Event) -> bool:
        if self.deltas and self.types is None:
            return True
        kind = event.type
        if kind in ALWAYS:
            return True
        if not self.deltas and isinstance(event, DELTAS):
            return False
        return self.types is None or kind in self.types


def _fitting(entries: list[Entry], room: int, whole: int) -> tuple[list[bytes], int]:
    """As many events as make a frame, and how many bytes they take; one that no frame could hold is cut."""
    parts: list[bytes] = []
    size = 0
    for event, data in entries:
        cost = size + len(data) + len(parts) + 1
        if cost > room or (parts and cost > FRAME_GOAL_BYTES):
            if not parts and room >= whole:
                return [shrunk(event, room)], len(data)
            break
        parts.append(data)
        size += len(data)
    return parts, size


def _message(agent: str, epoch: str, first: int, events: bytes) -> bytes:
    head = b'{"jsonrpc":"2.0","method":"events","params":{"agent":"%s","epoch":"%s","seq":%d,"events":['
    return b"%s%s]}}" % (head % (agent.encode(), epoch.encode(), first), events)
