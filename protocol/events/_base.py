"""What all events share."""

from __future__ import annotations

from typing import Any

import attrs
import msgspec

__all__ = (
    "ErrorInfo",
    "Event",
    "PendingCall",
    "RunEvent",
)


def _tag(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type", tag=_tag):
    """The base of all events; `type` on the wire is the class's name in snake case unless it says otherwise.

    No event can be part of a cycle, so the garbage collector need not look at them (`gc=False`).
    """

    @property
    def type(self) -> str:
        """The event's name on the wire."""
        return str(self.__struct_config__.tag)


class RunEvent(Event, frozen=True, kw_only=True):
    """An event of a run."""

    run: str
    agent_path: tuple[str, ...] = ()
    """Names from the root's sub-agent down to the one that speaks; empty for the root itself."""


@attrs.frozen
class PendingCall:
    """A call that waits for a decision."""

    id: str
    name: str
    arguments: dict[str, Any]


@attrs.frozen
class ErrorInfo:
    """A failure as clients see it."""

    code: str
    """A stable word: the error class's name in snake case."""
    message: str
