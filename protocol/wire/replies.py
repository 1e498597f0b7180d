"""What commands are answered with. A field without a default is always there; one that has its default is left out."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from ..events import ApprovalRequired, ContinuationRequired, RunPaused
from ..limits import Counters
from ..usage import Usage
from .words import Role, WireLimits

__all__ = (
    "AgentInfo",
    "AgentState",
    "Agents",
    "Attached",
    "AttachedAll",
    "ChildInfo",
    "Decided",
    "Fetched",
    "Nothing",
    "OpenApproval",
    "OpenContinuation",
    "OpenPause",
    "OpenRequest",
    "RawEvent",
    "RawMessage",
    "Reply",
    "Requests",
    "RunState",
    "Snapshot",
    "Spawned",
    "Started",
    "Steered",
    "Welcome",
)

AgentState: TypeAlias = Literal["idle", "running", "waiting", "paused"]
"""`waiting`: for a decision; `paused`: for results that its caller gives."""

RunState: TypeAlias = AgentState | Literal["ended", "failed", "cancelled"]
"""What has become of a run: it is over (`ended`, or `failed` or `cancelled`), or what its agent does for it."""

RawEvent: TypeAlias = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"$ref": "#/$defs/LoggedEvent"})]
"""An event as the log holds it, or `skipped`: encoded once, and decoded by whoever knows its type."""

RawMessage: TypeAlias = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"$ref": "#/$defs/Message"})]
"""A message of the conversation, encoded."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The base of all results."""


class Nothing(Reply, frozen=True, kw_only=True):
    """It is done."""


class Welcome(Reply, frozen=True, kw_only=True):
    """The answer to `hello`."""

    connection: str
    """The connection's id, for logs."""
    server_time: str
    """RFC 3339."""
    heartbeat_seconds: float
    """How often `heartbeat` comes: two that do not come mean that the connection is lost."""
    limits: WireLimits
    capabilities: dict[str, Any]
    """What this server can do beyond this document, by name."""
    principal: str
    """Who the client is."""
    roles: tuple[Role, ...]
    """What it holds."""


class AgentInfo(Reply, frozen=True, kw_only=True):
    """One agent in a list."""

    agent: str
    name: str
    state: AgentState
    run: str | None
    """The run that goes on."""
    epoch: str
    head: int
    """The last number that can be seen; 0: none yet."""
    open_requests: int
    """How many questions wait."""


class Agents(Reply, frozen=True, kw_only=True):
    """The agents."""

    agents: tuple[AgentInfo, ...]


class Spawned(Reply, frozen=True, kw_only=True):
    """The agent that was made."""

    agent: str
    name: str
    replayed: bool = False
    """The command had been done already: this is its first answer."""


class Started(Reply, frozen=True, kw_only=True):
    """The run that was started."""

    run: str
    seq: int
    """Its first event comes behind this number."""
    replayed: bool = False
    """The command had been done already: this is its first answer."""
    state: RunState | None = None
    """Of a command that is repeated: what has become of the run."""


class Steered(Reply, frozen=True, kw_only=True):
    """The message waits for the run's next boundary: `message_queued` tells all."""

    replayed: bool = False
    """The command had been done already."""


class OpenContinuation(
    ContinuationRequired, frozen=True, kw_only=True, omit_defaults=False, tag_field="kind", tag="continuation"
):
    """The question "go on?" as it waits: all that its event says; `expires_in_seconds` is as of now."""

    agent: str


class OpenApproval(ApprovalRequired, frozen=True, kw_only=True, omit_defaults=False, tag_field="kind", tag="approval"):
    """The question "may this call run?" as it waits: all that its event says; `expires_in_seconds` is as of now."""

    agent: str


class OpenPause(RunPaused, frozen=True, kw_only=True, omit_defaults=False, tag_field="kind", tag="tools"):
    """Calls that wait for the results that their caller gives (`tools.submit`)."""

    agent: str
    expires_in_seconds: None = None
    """It waits for ever."""


OpenRequest: TypeAlias = OpenContinuation | OpenApproval | OpenPause
"""What waits for somebody."""


class Requests(Reply, frozen=True, kw_only=True):
    """The open requests."""

    requests: tuple[OpenRequest, ...]


class ChildInfo(Reply, frozen=True, kw_only=True):
    """A run of a sub-agent that goes on."""

    run: str
    agent_path: tuple[str, ...]
    state: AgentState


class Snapshot(Reply, frozen=True, kw_only=True):
    """An agent as it is at `head`."""

    state: AgentState
    run: str | None
    """The run that goes on."""
    step_number: int
    counters: Counters | None
    usage: Usage | None
    history: tuple[RawMessage, ...]
    """The last messages of the conversation, at most 100 and 64 KiB."""
    children: tuple[ChildInfo, ...]


class Attached(Reply, frozen=True, kw_only=True):
    """What follows begins behind the number that was asked for, or behind `head` where there is a snapshot."""

    epoch: str
    """Another one than before: nothing of what was known goes on."""
    head: int
    """The last number that can be seen; 0: none yet."""
    oldest: int
    """The lowest number that can be sent."""
    recovered: bool
    """Whether all behind the number asked for follows; if not, there is a snapshot."""
    open_requests: tuple[OpenRequest, ...]
    """All that wait, whatever was asked for."""
    snapshot: Snapshot | None = None


class AttachedAll(Reply, frozen=True, kw_only=True):
    """The answer to an attach to `*`."""

    agents: dict[str, Attached]


class Fetched(Reply, frozen=True, kw_only=True):
    """A page of events."""

    epoch: str
    seq: int
    """The number of the first one."""
    events: tuple[RawEvent, ...]
    more: bool
    """Whether there are further ones now."""


class Decided(Reply, frozen=True, kw_only=True):
    """The decision counts."""

    status: Literal["accepted"]
    request: str
    replayed: bool = False
    """The command had been done already: this is its first answer."""
