"""A strict server of Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any

from .speech import Call, Reasoning, Said, Text, data

FINISHES = {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}
THINKING = {"thinking", "redacted_thinking"}


def say(said: Said) -> list[str]:
    """A turn as a stream."""
    tokens = said.tokens or {"in": 1, "out": 1}
    message = {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": tokens["in"]}}
    steps = [_event("message_start", message=message)]
    for index, block in enumerate(said.blocks):
        start, deltas = _parts(block)
        steps.append(_event("content_block_start", index=index, content_block=start))
        steps += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        steps.append(_event("content_block_stop", index=index))
    reason = FINISHES[said.finish or ("tool_calls" if said.calls else "stop")]
    steps.append(_event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": tokens["out"]}))
    return [*steps, _event("message_stop")]


def _event(type: str, **fields: Any) -> str:
    return data({"type": type, **fields}, type)


def _parts(block: Text | Call | Reasoning) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block:
        case Text(text=text):
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]
        case Call():
            start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            return start, [{"type": "input_json_delta", "partial_json": block.arguments}]
        case Reasoning(data={"type": "thinking"} as item):
            thought = {"type": "thinking_delta", "thinking": item["thinking"]}
            signature = {"type": "signature_delta", "signature": item["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signature]
        case Reasoning(data=item):
            return item, []


def faults(body: Any, given: list[Said]) -> list[str]:
    """What a strict server refuses the request for (S1, S2, S4); `given` are the turns that it gave before."""
    found: list[str] = []
    pending: list[str] = []
    role = ""
    if "max_tokens" not in body:
        found.append("max_tokens is required")
    for place, message in enumerate(body["messages"]):
        blocks = _blocks(message)
        if message["role"] == role:
            found.append(f"message {place} has the role of the one before it")
        role = message["role"]
        if not blocks:
            found.append(f"message {place} is empty")
        found += [
            f"message {place} has an empty block of text"
            for block in blocks
            if block["type"] == "text" and not block["text"].strip()
        ]
        if role == "assistant":
            found += _thinking_faults(place, blocks, given)
            pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
            continue
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block.get("tool_use_id") for block in blocks[: len(answered)]]
        if answered != leading or sorted(answered) != sorted(pending) or len(set(answered)) != len(answered):
            found.append(f"message {place} answers {answered} at {leading}, directly before it stand {pending}")
        pending = []
    if role != "user":
        found.append("the last message is no user message")
    return found


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _thinking_faults(place: int, blocks: list[Any], given: list[Said]) -> list[str]:
    """Of a turn that is known by its calls, the thinking must be what it was, where it was."""
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    turn = next((said for said in given if asked and [call.id for call in said.calls] == asked), None)
    if turn is None:
        return []
    was = [block.data for block in turn.blocks if isinstance(block, Reasoning)]
    sent = [block for block in blocks if block["type"] in THINKING]
    if json.dumps(was) != json.dumps(sent) or blocks[: len(sent)] != sent:
        return [f"message {place}: the thinking was {was}, sent back are {sent}"]
    return []
