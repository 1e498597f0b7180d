"""generateContent: a request in that wire format, as bytes. No I/O.

The format is strict about its `contents`: roles alternate, no content is without parts, no text is empty, and the
content behind function calls holds one response for each of them. Thought signatures go back with the part that they
came with. With definitions and the mode `NONE` the tools are off but stay visible; without definitions no word of
tools is sent, while the calls and responses of the history stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from protocol.model import ForceTool, ModelRequest, Profile, ToolChoice, ToolDefinition
from protocol.normalise import parse_arguments
from protocol.text import is_visible
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from ..wire import encode_body, lay_over, mapping, refuse_owned
from ._generate_parts import FORMAT, is_rest_of_text, item_in, vendor_id_in

__all__ = ("OWNED", "encode_request")

OWNED = ("contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config")
"""Fields that each request says itself; the format takes its names in both spellings."""

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
# What Google documents for calls that its models did not make, such as those of another model's history.
_NO_SIGNATURE = "skip_thought_signature_validator"


def encode_request(
    request: ModelRequest,
    *,
    profile: Profile,
    marks_unsigned: bool = False,
    extra_body: Mapping[str, Any] | None = None,
    server_tools: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """Encode a request as strict UTF-8 JSON; lone surrogates become U+FFFD.

    `extra_body` is laid over the body, and the request's `provider_options` over that, `generationConfig` field by
    field; `None` in them removes a field. `marks_unsigned`: the model refuses calls without a thought signature, so
    those of other models are marked. Raises `SpecError` for options that would set what the request itself says.
    """
    body: dict[str, Any] = {"contents": _Contents(profile, marks_unsigned=marks_unsigned).of(request)}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    # Tools that are off without definitions are off for good: the provider's own as well.
    if request.tools or (server_tools and request.tool_choice != "none"):
        declared = [{"functionDeclarations": [_declaration(definition) for definition in request.tools]}]
        body["tools"] = [*server_tools, *(declared if request.tools else [])]
        if request.tools and request.tool_choice != "auto":
            body["toolConfig"] = {"functionCallingConfig": _tool_choice(request.tool_choice)}
    config: dict[str, Any] = {}
    if request.temperature is not None and profile.takes_temperature:
        config["temperature"] = request.temperature
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    options = request.provider_options or {}
    refuse_owned("provider_options", options, OWNED)
    for layer in (extra_body or {}, options):
        fields = dict(layer)
        more = fields.get("generationConfig")
        if isinstance(more, Mapping):
            lay_over(config, cast("Mapping[str, Any]", more))
            del fields["generationConfig"]
        elif more is None and "generationConfig" in fields:
            config = {}
        lay_over(body, fields)
    if config:
        body["generationConfig"] = config
    return encode_body(body)


def _declaration(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "description": definition.description,
        "parametersJsonSchema": definition.parameters,
    }


def _tool_choice(choice: ToolChoice) -> dict[str, Any]:
    if isinstance(choice, ForceTool):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice]}


class _Contents:
    """Writes the contents of one request."""

    def __init__(self, profile: Profile, *, marks_unsigned: bool) -> None:
        self._echoes_reasoning = profile.echoes_reasoning
        self._marks_unsigned = marks_unsigned
        self._vendor_ids: dict[str, str] = {}
        self._made: list[dict[str, Any]] = []

    def of(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The conversation, each message joined to the one before if both are of one role."""
        for message in request.conversation():
            self._add(message)
        return self._made

    def _add(self, message: Message) -> None:
        match message:
            case UserMessage(text=text):
                role, parts = "user", [{"text": text}] if text else []
            case AssistantMessage(parts=said):
                role, parts = "model", self._said(said)
            case ToolMessage(results=results):
                role, parts = "user", [self._response(result) for result in results]
        if not parts:
            return
        if self._made and self._made[-1]["role"] == role:
            self._made[-1]["parts"] += parts
        else:
            self._made.append({"role": role, "parts": parts})

    def _said(self, said: tuple[Part, ...]) -> list[dict[str, Any]]:
        rests = {
            part.call: item_in(part)
            for part in said
            if isinstance(part, OpaquePart) and part.format == FORMAT and part.call
        }
        written: list[dict[str, Any]] = []
        for part in said:
            match part:
                case TextPart(text=text):
                    written.append({"text": text})
                case ReasoningPart(text=text):
                    written.append({"text": text, "thought": True})
                case ToolCall():
                    written.append(self._call(part, rests.get(part.id, {})))
                case OpaquePart(format=form, call=None) if form == FORMAT:
                    _write_item(item_in(part), written)
                case OpaquePart():
                    pass  # another format's, or written with its call
        if self._marks_unsigned:
            _mark(written)
        return self._sendable(written)

    def _sendable(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Join text to text, and leave out empty text and thoughts that nobody signed."""
        parts: list[dict[str, Any]] = []
        for part in written:
            if part.keys() == {"text", "thought"} and not self._echoes_reasoning:
                continue
            if _is_plain(part) and parts and _is_plain(parts[-1]):
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
        return [part for part in parts if not _is_bare_text(part) or is_visible(part["text"])]

    def _call(self, call: ToolCall, rest: dict[str, Any]) -> dict[str, Any]:
        vendor_id = vendor_id_in(rest)
        if vendor_id:
            self._vendor_ids[call.id] = vendor_id
        arguments = parse_arguments(call.arguments) or {}
        return {**rest, "functionCall": {**mapping(rest.get("functionCall")), "name": call.name, "args": arguments}}

    def _response(self, result: ToolResult) -> dict[str, Any]:
        response = {"name": result.name, "response": {"output" if result.status == "ok" else "error": result.text}}
        vendor_id = self._vendor_ids.get(result.call)
        return {"functionResponse": {"id": vendor_id, **response} if vendor_id else response}


def _write_item(item: dict[str, Any], written: list[dict[str, Any]]) -> None:
    if is_rest_of_text(item):
        before = written[-1] if written and _is_bare_text(written[-1]) else None
        if before is not None and bool(before.get("thought")) == bool(item.get("thought")):
            written[-1] = {**item, "text": before["text"]}
        else:
            written.append({**item, "text": ""})  # its text has been taken out; what was signed stays in its place
    elif item:
        written.append(item)


def _mark(written: list[dict[str, Any]]) -> None:
    """The first call of a turn must be signed; those beside it need not."""
    first = next((part for part in written if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", _NO_SIGNATURE)


def _is_plain(part: dict[str, Any]) -> bool:
    return part.keys() == {"text"}


def _is_bare_text(part: dict[str, Any]) -> bool:
    """Whether a part is text or a thought, and nothing came with it."""
    return _is_plain(part) or part.keys() == {"text", "thought"}
