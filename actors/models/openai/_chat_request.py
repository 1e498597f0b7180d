"""Chat Completions: a request in that wire format, as bytes. No I/O.

What the request says is written down as it is: with definitions and the choice `none` the tools are off but stay
visible; without definitions no word of tools is sent. Reasoning is not sent back: no common rule says how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from protocol import codec
from protocol.errors import SpecError
from protocol.model import ForceTool, ModelRequest, ToolChoice, ToolDefinition
from protocol.turns import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage, text_of

__all__ = ("check_extra_body", "encode_request")

_OWNED = ("messages", "model", "tools", "tool_choice")


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    max_tokens_field: str = "max_tokens",
    extra_body: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode a request for a streamed reply as strict UTF-8 JSON; lone surrogates become U+FFFD.

    `extra_body` is laid over the body, and the request's `provider_options` over that; `None` in them removes a field.
    Raises `SpecError` for options that would set what the request itself says.
    """
    body: dict[str, Any] = {"model": model, "messages": _messages(request), "stream": True}
    body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(definition) for definition in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body[max_tokens_field] = request.max_tokens
    options = request.provider_options or {}
    owned = [name for name in (*_OWNED, "stream") if name in options]
    if owned:
        raise SpecError(f"provider_options must not set {', '.join(owned)}: each request says that itself")
    for name, value in {**(extra_body or {}), **options}.items():
        if value is None:
            body.pop(name, None)
        else:
            body[name] = value
    if body.get("stream") is not True:
        body.pop("stream_options", None)  # servers refuse it where nothing is streamed
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        return codec.encode(msgspec.to_builtins(body, enc_hook=_plain))


def check_extra_body(extra_body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that later changes do not reach. Raises `SpecError` for what is no JSON, or is set elsewhere."""
    owned = [name for name in _OWNED if name in extra_body]
    if owned:
        raise SpecError(f"extra_body must not set {', '.join(owned)}: each request says that itself")
    try:
        copy: dict[str, Any] = msgspec.json.decode(_encoder.encode(extra_body), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"extra_body must be a JSON object: {error}") from error
    return copy


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for message in request.conversation():
        _add(messages, message)
    return messages


def _add(messages: list[dict[str, Any]], message: Message) -> None:
    match message:
        case UserMessage(text=text):
            messages.append({"role": "user", "content": text})
        case AssistantMessage(parts=parts):
            text = text_of(parts)
            calls = [_call(part) for part in parts if isinstance(part, ToolCall)]
            if calls:
                messages.append({"role": "assistant", "content": text or None, "tool_calls": calls})
            elif text:
                messages.append({"role": "assistant", "content": text})
        case ToolMessage(results=results):
            messages += [{"role": "tool", "tool_call_id": result.call, "content": result.text} for result in results]


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, ForceTool) else choice


def _tool(definition: ToolDefinition) -> dict[str, Any]:
    function = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": function}


def _plain(value: Any) -> Any:
    """Schemas and options may be held in read-only views, which the encoder does not know."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
