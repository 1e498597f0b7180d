"""What the server says on its own: events, heartbeats and notices. None of them is answered."""

from __future__ import annotations

import msgspec

from .replies import RawEvent

__all__ = ("NOTIFICATIONS", "Events", "Heartbeat", "Notice", "Notification", "Skipped")


class Notification(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The base of all notifications' parameters."""


class Skipped(Notification, frozen=True, kw_only=True, tag_field="type", tag="skipped"):
    """Stands for events that the client does not want or may not see."""

    n: int
    """How many numbers it stands for."""


class Events(Notification, frozen=True, kw_only=True):
    """Events of one agent, without a gap between them."""

    agent: str
    epoch: str
    seq: int
    """The number of the first one. Each further number is the one before plus that event's `n` (1 where absent)."""
    events: tuple[RawEvent, ...]


class Heartbeat(Notification, frozen=True, kw_only=True):
    """The connection lives. It comes at every interval, whether anything has happened or not."""

    heads: dict[str, int]
    """The last numbers of those followed agents where they have moved: who has less for long has lost something."""


class Notice(Notification, frozen=True, kw_only=True):
    """A word about the connection itself, for a person or a log; clients do nothing for it."""

    code: str
    """A stable word."""
    text: str


NOTIFICATIONS: dict[str, type[Notification]] = {"events": Events, "heartbeat": Heartbeat, "notice": Notice}
"""Every notification by its method."""
