"""The wire: `onward.v1`, what a remote client and the gateway say to each other. Pure: bytes in, bytes out."""

from __future__ import annotations

from .envelope import (
    Asked,
    Fault,
    RequestId,
    WireError,
    error_reply,
    notification,
    read_frame,
    refusal_reply,
    result_reply,
)
from .methods import METHODS, Method
from .strict import NotStrictError, strict_loads
from .words import SUBPROTOCOL, CloseCode, ErrorWord, Role, WireLimits, may_reconnect

__all__ = (
    "METHODS",
    "SUBPROTOCOL",
    "Asked",
    "CloseCode",
    "ErrorWord",
    "Fault",
    "Method",
    "NotStrictError",
    "RequestId",
    "Role",
    "WireError",
    "WireLimits",
    "error_reply",
    "may_reconnect",
    "notification",
    "read_frame",
    "refusal_reply",
    "result_reply",
    "strict_loads",
)
