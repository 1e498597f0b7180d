"""Replies in the Messages format, and a judge that refuses what a strict server of it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

BLOCK_TYPES_THAT_THINK = {"thinking", "redacted_thinking"}


def sent(kind: str, **fields: Any) -> str:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n"


def start(**usage: Any) -> str:
    empty: dict[str, Any] = {"content": [], "stop_reason": None, "usage": usage}
    return sent("message_start", message={"id": "m1", "type": "message", "role": "assistant", **empty})


def opened(index: int | None, kind: str, **fields: Any) -> str:
    return sent("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(index: int | None, kind: str, **fields: Any) -> str:
    return sent("content_block_delta", index=index, delta={"type": kind, **fields})


def closed(index: int | None) -> str:
    return sent("content_block_stop", index=index)


def text(index: int, *pieces: str) -> str:
    deltas = [delta(index, "text_delta", text=piece) for piece in pieces]
    return "".join([opened(index, "text", text=""), *deltas, closed(index)])


def thinking(index: int, *pieces: str, signature: str = "") -> str:
    deltas = [delta(index, "thinking_delta", thinking=piece) for piece in pieces]
    if signature:
        deltas.append(delta(index, "signature_delta", signature=signature))
    return "".join([opened(index, "thinking", thinking="", signature=""), *deltas, closed(index)])


def tool(index: int, id: str, name: str, *pieces: str, kind: str = "tool_use", **fields: Any) -> str:
    deltas = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return "".join([opened(index, kind, id=id, name=name, input={}, **fields), *deltas, closed(index)])


def stop(reason: str | None = "end_turn", **usage: Any) -> str:
    return sent("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage) + END


PING = sent("ping")
END = sent("message_stop")
HI = [start(), text(0, "He", "llo"), stop()]


def faults_of(body: dict[str, Any]) -> list[str]:
    """Everything that a strict server would refuse the request for."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    prefill = bool(messages) and roles[-1] == "assistant"
    faults = [] if roles and roles[0] == "user" else ["the first message is no user message"]
    faults += ["roles do not alternate" for before, after in zip(roles, roles[1:], strict=False) if before == after]
    if prefill:
        faults.append("the last message is an assistant one")
    if not isinstance(body.get("max_tokens"), int):
        faults.append("max_tokens is missing")
    if "tool_choice" in body and not body.get("tools"):
        faults.append("a tool choice without tools")
    seen: set[str] = set()
    pending: list[str] = []
    for place, message in enumerate(messages):
        blocks = message["content"]
        faults += [f"message {place}: {fault}" for block in blocks for fault in _block_faults(block)]
        if not blocks:
            faults.append(f"message {place} is empty")
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block["type"] for block in blocks[: len(answers)]]
        if answers != pending or leading != ["tool_result"] * len(answers):
            faults.append(f"message {place} answers {answers}, asked were {pending}")
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        faults += [f"message {place}: the id {call} is used twice" for call in pending if call in seen]
        seen |= set(pending)
        if message["role"] == "assistant" and blocks and blocks[-1]["type"] in BLOCK_TYPES_THAT_THINK:
            faults.append(f"message {place} ends in thinking")
    if pending:
        faults.append(f"no results for {pending}")
    return faults


def _block_faults(block: dict[str, Any]) -> list[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            return ["an empty block of text"]
        case "thinking" if not block["signature"]:
            return ["thinking without a signature"]
        case "tool_use" if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
            return [f"the id {block['id']!r} is not of the pattern"]
        case "tool_use" if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"]):
            return [f"the name {block['name']!r} is not of the pattern"]
        case "tool_use" if not isinstance(block["input"], dict):
            return ["an input that is no object"]
        case "tool_result" if block.get("is_error") and not block.get("content", "").strip():
            return ["an error without content"]
        case _:
            return []
