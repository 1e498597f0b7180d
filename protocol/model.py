"""What is asked of a model, and what it reports while it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs
import msgspec

from .turns import Message, Turn, UserMessage

__all__ = (
    "CallDelta",
    "ForceTool",
    "Model",
    "ModelEmit",
    "ModelEvent",
    "ModelRequest",
    "Profile",
    "ReasoningDelta",
    "RequestSent",
    "TextDelta",
    "ToolChoice",
    "ToolDefinition",
)


class ForceTool(msgspec.Struct, frozen=True, gc=False):
    """The tool choice "call this one"."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | ForceTool
"""Whether the model may, must not or must call a tool, or which one it must."""


@attrs.frozen
class ToolDefinition:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema whose type is `object`."""


@attrs.frozen(kw_only=True)
class Profile:
    """What a model's server is known to do. Unknown is the careful answer."""

    keeps_tools_when_off: bool = False
    """Tool choice `none` with the definitions kept is proven: it keeps the prompt cache, and histories valid."""
    flatten_without_tools: bool = False
    """A request without definitions may hold no tool blocks: the history is flattened to text."""
    max_calls_per_turn: int = 128
    """Calls beyond it are cut off when the turn is read: the provider would refuse the turn sent back."""
    reports_sending: bool = False
    """The model emits `RequestSent` when a request is handed to the transport; a call that fails before it is given
    back to the budget. Where this is False, entering `turn()` counts as sent."""
    count_tokens: Callable[[ModelRequest], int] | None = attrs.field(default=None, eq=False)
    """Counts a request's input tokens; `None`: a quarter of its bytes is taken."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One model call."""

    messages: Sequence[Message]
    """The stored conversation, read-only."""
    system: str | None = None
    tail: str | None = None
    """A transient last user message (an instruction, a re-ask): sent with this request, stored nowhere."""
    tools: Sequence[ToolDefinition] = ()
    tool_choice: ToolChoice = "auto"
    temperature: float | None = None
    max_tokens: int | None = None
    """The cap on output tokens; `None`: the provider's own."""
    provider_options: Mapping[str, Any] | None = None
    """Further fields of the provider's own request, sent as they are."""

    def conversation(self) -> list[Message]:
        """The messages to send, the tail last."""
        messages = list(self.messages)
        if self.tail is not None:
            messages.append(UserMessage(self.tail))
        return messages

    @property
    def tools_on(self) -> bool:
        """Whether the model may call tools."""
        return bool(self.tools) and self.tool_choice != "none"


@attrs.frozen
class RequestSent:
    """The request has been handed to the transport: the provider may count it from here on."""


@attrs.frozen
class TextDelta:
    """A piece of visible text."""

    text: str


@attrs.frozen
class ReasoningDelta:
    """A piece of visible reasoning."""

    text: str


@attrs.frozen
class CallDelta:
    """A piece of a tool call: the first one of an index carries the name."""

    index: int
    arguments: str
    name: str = ""


ModelEvent: TypeAlias = RequestSent | TextDelta | ReasoningDelta | CallDelta
"""What a model reports while it answers."""
ModelEmit: TypeAlias = Callable[[ModelEvent], None]
"""Synchronous; never raises, never waits."""


class Model(Protocol):
    """A language model, or something in its place.

    Implementations keep no conversation: everything that is needed stands in the request.
    """

    @property
    def name(self) -> str:
        """What it is, as results, events and the command line show it."""
        ...

    @property
    def profile(self) -> Profile:
        """What it can do."""
        ...

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Make one call, report deltas through `emit` as they arrive, and return the whole turn.

        Raises `ModelError`, with what had arrived in its `partial`.
        """
        ...
