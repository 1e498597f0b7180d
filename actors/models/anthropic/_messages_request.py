"""Anthropic Messages: a request in that wire format, as bytes. No I/O.

What the request says is written down as it is: with definitions and the choice `none` the tools are off but stay
visible; without definitions no word of tools is sent, except of the provider's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protocol.model import ForceTool, ModelRequest, Profile, ToolDefinition
from protocol.text import is_visible

from ..wire import encode_body, lay_over, refuse_owned
from ._messages_history import messages_of

__all__ = ("OWNED", "encode_request")

OWNED = ("messages", "model", "system", "tools", "tool_choice")
"""Fields of the body that each request says itself."""
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    profile: Profile,
    extra_body: Mapping[str, Any] | None = None,
    server_tools: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """Encode a request for a streamed reply as strict UTF-8 JSON; lone surrogates become U+FFFD.

    `extra_body` is laid over the body, and the request's `provider_options` over that; `None` in them removes a field.
    Raises `SpecError` for options that would set what the request itself says.
    """
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": profile.default_max_tokens if request.max_tokens is None else request.max_tokens,
        "messages": messages_of(request, echoes_reasoning=profile.echoes_reasoning),
        "stream": True,
    }
    if request.system is not None and is_visible(request.system):
        body["system"] = request.system
    # Tools that are off without definitions are off for good: the provider's own as well.
    if request.tools or (server_tools and request.tool_choice != "none"):
        body["tools"] = [*server_tools, *[_tool(definition) for definition in request.tools]]
        choice = _tool_choice(request, profile)
        if choice != {"type": "auto"}:
            body["tool_choice"] = choice
    if request.temperature is not None and profile.takes_temperature:
        body["temperature"] = request.temperature
    options = request.provider_options or {}
    refuse_owned("provider_options", options, (*OWNED, "stream"))
    lay_over(body, {**(extra_body or {}), **options})
    return encode_body(body)


def _tool_choice(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    wanted = request.tool_choice
    if not request.tools and wanted != "none":
        wanted = "auto"  # what is forced is a tool of ours, and there is none
    choice: dict[str, Any]
    choice = {"type": "tool", "name": wanted.name} if isinstance(wanted, ForceTool) else {"type": _CHOICES[wanted]}
    if profile.parallel_calls is False and wanted != "none":
        choice["disable_parallel_tool_use"] = True
    return choice


def _tool(definition: ToolDefinition) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": definition.name, "input_schema": definition.parameters}
    if is_visible(definition.description):
        tool["description"] = definition.description
    return tool
