"""What is asked of a model, and what it reports while it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs
import msgspec

from .turns import AssistantMessage, Message, Part, Turn, UserMessage
from .usage import Usage

__all__ = (
    "CONTINUE_TEXT",
    "CallDelta",
    "ForceTool",
    "HopBegan",
    "HopEnded",
    "InterruptReason",
    "Model",
    "ModelEmit",
    "ModelEvent",
    "ModelRequest",
    "Profile",
    "ReasoningDelta",
    "RequestSent",
    "Resume",
    "ResumeStrategy",
    "Retrying",
    "Strategy",
    "TextContinuation",
    "TextDelta",
    "ToolChoice",
    "ToolDefinition",
    "Undone",
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


Strategy: TypeAlias = Literal["token", "exact_prefix", "resend", "user_turn", "restart_bigger"]
"""How a decode that was cut is continued (D5).

`token`: the provider handed out a token that resumes it exactly. `exact_prefix`: the server goes on with a trailing
assistant message. `resend`: the turn that the server paused is sent back as it is. `user_turn`: a user message asks
to continue where the text stopped. `restart_bigger`: the turn is made anew with a bigger output cap.
"""

InterruptReason: TypeAlias = Literal[
    "transport",
    "http_status",
    "deadline",
    "cancelled",
    "hop_limit",
    "token_limit",
    "no_progress",
    "truncated",
    "server_error",
    "protocol",
]
"""What broke off a decode that was being continued."""

ResumeStrategy: TypeAlias = Literal["exact_prefix", "resend", "user_turn"]
"""The strategies that send the turn so far."""

TextContinuation: TypeAlias = Literal["exact_prefix", "user_turn", "none"]
"""What a server can do about a text that its token limit cut."""

CONTINUE_TEXT = (
    "Your reply was cut off by the output limit. Continue it exactly where it stopped: repeat nothing, explain nothing."
)
"""The transient message of `user_turn`."""


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
    parallel_calls: bool | None = None
    """Whether a turn may hold several calls; `False` asks for one at a time where the format has a word for it,
    `None` leaves it to the server."""
    echoes_reasoning: bool = False
    """Reasoning that was shown without a signature is sent back with the turn it belongs to, as some servers demand
    in a tool loop. Signed and opaque reasoning always is."""
    takes_temperature: bool = True
    """Where this is False, `temperature` is not sent: the server would refuse it."""
    continues_text: TextContinuation = "user_turn"
    """What is done about a text that the token limit cut, where `automatic_continuation` is on."""
    default_max_tokens: int | None = None
    """The output cap that holds where the request names none."""
    max_output_tokens: int | None = None
    """The biggest output cap that the model is known to take: a cut turn may be made anew with it."""
    context_window: int | None = None
    """Tokens of input and output together; where it is full, nothing is continued."""


class Resume(msgspec.Struct, frozen=True, gc=False):
    """A turn of the model's own that is to go on: the reply holds only what follows it."""

    parts: tuple[Part, ...]
    """The turn so far."""
    strategy: ResumeStrategy


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
    resume: Resume | None = None
    """The model's own unfinished turn, which stands behind everything else."""
    automatic_continuation: bool | None = None
    """`False`: a decode for which the provider hands out a token is not continued within the call (D0)."""

    def conversation(self) -> list[Message]:
        """The messages to send: the stored ones, the tail, the turn to resume and what asks for it."""
        messages = list(self.messages)
        if self.tail is not None:
            messages.append(UserMessage(self.tail))
        if self.resume is not None:
            messages.append(AssistantMessage(self.resume.parts))
            if self.resume.strategy == "user_turn":
                messages.append(UserMessage(CONTINUE_TEXT))
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


@attrs.frozen
class Retrying:
    """The request is sent again after `seconds`: nothing of its reply had been reported, or it is `Undone`."""

    attempt: int
    """The number of the coming attempt; the first retry is 1."""
    seconds: float
    reason: str


@attrs.frozen
class Undone:
    """What was reported beyond these marks is void: it will be reported again."""

    text: int = 0
    """Characters of visible text that stand."""
    reasoning: int = 0
    """Characters of reasoning that stand."""
    calls: int = 0
    """Calls that stand, by number of their index."""


@attrs.frozen
class HopBegan:
    """One request of a decode that is continued has begun; the first is 0."""

    hop: int
    strategy: Strategy = "token"


@attrs.frozen
class HopEnded:
    """One request of a decode that is continued has ended."""

    hop: int
    interaction: str | None
    """The vendor's id of the response."""
    status: str
    """The vendor's word for how it ended; `lost` for a hop that broke off."""
    usage: Usage


ModelEvent: TypeAlias = RequestSent | TextDelta | ReasoningDelta | CallDelta | Retrying | Undone | HopBegan | HopEnded
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
