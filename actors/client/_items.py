"""What a follower is given."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from protocol.events import Event
from protocol.wire.commands import Position
from protocol.wire.replies import Attached as AttachReply

__all__ = ("Attached", "Gone", "Item", "Reattached", "Received")


@attrs.frozen
class Received:
    """An event of an agent."""

    agent: str
    epoch: str
    number: int
    event: Event
    last: int
    """The same as `number`, or for a merged delta the last of the numbers that it stands for."""

    @property
    def position(self) -> Position:
        """Where to go on behind it: what `follow(since=)` takes."""
        return Position(epoch=self.epoch, seq=self.last)


@attrs.frozen
class Attached:
    """From here on the agent is followed: the first that is given of an agent, where it is followed from `head`.

    Its state is in `reply.snapshot` and `reply.open_requests`; what comes next is behind `reply.head`.
    """

    agent: str
    reply: AttachReply


@attrs.frozen
class Reattached(Attached):
    """The same in the middle: what came between could not be had any more, so that all has to begin from the snapshot."""


@attrs.frozen
class Gone:
    """The agent was no longer there when the connection came back, so that its last events could not be had."""

    agent: str


Item: TypeAlias = Received | Attached | Gone
"""All that an iteration over a follower gives."""
