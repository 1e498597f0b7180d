"""The parameters of the commands of `onward.v1`; `methods` says who may give which.

Unknown parameters are ignored; what does not fit is -32602, with the place. `idem` is the client's key for the command:
the same key with the same content is done once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

__all__ = (
    "Ack",
    "AgentAttach",
    "AgentDetach",
    "AgentFetch",
    "AgentList",
    "AgentSpawn",
    "AgentStop",
    "ApprovalDecide",
    "ClientInfo",
    "Command",
    "ContinuationDecide",
    "Hello",
    "Ping",
    "Position",
    "RequestList",
    "RunCancel",
    "RunLimits",
    "RunStart",
    "RunSteer",
    "SpawnSpec",
    "ToolsSubmit",
)

# Here `$` also matches before a newline that ends the text; in the dialect of JSON Schema the last group says nothing.
Id: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)")]
"""An id of ours or of the client's."""
Target: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(\*|[A-Za-z0-9_-]{1,64})$(?!\n)")]
"""An agent, or `*` for all."""
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
"""A name that the other side may not know."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number that every client can hold."""
Least1: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
"""The same, from 1."""
Above0: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
"""An amount."""
Ack: TypeAlias = Annotated[
    dict[Id, Count],
    msgspec.Meta(
        description="How far the client has come: by agent, the last number applied. The map is all there is."
    ),
]
"""Say how far a client has come."""


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The base of all parameters."""


class ClientInfo(Command, frozen=True, kw_only=True):
    """Who a client says it is: for logs alone."""

    name: Word = ""
    version: Word = ""


class Hello(Command, frozen=True, kw_only=True):
    """The first command of a connection, within five seconds."""

    client: ClientInfo | Word = ClientInfo()
    """Its name and version, or its name alone."""
    want: tuple[Word, ...] = ()
    """Capabilities that the client would use; unknown ones are ignored."""


class Ping(Command, frozen=True, kw_only=True):
    """Answered at once."""


class AgentList(Command, frozen=True, kw_only=True):
    """The agents that the client may see."""


class SpawnSpec(Command, frozen=True, kw_only=True):
    """A template that the host registered, and what it lets a client change: never code."""

    template: Id
    """The name that it is registered by."""
    name: Id | None = None
    """What the agent is called; `null`: as the template says."""
    overrides: dict[str, Any] = {}
    """Settings in place of the template's; only those that it permits."""


class AgentSpawn(Command, frozen=True, kw_only=True):
    """Make an agent."""

    spec: SpawnSpec
    idem: Id
    """The client's key for this command: sent again with the same content, it is done once."""


class AgentStop(Command, frozen=True, kw_only=True):
    """Stop an agent: it takes no more runs, and the present one ends."""

    agent: Id
    mode: Literal["boundary", "now"] = "boundary"
    """When its run ends: at the next boundary, or at once."""
    reason: str = ""


class RunLimits(Command, frozen=True, kw_only=True):
    """Limits for one run: they only lower what the agent has. `null`: as the agent has it."""

    max_tool_iterations: Least1 | None = None
    """Tool rounds in one window."""
    max_llm_calls: Least1 | None = None
    """Model calls."""
    max_tool_calls: Least1 | None = None
    """Tool bodies entered."""
    max_total_tokens: Least1 | None = None
    """Tokens of all classes."""
    max_cost: Above0 | None = None
    """US dollars."""
    wall_clock_seconds: Above0 | None = None
    """Seconds of work; waits for a decision do not count."""


class RunStart(Command, frozen=True, kw_only=True):
    """Start a run. It is the agent's own and outlives the connection."""

    agent: Id
    prompt: Annotated[str, msgspec.Meta(min_length=1)]
    idem: Id
    """The client's key for this command: sent again with the same content, it is done once."""
    limits: RunLimits | None = None
    """Lower limits than the agent's."""
    if_busy: Literal["refuse", "queue"] = "refuse"
    """What to do while the agent has a run: refuse (`busy`), or wait for its end."""


class RunCancel(Command, frozen=True, kw_only=True):
    """End a run. Of one that has ended, nothing is left to do."""

    run: Id
    mode: Literal["boundary", "now"] = "boundary"
    """`boundary`: when the present step is whole; `now`: at once, and what is in the air is lost."""
    reason: str = ""


class RunSteer(Command, frozen=True, kw_only=True):
    """Give a run a message: the model reads it at the next boundary."""

    run: Id
    text: Annotated[str, msgspec.Meta(min_length=1)]
    idem: Id
    """The client's key for this command: sent again with the same content, it is done once."""


class ToolsSubmit(Command, frozen=True, kw_only=True):
    """Give a paused run the results of its caller's own tools."""

    run: Id
    results: dict[str, Any]
    """By call id; several commands may each bring some of them."""


class Position(Command, frozen=True, kw_only=True):
    """A place in an agent's events."""

    epoch: Id
    """Within which numbers mean something."""
    seq: Count
    """The last number that was applied: what is sent begins behind it."""


class AgentAttach(Command, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Follow an agent, or all (`*`), those that are spawned later included. A second attach replaces the first."""

    agent: Target
    from_: Position | Literal["head", "start"] = "head"
    """Behind a position, from now on (`head`), or from the first event that is held. `*` takes no position."""
    deltas: bool = True
    """Whether deltas are wanted."""
    types: tuple[Word, ...] | None = None
    """Events that are wanted; requests, resolutions and terminal events always come. `null`: all."""


class AgentDetach(Command, frozen=True, kw_only=True):
    """Follow an agent, or all of them (`*`), no longer."""

    agent: Target


class AgentFetch(Command, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Events behind a position, as many as fit in a frame."""

    agent: Id
    from_: Position
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 500
    """The most events."""


class RequestList(Command, frozen=True, kw_only=True):
    """All open requests that the client may see."""


class ContinuationDecide(Command, frozen=True, kw_only=True):
    """Answer the question "go on?"."""

    request: Id
    decision: str
    """`approve` or `decline`: one of the request's `decisions`. An unknown word is never approval."""
    digest: str
    """The request's: of what the person saw."""
    idem: Id
    """The client's key for this command: sent again with the same content, it is done once."""
    message: str | None = None
    """With an approval: what the model reads next. With a refusal: why."""
    discard_tool_calls: bool | tuple[str, ...] = False
    """With an approval: do not run the calls that wait, all of them or those with these ids."""
    tool_message: str | None = None
    """What the model reads as the result of a call that is not run."""
    grant: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """With an approval: how much more, in the limit's unit; `null`: the request's `default_grant`."""


class ApprovalDecide(Command, frozen=True, kw_only=True):
    """Answer the question "may this call run?"."""

    request: Id
    decision: str
    """`approve` or `deny`. An unknown word is never approval."""
    digest: str
    """The request's: of what the person saw."""
    idem: Id
    """The client's key for this command: sent again with the same content, it is done once."""
    reason: str | None = None
    """With a refusal: the model reads it."""
    arguments: dict[str, Any] | None = None
    """With an approval: run the call with these in place of what was shown. They must fit the tool's schema."""
