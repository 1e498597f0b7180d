"""Interactions: a request in that wire format, as a body. No I/O.

The whole conversation is sent as steps, and `store` is false: nothing of it is kept at the provider, and a hop that
continues a decode sends it again with the token. With `store: true` in `extra_body` the provider keeps each
interaction; then the token's owner stands for the input between the hops of one decode, and for nothing else.

What the model made goes back as it came and where it stood: thoughts and unknown steps as they are, calls with the
fields that the format signed them with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from protocol.errors import SpecError
from protocol.model import ForceTool, ModelRequest, ToolChoice, ToolDefinition
from protocol.normalise import parse_arguments
from protocol.turns import AssistantMessage, Message, OpaquePart, Part, TextPart, ToolCall, ToolMessage, UserMessage

from .. import wire
from ..wire import lay_over, mapping, parse

__all__ = ("FORMAT", "check_extra_body", "request_body")

FORMAT = "gemini-interactions"
"""The name of the format in `OpaquePart`."""

_OWNED = ("model", "input", "system_instruction", "tools", "continuation_token", "previous_interaction_id")
_OTHER_KINDS = ("agent", "agent_config", "background")
_CONFIG = "generation_config"
_CHOICES = {"none": "none", "required": "any"}


def request_body(
    request: ModelRequest,
    *,
    model: str,
    takes_temperature: bool = True,
    extra_body: Mapping[str, Any] | None = None,
    server_tools: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The body that asks for a streamed reply.

    `extra_body` is laid over the body, and the request's `provider_options` over that; `None` in them removes a
    field. The fields of `generation_config` are laid over one by one. Raises `SpecError` for options that would set
    what the request itself says.
    """
    body: dict[str, Any] = {"model": model, "input": _steps(request.conversation()), "stream": True, "store": False}
    if request.system is not None:
        body["system_instruction"] = request.system
    # Tools that are off without definitions are off for good: the provider's own as well.
    if request.tools or (server_tools and request.tool_choice != "none"):
        body["tools"] = [*server_tools, *[_tool(definition) for definition in request.tools]]
    config = _config(request, takes_temperature=takes_temperature)
    options = request.provider_options or {}
    _check_owned(options, "provider_options", "stream")
    for given in (extra_body or {}, options):
        lay_over(body, {name: value for name, value in given.items() if name != _CONFIG})
        if _CONFIG in given:
            lay_over(
                config, cast("Mapping[str, Any]", dict.fromkeys(config) if given[_CONFIG] is None else given[_CONFIG])
            )
    if config:
        body[_CONFIG] = config
    return body


def check_extra_body(extra_body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that later changes do not reach. Raises `SpecError` for what is no JSON, or is set elsewhere."""
    _check_owned(extra_body, "extra_body")
    return wire.check_extra_body(extra_body, ())


def _check_owned(options: Mapping[str, Any], field: str, *more: str) -> None:
    owned = [name for name in (*_OWNED, *more) if name in options]
    config = options.get(_CONFIG)
    if config is not None and not isinstance(config, Mapping):
        raise SpecError(f"{field}: {_CONFIG} must be an object; it is {config!r}")
    if config is not None and "tool_choice" in config:
        owned.append(f"{_CONFIG}.tool_choice")
    if owned:
        raise SpecError(f"{field} must not set {', '.join(owned)}: each request says that itself")
    other = [name for name in _OTHER_KINDS if options.get(name)]
    if other:
        raise SpecError(f"{field} must not set {', '.join(other)}: what answers then is no model that is waited for")


def _config(request: ModelRequest, *, takes_temperature: bool) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.max_tokens is not None:
        config["max_output_tokens"] = request.max_tokens
    if request.temperature is not None and takes_temperature:
        config["temperature"] = request.temperature
    if request.tools and request.tool_choice != "auto":
        config["tool_choice"] = _tool_choice(request.tool_choice)
    return config


def _steps(messages: list[Message]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                steps.append({"type": "user_input", "content": [_text(text)]})
            case AssistantMessage(parts=parts):
                steps += _model_steps(parts)
            case ToolMessage(results=results):
                steps += [
                    {
                        "type": "function_result",
                        "call_id": result.call,
                        "name": result.name,
                        "result": [_text(result.text)],
                        "is_error": result.status != "ok",
                    }
                    for result in results
                ]
    return steps


def _model_steps(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    signed = {part.call: part.data for part in parts if isinstance(part, OpaquePart) and part.format == FORMAT}
    steps: list[dict[str, Any]] = []
    texts: list[str] = []

    def end_text() -> None:
        if texts:
            steps.append({"type": "model_output", "content": [_text("".join(texts))]})
            texts.clear()

    for part in parts:
        match part:
            case TextPart(text=text):
                texts += [text] if text else []
            case ToolCall():
                end_text()
                steps.append(_call(part, signed.get(part.id)))
            case OpaquePart(format=name, data=data, call=None) if name == FORMAT:
                end_text()
                steps += [step] if (step := _stored(data)) else []
            case _:
                pass  # another format's, or reasoning that was only shown: signed thoughts are opaque
    end_text()
    return steps


def _call(call: ToolCall, signed: str | None) -> dict[str, Any]:
    # The id is the one of its result, and the arguments are those it was run with.
    arguments = parse_arguments(call.arguments) or {}
    said = {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments}
    return said if signed is None else {**_stored(signed), **said}


def _stored(data: str) -> dict[str, Any]:
    try:
        return mapping(parse(data))
    except ValueError:
        return {}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    if isinstance(choice, ForceTool):
        return {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    return _CHOICES[choice]


def _tool(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": definition.name,
        "description": definition.description,
        "parameters": definition.parameters,
    }
