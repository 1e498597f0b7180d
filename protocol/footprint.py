"""What a stored conversation takes of memory, by estimate: the bytes of its texts, and what their objects take."""

from __future__ import annotations

from .estimate import message_size
from .turns import AssistantMessage, Message, ReasoningPart, ToolMessage, UserMessage

__all__ = ("footprint_of",)

MESSAGE_BYTES = 100
"""Of the objects around a message, as CPython has them."""
PART_BYTES = 130
"""Of those around a part of it, or a result."""


def footprint_of(message: Message) -> int:
    """Bytes that a message takes, by estimate."""
    match message:
        case UserMessage():
            parts = reasoning = 0
        case ToolMessage(results=results):
            parts, reasoning = len(results), 0
        case AssistantMessage(parts=found):
            parts = len(found)
            reasoning = sum(len(part.text) + len(part.signature or "") for part in found if type(part) is ReasoningPart)
    return MESSAGE_BYTES + PART_BYTES * parts + message_size(message) + reasoning
