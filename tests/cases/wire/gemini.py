"""A strict server of Gemini's generateContent."""

from __future__ import annotations

import json
from typing import Any

from .speech import Call, Said, Text, data

FINISHES = {"length": "MAX_TOKENS", "tool_calls": "STOP", "stop": "STOP"}


def say(said: Said) -> list[str]:
    """A turn as a stream."""
    parts: list[dict[str, Any]] = []
    for block in said.blocks:
        match block:
            case Text(text=text):
                parts.append({"text": text})
            case Call():
                parts.append({"functionCall": {"name": block.name, "args": json.loads(block.arguments)}})
            case _:
                raise AssertionError(f"no such block in this format: {block}")
    last: dict[str, Any] = {"finishReason": FINISHES[said.finish or "stop"], "index": 0}
    steps = [data({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}) for part in parts]
    chunk: dict[str, Any] = {"candidates": [last]}
    if said.tokens is not None:
        chunk["usageMetadata"] = {"promptTokenCount": said.tokens["in"], "candidatesTokenCount": said.tokens["out"]}
    return [*steps, data(chunk)]


def faults(body: Any) -> list[str]:
    """What a strict server refuses the request for (S1, S2, S5)."""
    found: list[str] = []
    pending: list[str] = []
    role = ""
    for place, content in enumerate(body["contents"]):
        parts = content["parts"]
        if not parts or any(part.get("text") == "" for part in parts):
            found.append(f"content {place} has no parts, or an empty one")
        if content["role"] == role:
            found.append(f"content {place} has the role of the one before it")
        role = content["role"]
        answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if answered != pending:
            found.append(f"content {place} answers {answered}, directly before it stand the calls {pending}")
        pending = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    if pending:
        found.append(f"the calls {pending} have no responses")
    if role != "user":
        found.append("the last content is not the user's")
    return found
