"""What can go wrong for a client of a remote runtime.

ClientError (OnwardError)
  Unreachable      no connection could be made; nothing was sent
  Disconnected     the connection is over and is not made again: the server said so, or the client gave up
  ReplyLost        it is not known whether the command was done
  WireRefused      the server answered that it was not done, and why
"""

from __future__ import annotations

from typing import Any

from protocol.errors import OnwardError

__all__ = ("BROKEN", "ClientError", "Disconnected", "ReplyLost", "Unreachable", "WireRefused")

BROKEN = 1006
"""Stands for the close code of a connection that just broke."""


class ClientError(OnwardError):
    """The base of all errors of `actors.client`."""


class Unreachable(ClientError):
    """No connection could be made; `status` is the HTTP status where a server answered with one."""

    def __init__(self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def may_retry(self) -> bool:
        """Whether a later try may succeed: a refused credential or address stays refused."""
        return self.status is None or self.status in {408, 429} or self.status >= 500


class Disconnected(ClientError):
    """The connection is over and is not made again; `code` is the WebSocket close code, 1006 for none."""

    def __init__(self, message: str, *, code: int = BROKEN) -> None:
        super().__init__(message)
        self.code = code


class ReplyLost(ClientError):
    """A command was given and no reply came: whether it was done has to be looked up."""


class WireRefused(ClientError):
    """The server refused a command.

    `code` is the word of wire.md (`not_found`, `forbidden`, `already_resolved`, `stale_view`, ...), or the number of
    JSON-RPC's own errors as text; `data` holds what else it says, such as `resolution`.
    """

    def __init__(self, code: str, message: str, data: dict[str, Any]) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.data = data

    @property
    def retryable(self) -> bool:
        """Whether the same command may succeed later."""
        return bool(self.data.get("retryable"))
