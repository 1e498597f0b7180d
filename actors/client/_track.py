"""What a follower knows of one agent, and what it has counted."""

from __future__ import annotations

import attrs

from protocol.wire.cursor import Cursor

__all__ = ("Counts", "FollowStatistics", "Track")


@attrs.frozen
class FollowStatistics:
    """What a follower has seen."""

    events: int
    duplicates: int
    """Numbers that came twice and were dropped."""
    skipped: int
    """Events that the server left out, as `types` and `deltas` ask."""
    unknown: int
    """Events that were passed over: this version does not know them."""
    attaches: int
    gaps: int
    """Times when a number was missing."""
    overflows: int
    """Times when the queue was full."""
    reattached: int
    """Times when what was missing could not be had."""
    queued: int


@attrs.define(eq=False)
class Track:
    """One agent's place."""

    agent: str
    cursor: Cursor | None = None
    """`None`: it has none yet."""
    waiting: bool = True
    """For the reply to an attach, for a connection, or for room in the queue."""
    parked: bool = False
    """Detached: the queue was full."""
    head: int = 0
    """What the last heartbeat said."""
    barren: int = 0
    """Gaps since the last event."""


@attrs.define(eq=False)
class Counts:
    """What a follower counts; what a track's cursor counts is added when that goes."""

    events: int = 0
    attaches: int = 0
    gaps: int = 0
    overflows: int = 0
    reattached: int = 0
    _duplicates: int = 0
    _skipped: int = 0
    _unknown: int = 0

    def keep(self, cursor: Cursor | None) -> None:
        """A cursor goes."""
        if cursor is not None:
            self._duplicates += cursor.duplicates
            self._skipped += cursor.skipped
            self._unknown += cursor.unknown

    def statistics(self, cursors: list[Cursor], queued: int) -> FollowStatistics:
        """All of it, with the cursors that are there."""
        return FollowStatistics(
            events=self.events,
            duplicates=self._duplicates + sum(cursor.duplicates for cursor in cursors),
            skipped=self._skipped + sum(cursor.skipped for cursor in cursors),
            unknown=self._unknown + sum(cursor.unknown for cursor in cursors),
            attaches=self.attaches,
            gaps=self.gaps,
            overflows=self.overflows,
            reattached=self.reattached,
            queued=queued,
        )
