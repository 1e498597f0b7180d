"""A strict server of Chat Completions."""

from __future__ import annotations

from typing import Any

from .speech import Call, Said, Text, data, is_object

FINISHES = {"length": "length", "tool_calls": "tool_calls", "stop": "stop"}


def say(said: Said) -> list[str]:
    """A turn as a stream."""
    steps = [_chunk({"role": "assistant", "content": ""})]
    number = 0
    for block in said.blocks:
        match block:
            case Text(text=text):
                steps.append(_chunk({"content": text}))
            case Call():
                function = {"name": block.name, "arguments": block.arguments}
                steps.append(_chunk({"tool_calls": [{"index": number, "id": block.id, "function": function}]}))
                number += 1
            case _:
                raise AssertionError(f"no such block in this format: {block}")
    steps.append(_chunk({}, FINISHES[said.finish or ("tool_calls" if said.calls else "stop")]))
    if said.tokens is not None:
        usage = {"prompt_tokens": said.tokens["in"], "completion_tokens": said.tokens["out"]}
        steps.append(data({"id": "r1", "choices": [], "usage": usage}))
    return [*steps, "data: [DONE]\n\n"]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    return data({"id": "r1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def faults(body: Any) -> list[str]:
    """What a strict server refuses the request for (S1, S2, S3, S6)."""
    found: list[str] = []
    pending: list[str] = []
    for place, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in pending:
                found.append(f"message {place} answers {message['tool_call_id']!r}, which nobody called for")
            else:
                pending.remove(message["tool_call_id"])
            continue
        if pending:
            found.append(f"message {place} comes before the results of {pending}")
        pending = []
        if role == "assistant":
            found += _assistant_faults(place, message)
            pending = [call["id"] for call in message.get("tool_calls", ())]
        elif not message["content"]:
            found.append(f"message {place} is empty")
    if pending:
        found.append(f"the calls {pending} have no results")
    return found


def _assistant_faults(place: int, message: Any) -> list[str]:
    if "tool_calls" not in message:
        return [] if message.get("content") else [f"message {place} has neither content nor calls"]
    calls = message["tool_calls"]
    found: list[str] = []
    if not isinstance(calls, list) or not 0 < len(calls) <= 128:
        found.append(f"message {place} has a list of calls that is empty, too long or none")
    ids = [call["id"] for call in calls]
    if "" in ids or len(set(ids)) != len(ids):
        found.append(f"message {place} has empty or repeated ids: {ids}")
    for call in calls:
        if not is_object(call["function"]["arguments"]):
            found.append(f"message {place}: the arguments of {call['id']} are no text of a JSON object")
        if not call["function"]["name"]:
            found.append(f"message {place} has a call without a name")
    return found
