"""What a client knows of one agent: the result of a snapshot and the events behind it (see `reducer`)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from ..limits import Counters, LimitState
from ..result import RunSummary
from ..usage import Usage
from .replies import AgentState, ChildInfo, OpenRequest

__all__ = (
    "ClientAgentState",
    "ClientState",
    "MessageView",
    "RequestView",
    "RunView",
    "SteeringView",
    "ToolView",
    "WarningView",
)

ClientAgentState: TypeAlias = AgentState | Literal["stopped"]
"""What an agent is doing, as far as a client knows."""


@attrs.define
class MessageView:
    """One message of a model, as it comes in."""

    text: str = ""
    reasoning: str = ""
    calls: list[str] = attrs.field(factory=list[str])
    """The arguments of its tool calls, as raw text, by `index`."""
    partial: bool = False
    """The beginning is not there: the client began in the middle of it."""


@attrs.define
class ToolView:
    """One tool call."""

    name: str
    arguments: dict[str, Any]
    status: str = "requested"
    """`requested`, `running`, or the status of its result."""
    progress: str = ""
    """The last word from inside the tool."""
    text: str = ""
    """Of its result."""


@attrs.define
class SteeringView:
    """A message to a run."""

    text: str
    status: Literal["queued", "delivered", "dropped"] = "queued"


@attrs.define
class WarningView:
    """Something that a person should know and that changes nothing."""

    code: str
    text: str


@attrs.define
class RunView:
    """One run: the agent's own, or a sub-agent's."""

    agent_path: tuple[str, ...] = ()
    model: str = ""
    prompt: str = ""
    status: Literal["running", "finished", "failed", "cancelled"] = "running"
    step: int = 0
    usage: Usage | None = None
    """Of this run, as far as its events told; at its end what its summary says."""
    limit: LimitState | None = None
    """The last limit that changed its course."""
    compactions: int = 0
    """How often its conversation was compacted."""
    reason: str = ""
    """Why it failed or was cancelled."""
    summary: RunSummary | None = None
    messages: dict[str, MessageView] = attrs.field(factory=dict[str, MessageView])
    tools: dict[str, ToolView] = attrs.field(factory=dict[str, ToolView])
    """By call."""
    steering: dict[str, SteeringView] = attrs.field(factory=dict[str, SteeringView])
    whole: bool = False
    """Whether the beginning of its present message was seen."""
    hops: bool = False
    """Whether the usage of the present step was told hop by hop."""


@attrs.define
class RequestView:
    """A question that waits for somebody."""

    request: OpenRequest
    deadline: float | None
    """On the clock that the reducer is given; `None`: it waits as long as its run."""

    def seconds_left(self, now: float) -> float | None:
        """How long it waits still; `None`: as long as its run."""
        return None if self.deadline is None else max(0.0, self.deadline - now)


@attrs.define
class ClientState:
    """What a client knows of one agent."""

    agent: str
    name: str = ""
    epoch: str = ""
    seq: int = 0
    """The last number that was applied."""
    status: ClientAgentState = "idle"
    run: str | None = None
    """The agent's own run that goes on."""
    counters: Counters | None = None
    runs: dict[str, RunView] = attrs.field(factory=dict[str, RunView])
    """The run that goes on with all below it, and the last that ended."""
    requests: dict[str, RequestView] = attrs.field(factory=dict[str, RequestView])
    """What waits for somebody, oldest first."""
    history: tuple[msgspec.Raw, ...] = ()
    """The conversation before the first event, as the snapshot has it."""
    children: tuple[ChildInfo, ...] = ()
    """Sub-agents that ran at the snapshot."""
    warnings: list[WarningView] = attrs.field(factory=list[WarningView])
    """The last ones."""
