"""Chat Completions: a request in that wire format, as bytes. No I/O.

What the request says is written down as it is: with definitions and the choice `none` the tools are off but stay
visible; without definitions no word of tools is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protocol.model import ForceTool, ModelRequest, Profile, ToolChoice, ToolDefinition

from ..servers import COMPATIBLE, MaxTokensField, Server
from ..wire import encode_body, lay_over, refuse_owned
from ._chat_messages import continues_own_message, encode_messages

__all__ = ("OWNED", "encode_request")

OWNED = ("messages", "model", "tools", "tool_choice")
"""Fields of the body that each request says itself."""


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    server: Server = COMPATIBLE,
    profile: Profile | None = None,
    max_tokens_field: MaxTokensField | None = None,
    extra_body: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode a request for a streamed reply as strict UTF-8 JSON; lone surrogates become U+FFFD.

    `profile` and `max_tokens_field` stand in for what the server's are. `extra_body` is laid over the body, and the
    request's `provider_options` over that; `None` in them removes a field.

    Raises `SpecError` for options that would set what the request itself says.
    """
    profile = profile or server.profile
    messages = encode_messages(request, server, profile)
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
    if not server.strict:
        body["stream_options"] = {"include_usage": True}
    if continues_own_message(request, messages):
        body.update(server.prefix_body)
    body |= _settings(request, profile, max_tokens_field or server.max_tokens_field)
    options = request.provider_options or {}
    refuse_owned("provider_options", options, (*OWNED, "stream"))
    lay_over(body, {**(extra_body or {}), **options})
    if body.get("stream") is not True:
        body.pop("stream_options", None)  # servers refuse it where nothing is streamed
    return encode_body(body)


def _settings(request: ModelRequest, profile: Profile, max_tokens_field: str) -> dict[str, Any]:
    """Tools, sampling and the output cap, as far as the request sets them and the model takes them."""
    settings: dict[str, Any] = {}
    if request.tools:
        settings["tools"] = [_tool(definition) for definition in request.tools]
        if request.tool_choice != "auto":
            settings["tool_choice"] = _tool_choice(request.tool_choice)
        if profile.parallel_calls is not None:
            settings["parallel_tool_calls"] = profile.parallel_calls
    if request.temperature is not None and profile.takes_temperature:
        settings["temperature"] = request.temperature
    max_tokens = profile.default_max_tokens if request.max_tokens is None else request.max_tokens
    if max_tokens is not None:
        settings[max_tokens_field] = max_tokens
    return settings


def _tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, ForceTool) else choice


def _tool(definition: ToolDefinition) -> dict[str, Any]:
    function = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": function}
