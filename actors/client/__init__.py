"""The client of a remote runtime: events in, decisions and commands out, over connections that may break."""

from __future__ import annotations

from protocol.wire.commands import Position, RunLimits

from ._client import Client, ClientStatistics, connect
from ._errors import ClientError, Disconnected, ReplyLost, Unreachable, WireRefused
from ._follow import Follower
from ._items import Attached, Gone, Item, Reattached, Received
from ._pace import ClientPace
from ._track import FollowStatistics

__all__ = (
    "Attached",
    "Client",
    "ClientError",
    "ClientPace",
    "ClientStatistics",
    "Disconnected",
    "FollowStatistics",
    "Follower",
    "Gone",
    "Item",
    "Position",
    "Reattached",
    "Received",
    "ReplyLost",
    "RunLimits",
    "Unreachable",
    "WireRefused",
    "connect",
)
