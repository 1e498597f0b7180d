"""The canonical conversation: what every model's reply is read into, and every request is written from.

A turn is *parts* in the order the model produced them. What must be sent back untouched to the vendor that
made it (signed reasoning, unknown items) is an `OpaquePart` and keeps its place. Parts and messages are members
of tagged unions, so they are msgspec structs: they decode without a registry.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import msgspec

from .text import is_visible
from .usage import UNKNOWN_USAGE, Usage

__all__ = (
    "AssistantMessage",
    "Ending",
    "Finish",
    "Hop",
    "Message",
    "OpaquePart",
    "Part",
    "ReasoningPart",
    "TextPart",
    "ToolCall",
    "ToolMessage",
    "ToolResult",
    "ToolStatus",
    "Turn",
    "Unfinished",
    "UserMessage",
    "calls_of",
    "raw_text_of",
    "text_of",
)

ToolStatus: TypeAlias = Literal["ok", "error", "timed_out", "interrupted", "denied", "discarded", "not_run"]
"""How a call ended. The body was entered for `ok`, `timed_out`, `interrupted` and some `error`; never for the rest."""

Finish: TypeAlias = Literal["stop", "tool_calls", "length", "paused", "content_filter", "malformed", "other"]
"""A finish reason in the field's common words; `other` is one that the model's profile does not know. `paused`: the
server interrupted its own work and goes on when the turn is sent back."""

Ending: TypeAlias = Literal["complete", "lost"]
"""Whether the reply ended by its format's own end signal, or broke off."""


class TextPart(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """Visible text."""

    text: str


class ReasoningPart(msgspec.Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """Reasoning that the vendor shows. It is replayed only where the vendor signed it."""

    text: str
    signature: str | None = None


class ToolCall(msgspec.Struct, frozen=True, gc=False, tag="call", omit_defaults=True):
    """The model's wish to run a tool."""

    id: str
    """Unique in the conversation; call, result, events and requests use the same."""
    name: str
    arguments: str
    """The text of a JSON object. What the model sent instead, if it was none, stands in `malformed`."""
    malformed: str | None = None
    """The raw arguments, if they were no JSON object; `arguments` is then `{}`."""
    vendor_id: str | None = None
    """The vendor's own id, where it differs from `id`."""
    repaired: bool = False
    """JSON text in the arguments, where the tool's schema wants what it says, has been decoded (T3)."""


class OpaquePart(msgspec.Struct, frozen=True, gc=False, tag="opaque", omit_defaults=True):
    """An item to be replayed verbatim, to the wire format that made it and to no other."""

    format: str
    """The wire format's name, such as `openai-chat`."""
    data: str
    """The item as JSON text."""
    call: str | None = None
    """The id of the call it lives and dies with, if any."""


Part: TypeAlias = TextPart | ReasoningPart | ToolCall | OpaquePart
"""One piece of a turn."""


class ToolResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The one answer to a call."""

    call: str
    name: str
    status: ToolStatus
    text: str
    entered: bool = False
    """Whether the tool's body was entered: only then may it have had an effect."""


class UserMessage(msgspec.Struct, frozen=True, gc=False, tag_field="role", tag="user"):
    """What a person, or somebody in a person's place, said."""

    text: str


class AssistantMessage(msgspec.Struct, frozen=True, gc=False, tag_field="role", tag="assistant", omit_defaults=True):
    """What the model said."""

    parts: tuple[Part, ...]
    partial: bool = False
    """Cut, lost or cancelled: the text is not the whole answer."""


class ToolMessage(msgspec.Struct, frozen=True, gc=False, tag_field="role", tag="tool"):
    """All results of the assistant message directly before it, in call order."""

    results: tuple[ToolResult, ...]


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
"""One message of the conversation."""


class Hop(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One request of a decode that was continued."""

    interaction: str | None
    """The vendor's id of the response."""
    status: str
    """The vendor's word for how it ended; `lost` for a hop that broke off."""
    usage: Usage
    strategy: str = "token"
    """How it went on from the hop before; of the first hop, how it was to be continued."""


class Unfinished(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A decode that was not continued, and what it takes to do that by hand."""

    token: str
    """The provider's continuation token."""
    owner: str | None = None
    """The id of the interaction that issued the token; `None` where nothing is stored."""
    ids: tuple[str, ...] = ()
    """The ids of all interactions up to here, in order."""


@attrs.frozen
class Turn:
    """One reply of a model, read to its end or to where it broke off."""

    parts: tuple[Part, ...] = ()
    finish: Finish | None = None
    raw_finish: str | None = None
    """The vendor's finish reason, verbatim."""
    usage: Usage = UNKNOWN_USAGE
    end: Ending = "complete"
    response: str | None = None
    """The vendor's id of the response."""
    dropped_calls: int = 0
    """Calls beyond the limit per turn that were cut off when the turn was read."""
    hops: tuple[Hop, ...] = ()
    """The requests that it took, where it took several; `usage` is their sum."""
    unfinished: Unfinished | None = None
    """What resumes the decode, where the provider would go on and was not asked to."""
    context_tokens: int | None = None
    """Input tokens of the last hop, where there were several: `usage` counts the prompt once for each."""

    @property
    def text(self) -> str:
        """The visible text, joined with nothing between."""
        return text_of(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return calls_of(self.parts)


def text_of(parts: tuple[Part, ...]) -> str:
    """Join the text parts with nothing between; `""` if nothing of them is visible."""
    text = "".join([part.text for part in parts if type(part) is TextPart])
    return text if is_visible(text) else ""


def raw_text_of(parts: tuple[Part, ...]) -> str:
    """Join the text parts with nothing between, be it white space alone."""
    return "".join([part.text for part in parts if type(part) is TextPart])


def calls_of(parts: tuple[Part, ...]) -> tuple[ToolCall, ...]:
    """The calls among `parts`, in order."""
    return tuple([part for part in parts if type(part) is ToolCall])
