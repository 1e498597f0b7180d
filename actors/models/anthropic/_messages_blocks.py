"""Anthropic Messages: content blocks, and the parts that each of them is, both ways. No I/O.

Thinking is a `ReasoningPart`. Its signature begins with this format's name: one from elsewhere is never sent, and
signed text goes back as it came. Blocks that have no part of their own are opaque. So is what a block of text or a
call holds beyond its part (citations, who called): it stands directly behind, names the block's type, and is laid
over that block when it is sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from protocol import codec
from protocol.normalise import parse_arguments
from protocol.text import clean, is_visible
from protocol.turns import OpaquePart, Part, ReasoningPart, TextPart, ToolCall, ToolResult

from ..wire import mapping, parse, string

__all__ = ("FORMAT", "Block", "blocks_of", "json_text", "parts_of", "result_block")

Block: TypeAlias = dict[str, Any]

FORMAT = "anthropic-messages"
_SIGNED = f"{FORMAT}:"
_BEYOND = {"text": "citations", "tool_use": "caller"}
_DIRECT = {"type": "direct"}  # a caller that says nothing
_ODD_ID = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 128


def parts_of(block: Block, arguments: str = "") -> list[Part]:
    """The parts of a whole block that the model wrote; `arguments` is the text of a call's input, as it came."""
    kind = string(block.get("type"))
    parts: list[Part] = []
    match kind:
        case "text":
            text = clean(string(block.get("text")))
            if text:
                parts.append(TextPart(text))
        case "thinking":
            text, signature = clean(string(block.get("thinking"))), clean(string(block.get("signature")))
            if text or signature:
                parts.append(ReasoningPart(text, _SIGNED + signature if signature else None))
        case "tool_use":
            parts.append(ToolCall(string(block.get("id")), string(block.get("name")), clean(arguments)))
        case _:
            parts += _opaque(block)
    beyond = block.get(_BEYOND.get(kind, ""))
    if parts and beyond and beyond != _DIRECT:
        call = string(block.get("id")) if kind == "tool_use" else None
        parts += _opaque({"type": kind, _BEYOND[kind]: beyond}, call)
    return parts


def blocks_of(parts: Iterable[Part], *, echoes_reasoning: bool) -> list[Block]:
    """The blocks of an assistant message. Text that nobody would see and thinking without a signature are left out."""
    blocks: list[Block] = []
    block: Block | None = None
    for part in parts:
        before, block = block, None
        match part:
            case TextPart(text=text) if is_visible(text):
                block = {"type": "text", "text": text}
            case ReasoningPart(text=text, signature=signature):
                block = _thinking(text, signature, echoes_reasoning=echoes_reasoning)
            case ToolCall():
                given = parse_arguments(part.arguments) or {}
                block = {"type": "tool_use", "id": _wire_id(part.id), "name": _wire_name(part.name), "input": given}
            case OpaquePart(format=name, data=data) if name == FORMAT:
                block = _parsed(data)
                if block is not None and block["type"] in _BEYOND:
                    if before is not None and before["type"] == block["type"]:
                        before.update(block)
                    block = None
            case _:
                pass
        if block is not None:
            blocks.append(block)
    return blocks


def result_block(result: ToolResult) -> Block:
    """The answer to a call. An error must say something; an empty answer has no content."""
    block: Block = {"type": "tool_result", "tool_use_id": _wire_id(result.call)}
    failed = result.status != "ok"
    if is_visible(result.text):
        block["content"] = result.text
    elif failed:
        block["content"] = result.status
    if failed:
        block["is_error"] = True
    return block


def json_text(value: object) -> str | None:
    """A value that came as JSON, as JSON text; `None` if it nests too deeply to be written."""
    try:
        return codec.encode(value).decode()
    except RecursionError:
        return None


def _opaque(block: Block, call: str | None = None) -> list[Part]:
    data = json_text(block)
    return [] if data is None else [OpaquePart(FORMAT, data, call)]


def _parsed(data: str) -> Block | None:
    try:
        block = mapping(parse(data))
    except ValueError:
        return None
    return block if string(block.get("type")) else None


def _thinking(text: str, signature: str | None, *, echoes_reasoning: bool) -> Block | None:
    if signature is not None and signature.startswith(_SIGNED):
        return {"type": "thinking", "thinking": text, "signature": signature.removeprefix(_SIGNED)}
    if signature is None and echoes_reasoning and is_visible(text):
        return {"type": "thinking", "thinking": text, "signature": ""}
    return None


def _wire_id(call: str) -> str:
    """An id as the format allows it: other vendors' ids may hold anything, and are refused as they are."""
    if call and not _ODD_ID.search(call):
        return call
    return "call_" + hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _wire_name(name: str) -> str:
    """A name as the format allows it: a model may have called what does not exist."""
    return _ODD_ID.sub("_", name)[:_MAX_NAME_CHARS] or "_"
