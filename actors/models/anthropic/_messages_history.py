"""Anthropic Messages: the conversation in alternating roles, as a strict server takes it. No I/O.

Messages of one role are one message, so results lead the user's words behind them. What a server would refuse for
ever after is left out: empty text, thinking at the end of a message, and a call of the provider's own tools without
its result, or a result without its call, unless it is what the server is asked to go on with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from protocol.model import ModelRequest
from protocol.text import is_visible
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage

from ..wire import string
from ._messages_blocks import Block, blocks_of, result_block

__all__ = ("messages_of",)

_FILLER = "Continue."
"""Said where the format demands a user message and the conversation has none: before its first turn, or at its end."""

_THINKING = {"thinking", "redacted_thinking"}
_OPEN_ENDED = {"exact_prefix", "resend"}


def messages_of(request: ModelRequest, *, echoes_reasoning: bool = False) -> list[dict[str, Any]]:
    """The messages of a request: the first is a user message, and so is the last unless the model's turn goes on."""
    strategy = request.resume.strategy if request.resume else None
    written = [_written(message, echoes_reasoning=echoes_reasoning) for message in request.conversation()]
    paired = _paired(written)
    open_ended = False
    messages: list[dict[str, Any]] = []
    for place, (role, content) in enumerate(written, 1):
        last = place == len(written)
        blocks = content if role == "user" or (last and strategy == "resend") else _settled(content, paired)
        if last and strategy == "exact_prefix":
            _strip_end(blocks)
        open_ended = last and strategy in _OPEN_ENDED and bool(blocks)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if messages and messages[0]["role"] != "user":
        messages.insert(0, _filler())
    if messages and messages[-1]["role"] != "user" and not open_ended:
        messages.append(_filler())
    return messages


def _written(message: Message, *, echoes_reasoning: bool) -> tuple[str, list[Block]]:
    match message:
        case UserMessage(text=text):
            return "user", [{"type": "text", "text": text}] if is_visible(text) else []
        case AssistantMessage(parts=parts):
            return "assistant", blocks_of(parts, echoes_reasoning=echoes_reasoning)
        case ToolMessage(results=results):
            return "user", [result_block(result) for result in results]


def _paired(written: Iterable[tuple[str, list[Block]]]) -> set[str]:
    """The ids of the provider's own calls that have their result; it may stand in a later turn."""
    blocks = [block for role, content in written if role == "assistant" for block in content]
    asked = {string(block.get("id")) for block in blocks if _is_server_call(block)}
    return asked & {string(block.get("tool_use_id")) for block in blocks}


def _is_server_call(block: Block) -> bool:
    return string(block["type"]).endswith("_tool_use")


def _settled(blocks: list[Block], paired: set[str]) -> list[Block]:
    # Code that runs at the provider may call a tool of ours: it is open until that has its result.
    waits = any(block["type"] == "tool_use" for block in blocks)
    kept = [
        block
        for block in blocks
        if (string(block.get("id")) in paired or waits if _is_server_call(block) else True)
        and ("tool_use_id" not in block or string(block["tool_use_id"]) in paired)
    ]
    while kept and kept[-1]["type"] in _THINKING:
        kept.pop()
    return kept


def _strip_end(blocks: list[Block]) -> None:
    """A prefix must not end in white space."""
    if blocks and blocks[-1]["type"] == "text":
        blocks[-1]["text"] = blocks[-1]["text"].rstrip()


def _filler() -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": _FILLER}]}
