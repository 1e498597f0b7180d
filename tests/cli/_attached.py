"""Builders of what a client is told."""

from __future__ import annotations

from typing import Any

from actors.cli._board import Board
from actors.client import Received
from protocol.events import (
    ApprovalRequired,
    Event,
)
from protocol.wire.replies import AgentInfo


def approval(**fields: Any) -> ApprovalRequired:
    """A question about a call."""
    return ApprovalRequired(**{
        "run": "r1",
        "request": "q2",
        "call": "c1",
        "name": "delete",
        "arguments": {"path": "a.txt"},
        "expires_in_seconds": 60.0,
        "digest": "d",
        **fields,
    })


def received(event: Event, number: int = 1, agent: str = "a1") -> Received:
    """An event of an agent."""
    return Received(agent, "e1", number, event, number)


def info(agent: str = "a1", name: str = "auditor", run: str | None = None, head: int = 0) -> AgentInfo:
    """An agent as the server lists it."""
    return AgentInfo(agent=agent, name=name, state="idle", run=run, epoch="e1", head=head, open_requests=0)


def opened(kind: type[Any], event: Event) -> Any:
    """A question as the server lists it."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return kind(**fields, agent="a1")


def board(*agents: AgentInfo, clock: float = 0.0) -> Board:
    """A board that lists these."""
    made = Board(lambda: clock)
    made.listed(agents, ())
    return made
