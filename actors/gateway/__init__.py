"""The gateway: events out, decisions in, over WebSocket (`onward.v1`)."""

from __future__ import annotations

from ._access import Access, read_token_file
from ._door import Door, is_loopback
from ._limits import DoorLimits
from ._pace import Pace
from ._principals import ALL_ROLES, Principal
from ._server import Gateway, open_gateway
from ._spawn import Template

__all__ = (
    "ALL_ROLES",
    "Access",
    "Door",
    "DoorLimits",
    "Gateway",
    "Pace",
    "Principal",
    "Template",
    "is_loopback",
    "open_gateway",
    "read_token_file",
)
