"""What was said, in the shape that the conventions give it: JSON text, bounded. Made only where somebody asked for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from protocol.codec import encode
from protocol.model import ModelRequest
from protocol.text import cut_middle
from protocol.turns import (
    AssistantMessage,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    Turn,
    UserMessage,
)

__all__ = ("input_text", "json_text", "output_text", "system_text")

_LONGEST = 8_192
"""Characters of one text."""
_MOST_BYTES = 65_536
"""Of one attribute: of a long conversation its newest messages."""


def input_text(request: ModelRequest) -> str:
    """The newest messages of a request, as many as fit."""
    kept: list[bytes] = []
    room = _MOST_BYTES
    for message in reversed(request.conversation()):
        data = encode(_message(message))
        room -= len(data)
        if room < 0:
            break
        kept.append(data)
    return (b"[" + b",".join(reversed(kept)) + b"]").decode()


def output_text(turn: Turn, finish: str | None) -> str:
    """What the model answered."""
    return encode([{"role": "assistant", "parts": _parts(turn.parts), "finish_reason": finish or "unknown"}]).decode()


def system_text(system: str) -> str:
    """The instructions of the model."""
    return encode([_text(system)]).decode()


def json_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a tool."""
    return cut_middle(encode(dict(arguments)).decode(), _MOST_BYTES)


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "parts": [_text(text)]}
        case AssistantMessage(parts=parts):
            return {"role": "assistant", "parts": _parts(parts)}
        case ToolMessage(results=results):
            return {
                "role": "tool",
                "parts": [
                    {"type": "tool_call_response", "id": one.call, "response": cut_middle(one.text, _LONGEST)}
                    for one in results
                ],
            }


def _parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """What a person can read of a turn: what is kept for a vendor's own use is left out."""
    found: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case TextPart(text=text):
                found.append(_text(text))
            case ReasoningPart(text=text):
                found.append({"type": "reasoning", "content": cut_middle(text, _LONGEST)})
            case ToolCall(id=id, name=name, arguments=arguments):
                found.append({"type": "tool_call", "id": id, "name": name, "arguments": _arguments(arguments)})
            case _:
                pass
    return found


def _arguments(text: str) -> Any:
    return json.loads(text) if len(text) <= _LONGEST else cut_middle(text, _LONGEST)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": cut_middle(text, _LONGEST)}
