"""Tools, and messages from outside."""

from __future__ import annotations

from typing import Any

from ..turns import ToolStatus
from ._base import RunEvent

__all__ = (
    "MessageDelivered",
    "MessageDropped",
    "MessageQueued",
    "ToolFinished",
    "ToolProgress",
    "ToolRequested",
    "ToolStarted",
)


class ToolRequested(RunEvent, frozen=True, kw_only=True):
    """The model asks for a tool: one event for each call that is stored, in call order, when the turn has ended."""

    call: str
    name: str
    arguments: dict[str, Any]
    """As they are stored, and as they run unless a hook or a person changes them."""
    repaired: bool = False
    """JSON text in them, where the tool's schema wants what it says, has been decoded (T3)."""


class ToolStarted(RunEvent, frozen=True, kw_only=True):
    """The tool's body is entered."""

    call: str
    name: str


class ToolProgress(RunEvent, frozen=True, kw_only=True):
    """A word from inside a tool."""

    call: str
    text: str


class ToolFinished(RunEvent, frozen=True, kw_only=True):
    """The call has its result: exactly one for each `tool_requested`."""

    call: str
    name: str
    status: ToolStatus
    started: bool
    """Whether the body was entered."""
    text: str


class MessageQueued(RunEvent, frozen=True, kw_only=True):
    """A steering message waits for the next boundary."""

    message: str
    text: str


class MessageDelivered(RunEvent, frozen=True, kw_only=True):
    """A steering message has been appended to the history."""

    message: str


class MessageDropped(RunEvent, frozen=True, kw_only=True):
    """A steering message still waited when the run ended."""

    message: str
    reason: str
