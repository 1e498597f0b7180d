"""What the hooks of a run are given, and what they may give back (loop.md section 5).

All of it is read-only: what a hook wants changed, it returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from protocol.limits import LimitState
from protocol.model import Model, ToolChoice
from protocol.result import RunResult, StepResult
from protocol.stop import StopState
from protocol.turns import Message
from protocol.usage import Usage

from ..tools import Tool

__all__ = (
    "AroundTool",
    "CallConfig",
    "CheckAnswer",
    "Compact",
    "CompactState",
    "ContinueWhen",
    "OnContextOverflow",
    "OnRunEnd",
    "OnStep",
    "PendingTool",
    "PrepareCall",
    "PrepareStep",
    "Proceed",
    "StepOverrides",
    "StepState",
)

UNSET = msgspec.UNSET
UnsetType: TypeAlias = msgspec.UnsetType


class CallConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One model call, as `prepare_call` sees it; `config.replace(...)` makes the one to return (H1)."""

    step_number: int
    """Zero-based."""
    system: str | None
    messages: Sequence[Message]
    """What will be sent, an instruction or a re-ask last. Returned changed, it holds for this call only."""
    tools: Sequence[Tool]
    """What will be offered; what is not among them cannot run in this step."""
    temperature: float | None
    max_tokens: int | None
    accumulated_usage: Usage
    custom_data: Any
    """The one thing that is carried to the next call; it starts as `agent.run(custom_data=)`."""

    def replace(self, **changes: Any) -> CallConfig:
        """A copy with other values. Raises `TypeError` for a field that there is not."""
        return msgspec.structs.replace(self, **changes)


class StepState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run stands before a model call, as `prepare_step` sees it (H2)."""

    step_number: int
    """Zero-based."""
    final: LimitState | None
    """Set for the final call that this limit led to."""
    steps: Sequence[StepResult]
    """All finished steps of the run."""
    messages: Sequence[Message]
    """What will be sent, an instruction or a re-ask last."""
    system: str | None
    model: Model
    tools: Sequence[Tool]
    usage: Usage
    cost: float | None
    """In US dollars; `None`: unknown."""
    elapsed_seconds: float
    context: Any
    custom_data: Any


class StepOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """What `prepare_step` or `run.override_next` changes. What is left unset stays; `None` is a value (H2).

    The first four are kept for the later steps of the run, the rest hold for one step.
    """

    messages: Sequence[Message] | UnsetType = UNSET
    """Sent in place of the conversation so far; what is stored is not changed."""
    system: str | UnsetType | None = UNSET
    context: Any = UNSET
    custom_data: Any = UNSET
    model: Model | UnsetType = UNSET
    tools: Sequence[Any] | UnsetType = UNSET
    """Tools, or functions to make tools of."""
    active_tools: Sequence[str] | UnsetType = UNSET
    """Names: the rest are hidden, and cannot run."""
    tool_choice: ToolChoice | UnsetType = UNSET
    provider_options: Mapping[str, Any] | UnsetType = UNSET
    """Merged over the agent's own."""
    temperature: float | UnsetType | None = UNSET
    max_tokens: int | UnsetType | None = UNSET
    automatic_continuation: bool | UnsetType | None = UNSET

    def over(self, other: StepOverrides) -> StepOverrides:
        """These, and of `other` what these leave unset."""
        mine = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return msgspec.structs.replace(other, **mine)


class CompactState(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that has grown too long, as `compact` sees it."""

    messages: Sequence[Message]
    """The stored conversation: whole exchanges. The system prompt is no part of it."""
    prompt: str
    """What the run was asked for; its message has to stay, as has the last one of the user."""
    estimated_tokens: int
    """Of the next request as a whole: system prompt, tools, messages."""
    target_tokens: int
    """What the messages should come down to: half of the room that they have; after a refusal half of what they took."""
    threshold_tokens: int | None
    """The size of a request above which the hook is asked; `None`: only where the server refuses one."""
    context_window: int | None
    """Of the acting agent's model; `None`: unknown."""
    refusal: str | None
    """What the server said when it refused the request for its length; `None`: nothing has been sent."""
    attempt: int
    """0 before a model call; after refusals 1 and up."""
    is_final: bool
    """The run is in its final call."""
    model: Model
    context: Any
    count_tokens: Callable[[Sequence[Message]], int]
    """Tokens of messages, estimated as the rest is."""


class PendingTool(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is about to run, as `around_tool` sees it."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    """A copy: changed arguments are given to `proceed`."""
    context: Any


Proceed: TypeAlias = Callable[..., Awaitable[Any]]
"""`await proceed()` or `await proceed(arguments)`, once: waits until the calls of the turn are decided, runs the body, and
returns what it returns or raises what it raises. Other arguments are validated, and are what an approval shows."""

PrepareCall: TypeAlias = Callable[[CallConfig], CallConfig | Awaitable[CallConfig]]
PrepareStep: TypeAlias = Callable[[StepState], StepOverrides | Awaitable[StepOverrides | None] | None]
ContinueWhen: TypeAlias = Callable[[StopState], str | Awaitable[str | None] | None]
CheckAnswer: TypeAlias = Callable[[str], str | Awaitable[str | None] | None]
AroundTool: TypeAlias = Callable[[PendingTool, Proceed], Awaitable[Any]]
OnContextOverflow: TypeAlias = Callable[
    [Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message] | None] | None
]
Compact: TypeAlias = Callable[[CompactState], Sequence[Message] | Awaitable[Sequence[Message] | None] | None]
OnStep: TypeAlias = Callable[[StepResult], object]
OnRunEnd: TypeAlias = Callable[[RunResult], object]
