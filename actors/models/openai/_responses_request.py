"""Responses: a request in that wire format, as bytes. No I/O.

The server keeps nothing (`store` is false): the whole conversation is sent with each request. What the request says is
written down as it is: with definitions and the choice `none` the tools are off but stay visible; without definitions
no word of tools is sent, and the calls in the history stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protocol.model import ForceTool, ModelRequest, Profile, ToolChoice, ToolDefinition

from ..wire import encode_body, lay_over, number, refuse_owned
from ._responses_input import input_items

__all__ = ("OWNED", "encode_request", "output_cap")

OWNED = ("model", "input", "instructions", "tools", "tool_choice", "previous_response_id", "conversation")
"""Fields that each request says itself, or that would put a second conversation beside it."""


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    profile: Profile,
    encrypted_reasoning: bool = False,
    extra_body: Mapping[str, Any] | None = None,
    server_tools: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """Encode a request for a streamed reply as strict UTF-8 JSON; lone surrogates become U+FFFD.

    `encrypted_reasoning`: the server is asked for what makes its reasoning whole again in a later request.
    `extra_body` is laid over the body, and the request's `provider_options` over that; `None` in them removes a field.
    Raises `SpecError` for options that would set what the request itself says.
    """
    options = request.provider_options or {}
    refuse_owned("provider_options", options, (*OWNED, "stream"))
    laid_over = {**(extra_body or {}), **options}
    replays = profile.echoes_reasoning or laid_over.get("store") is True
    body: dict[str, Any] = {"model": model}
    if request.system is not None:
        body["instructions"] = request.system
    body["input"] = input_items(request, replays_open_reasoning=replays)
    # Tools that are off without definitions are off for good: the provider's own as well.
    if request.tools or (server_tools and request.tool_choice != "none"):
        body["tools"] = [*server_tools, *[_tool(definition) for definition in request.tools]]
        if request.tool_choice != "auto":
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if profile.parallel_calls is False:
            body["parallel_tool_calls"] = False
    if request.temperature is not None and profile.takes_temperature:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    body["stream"] = True
    body["store"] = False
    if encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    lay_over(body, laid_over)
    return encode_body(body)


def output_cap(request: ModelRequest, extra_body: Mapping[str, Any]) -> int | None:
    """The cap on output tokens that the request comes to."""
    laid_over = {**extra_body, **(request.provider_options or {})}
    return number(laid_over.get("max_output_tokens", request.max_tokens))


def _tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    return {"type": "function", "name": choice.name} if isinstance(choice, ForceTool) else choice


def _tool(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": definition.name,
        "description": definition.description,
        "parameters": definition.parameters,
        "strict": False,  # the format's default would have every property required
    }
