"""The words and numbers of `onward.v1` that both sides know."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = (
    "APPLICATION_ERROR",
    "ERRORS",
    "ERRORS_OF_ALL",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "SUBPROTOCOL",
    "CloseCode",
    "ErrorWord",
    "Role",
    "WireLimits",
    "may_reconnect",
)

SUBPROTOCOL = "onward.v1"
"""The name and the version: what is renamed or re-typed has another one."""

PARSE_ERROR = -32700
"""No strict JSON."""
INVALID_REQUEST = -32600
"""JSON, but no command."""
METHOD_NOT_FOUND = -32601
"""No such method."""
INVALID_PARAMS = -32602
"""Parameters that do not fit the method's schema."""
INTERNAL_ERROR = -32603
"""A fault on the server's side."""
APPLICATION_ERROR = -32010
"""A command that was refused: `data.code` says why."""

ErrorWord: TypeAlias = Literal[
    "not_found",
    "forbidden",
    "idem_conflict",
    "unauthenticated",
    "invalid_argument",
    "already_resolved",
    "stale_view",
    "busy",
    "overloaded",
    "too_large",
    "draining",
]
"""What an application error's `data.code` may be: these words are the contract."""

ERRORS: dict[ErrorWord, str] = {
    "not_found": "There is no such agent, run, request or position, or it is not there for this principal.",
    "forbidden": "The principal does not hold the role that the command needs.",
    "idem_conflict": "Another command was accepted under this `idem`: a new command takes a new one.",
    "unauthenticated": "The credential is no longer good.",
    "invalid_argument": "It fits the schema and cannot be done: the message says why. A request stays open.",
    "already_resolved": "The request is closed: `resolution` says how, by whom, and where its event stands.",
    "stale_view": "The digest is not the open request's: look again before deciding.",
    "busy": "The agent has a run: try again when it has ended, or queue the new one. Or the host has no room for it now.",
    "overloaded": "Commands come too fast, or too many wait: try again after `retry_after_ms`.",
    "too_large": "A text is longer than `limits.text_bytes` of `hello`.",
    "draining": "The agent, or the whole server, takes no new work any more.",
}
"""What each word tells a client."""

ERRORS_OF_ALL: tuple[ErrorWord, ...] = ("forbidden", "unauthenticated", "overloaded", "draining")
"""Words that any command may be refused with."""

Role: TypeAlias = Literal["observe", "decide", "operate", "admin"]
"""What a principal may do. Roles imply nothing, except that `admin` holds all and each includes `observe`."""


class CloseCode:
    """Why a connection was closed. From 4000: try again, with back-off and jitter; from 4500: do not."""

    NORMAL = 1000
    """The client has left."""
    GOING_AWAY = 1001
    """The server ends, or two pings were not answered."""
    PROTOCOL_ERROR = 1002
    """A frame broke the rules of RFC 6455."""
    UNSUPPORTED_DATA = 1003
    """A binary message came: this protocol has text alone."""
    INVALID_TEXT = 1007
    """A text message was not UTF-8."""
    TOO_BIG = 1009
    """A message had too many bytes or fragments."""
    INTERNAL = 1011
    """A fault on the server's side."""
    RESTART = 1012
    """The server restarts: connect again."""
    SLOW = 4008
    """More waited for the client than a queue holds, or one frame took too long: attach again from the last number."""
    OVERLOADED = 4013
    """The server has too much to do."""
    TOO_MANY = 4014
    """Commands, or control frames, came too fast for too long."""
    ATTACH_AGAIN = 4020
    """What the client followed cannot be continued."""
    UNAUTHENTICATED = 4501
    """The token was revoked, the session is over, or no `hello` came in time."""
    FORBIDDEN = 4503
    """The principal may no longer observe."""
    VERSION = 4526
    """The client did not offer this subprotocol."""


def may_reconnect(code: int) -> bool:
    """Whether a client that was closed with this code should try again; a connection that just broke has 1006."""
    return not (code in {1000, 1002, 1003, 1007, 1009} or 4500 <= code < 5000)


@attrs.frozen(kw_only=True)
class WireLimits:
    """What a server of `onward.v1` takes; `hello` tells it to clients."""

    message_bytes: int = 65_536
    """The biggest command; a bigger one closes 1009."""
    message_fragments: int = 64
    """The most fragments of one message; more close 1009."""
    text_bytes: int = 8_192
    """The longest text of a person (steering, a reason): longer is `too_large`."""
    frame_bytes: int = 1_048_576
    """The biggest frame that the server sends."""
    queue_bytes: int = 1_048_576
    """What may wait for a client before it is closed with 4008."""
    commands_per_second: float = 20.0
    """Commands on average; one above it is `overloaded`."""
    commands_burst: int = 40
    """Commands at once."""
    depth: int = 64
    """The deepest JSON."""
