"""What a request costs in tokens, before anybody has counted them: a quarter of its bytes (B3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs
import msgspec

from .model import CONTINUE_TEXT, ModelRequest, ToolDefinition
from .turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    Turn,
    UserMessage,
)
from .views import View

__all__ = ("Estimator", "Gauge", "message_size", "tokens_of", "turn_tokens")

_encode = msgspec.json.Encoder().encode


def tokens_of(size: int) -> int:
    """Tokens for that many bytes of UTF-8."""
    return -(-size // 4)


def turn_tokens(turn: Turn) -> int:
    """Output tokens of a turn that reported none, its visible reasoning included."""
    return tokens_of(
        sum(_size(part.text) if isinstance(part, ReasoningPart) else _part_size(part) for part in turn.parts)
    )


def message_size(message: Message) -> int:
    """Bytes of a message's texts."""
    match message:
        case UserMessage(text=text):
            return _size(text)
        case AssistantMessage(parts=parts):
            return sum(_part_size(part) for part in parts)
        case ToolMessage(results=results):
            return sum(_size(result.text) for result in results)


@attrs.define(eq=False)
class Estimator:
    """Estimates requests over one growing conversation: what it has seen once is not read again."""

    _seen: int = 0
    _size: int = 0
    _definitions: Sequence[ToolDefinition] = ()
    _definitions_size: int = 0

    def conversation(self, messages: Sequence[Message]) -> int:
        """Bytes of the stored conversation, which only grows."""
        end = len(messages)
        for index in range(self._seen, end):
            self._size += message_size(messages[index])
        self._seen = end
        return self._size

    def request(self, request: ModelRequest, stored: Sequence[Message]) -> int:
        """Input tokens of a request; `stored` is the conversation, which its messages may or may not be."""
        whole = isinstance(request.messages, View) and len(request.messages) == len(stored)
        size = self.conversation(stored) if whole else _messages_size(request.messages)
        definitions = self._size_of(request.tools)
        if request.resume is not None:
            size += sum(map(_part_size, request.resume.parts))
            size += len(CONTINUE_TEXT) if request.resume.strategy == "user_turn" else 0
        return tokens_of(size + definitions + _size(request.system or "") + _size(request.tail or ""))

    def definitions(self, tools: Sequence[ToolDefinition]) -> int:
        """Input tokens of tool definitions."""
        return tokens_of(self._size_of(tools))

    def _size_of(self, tools: Sequence[ToolDefinition]) -> int:
        if tools is not self._definitions:
            self._definitions, self._definitions_size = tools, sum(map(_definition_size, tools))
        return self._definitions_size


@attrs.define(eq=False)
class Gauge:
    """What estimates of one agent's requests are worth, by what its servers have counted. It is not written down."""

    factor: float = 1.0
    """Tokens as counted for each that was estimated."""
    idle_below: int = 0
    """Estimated tokens up to which nothing is compacted again: the last time was of no use."""

    def learn(self, estimated: int, counted: int) -> None:
        """Take note of a request's input as estimated and as counted; small ones say little, and odd ones are not believed."""
        if estimated >= LEAST_LEARNT:
            self.factor = min(max(counted / estimated, 1 / MOST_OFF), MOST_OFF)

    def adjusted(self, estimated: int) -> int:
        """Estimated tokens as they will be counted, by what is known."""
        return math.ceil(estimated * self.factor)


LEAST_LEARNT = 200
"""Estimated tokens from which on a request teaches something: below, a server's own frame counts for too much."""
MOST_OFF = 4.0
"""How far an estimate may be off."""


def _messages_size(messages: Iterable[Message]) -> int:
    return sum(message_size(message) for message in messages)


def _definition_size(tool: ToolDefinition) -> int:
    return _size(tool.name) + _size(tool.description) + len(_encode(tool.parameters))


def _part_size(part: object) -> int:
    match part:
        case TextPart(text=text):
            return _size(text)
        case ToolCall(name=name, arguments=arguments):
            return _size(name) + _size(arguments)
        case OpaquePart(data=data):
            return _size(data)
        case _:
            return 0


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
