"""Chat Completions: the messages of a request. No I/O.

Reasoning is sent back where the profile says so, under the field that it came in; what a server added to a turn or to
a call goes back with it. A server that refuses unknown fields gets none of either.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from protocol.model import ModelRequest, Profile
from protocol.turns import AssistantMessage, Message, ReasoningPart, ToolCall, ToolMessage, UserMessage, text_of

from ..servers import Server
from ..wire import mapping
from ._chat_kept import REASONING_FIELD, kept_in

__all__ = ("continues_own_message", "encode_messages")

_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")


def encode_messages(request: ModelRequest, server: Server, profile: Profile) -> list[dict[str, Any]]:
    """The conversation in the format, the system text first and an unfinished turn last."""
    writer = _Writer(server, profile)
    if request.system is not None:
        writer.messages.append({"role": "system", "content": request.system})
    for message in request.conversation():
        writer.add(message)
    if continues_own_message(request, writer.messages):
        writer.messages[-1].update(server.prefix_message)
    return writer.messages


def continues_own_message(request: ModelRequest, messages: list[dict[str, Any]]) -> bool:
    """Whether the last of these messages is the model's own, and is to go on."""
    exact = request.resume is not None and request.resume.strategy == "exact_prefix"
    return exact and bool(messages) and messages[-1]["role"] == "assistant"


class _Writer:
    def __init__(self, server: Server, profile: Profile) -> None:
        self.messages: list[dict[str, Any]] = []
        self._server = server
        self._profile = profile

    def add(self, message: Message) -> None:
        match message:
            case UserMessage(text=text):
                after_tool = bool(self.messages) and self.messages[-1]["role"] == "tool"
                if after_tool and not self._server.user_after_tool:
                    self.messages.append({"role": "assistant", "content": "OK."})
                self.messages.append({"role": "user", "content": text})
            case AssistantMessage():
                self._add_turn(message)
            case ToolMessage(results=results):
                self.messages += [
                    {"role": "tool", "tool_call_id": self._id(result.call), "content": result.text}
                    for result in results
                ]

    def _add_turn(self, message: AssistantMessage) -> None:
        text = text_of(message.parts)
        kept = {} if self._server.strict else kept_in(message.parts)
        calls = [self._call(part, kept.get(part.id, {})) for part in message.parts if isinstance(part, ToolCall)]
        if not calls and not text:
            return
        written: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            written["tool_calls"] = calls
        own = kept.get(None, {})
        field = own.pop(REASONING_FIELD, self._server.reasoning_field)
        if self._profile.echoes_reasoning and "reasoning_details" not in own:
            thought = "".join([
                part.text for part in message.parts if isinstance(part, ReasoningPart) and part.signature is None
            ])
            if thought or (calls and self._server.needs_reasoning):
                written[field] = thought
        self.messages.append({**own, **written})

    def _call(self, call: ToolCall, kept: dict[str, Any]) -> dict[str, Any]:
        function = {**mapping(kept.get("function")), "name": call.name, "arguments": call.arguments}
        return {**kept, "id": self._id(call.id), "type": "function", "function": function}

    def _id(self, call: str) -> str:
        if not self._server.short_call_ids or _SHORT_ID.fullmatch(call):
            return call
        return hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()[:9]
