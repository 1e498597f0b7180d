"""Responses: what of an output item must go back to the server as it came. No I/O.

A message or a call is kept as its *shell*: the item without what stands in the `TextPart`s or the `ToolCall` behind
it. Texts and arguments are stored once, and a program that changes them changes what is sent; ids, status, phase and
whatever else the server put into the item come back with them. Other items are kept whole.
"""

from __future__ import annotations

from typing import Any

from protocol import codec
from protocol.turns import OpaquePart

from ..wire import items, mapping, parse, string

__all__ = (
    "FORMAT",
    "call_with",
    "contents_of",
    "item_in",
    "json_of",
    "message_with",
    "opaque",
    "shell_of_call",
    "shell_of_message",
)

FORMAT = "openai-responses"

_TEXT_FIELDS = {"output_text": "text", "text": "text", "refusal": "refusal"}
_OF_CALL = ("call_id", "name", "arguments")


def json_of(value: Any) -> str | None:
    """JSON text that encodes as UTF-8; `None` for what nests too deeply."""
    try:
        return codec.encode(value).decode()
    except RecursionError:
        return None


def opaque(item: dict[str, Any], call: str | None = None) -> OpaquePart | None:
    """The item as a part; `None` for what cannot be written."""
    data = json_of(item)
    return None if data is None else OpaquePart(FORMAT, data, call)


def item_in(part: OpaquePart) -> dict[str, Any]:
    """The item in a part; an empty one if it is of another format, or broken."""
    if part.format != FORMAT:
        return {}
    try:
        return mapping(parse(part.data))
    except ValueError:
        return {}


def contents_of(item: dict[str, Any]) -> list[tuple[str, str]]:
    """Kind and text of each content part of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return [("output_text", content)]
    return [(string(part.get("type")), string(part.get(_field(part)))) for part in map(mapping, items(content))]


def shell_of_message(item: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The message without its texts, and the texts; empty ones stay where they are."""
    texts: list[str] = []
    content: list[Any] = []
    for entry in items(item.get("content")):
        part = mapping(entry)
        text = string(part.get(_field(part)))
        if text and part.get("type") in _TEXT_FIELDS:
            texts.append(text)
            part = {name: value for name, value in part.items() if name != _field(part)}
        content.append(part)
    return {**item, "content": content}, texts


def message_with(shell: dict[str, Any], texts: list[str]) -> tuple[dict[str, Any], list[str]] | None:
    """The message with its texts in their places, and the texts that were left; `None` if there are too few."""
    left = list(texts)
    content: list[dict[str, Any]] = []
    for part in map(mapping, items(shell.get("content"))):
        if _field(part) in part or part.get("type") not in _TEXT_FIELDS:
            content.append(part)
        elif left:
            content.append({**part, _field(part): left.pop(0)})
        else:
            return None
    return {**shell, "content": content}, left


def shell_of_call(item: dict[str, Any]) -> dict[str, Any]:
    """The call without what a `ToolCall` holds."""
    return {name: value for name, value in item.items() if name not in _OF_CALL}


def call_with(shell: dict[str, Any], call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """The call with all that belongs to it."""
    return {**shell, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _field(part: dict[str, Any]) -> str:
    return _TEXT_FIELDS.get(string(part.get("type")), "text")
