"""A strict server of the Responses format."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from .speech import Call, Reasoning, Said, Text, data, is_object


def say(said: Said) -> list[str]:
    """A turn as a stream."""
    steps = [_event("response.created", response={"id": "r", "status": "in_progress", "output": []})]
    output = list(starmap(_item, enumerate(said.blocks)))
    for index, (block, item) in enumerate(zip(said.blocks, output, strict=True)):
        steps.append(_event("response.output_item.added", output_index=index, item=item | _begun(block)))
        if isinstance(block, Text):
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            steps.append(_event("response.output_text.delta", delta=block.text, **place))
        elif isinstance(block, Call):
            place = {"item_id": item["id"], "output_index": index}
            steps.append(_event("response.function_call_arguments.delta", delta=block.arguments, **place))
        steps.append(_event("response.output_item.done", output_index=index, item=item))
    cut = said.finish == "length"
    response: dict[str, Any] = {"id": "r", "status": "incomplete" if cut else "completed", "output": output}
    if cut:
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    if said.tokens is not None:
        response["usage"] = {"input_tokens": said.tokens["in"], "output_tokens": said.tokens["out"]}
    return [*steps, _event(f"response.{response['status']}", response=response)]


def _event(type: str, **fields: Any) -> str:
    return data({"type": type, **fields}, type)


def _item(number: int, block: Text | Call | Reasoning) -> dict[str, Any]:
    match block:
        case Text(text=text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {
                "type": "message",
                "id": f"msg{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case Call():
            named = {"call_id": block.id, "name": block.name, "arguments": block.arguments}
            return {"type": "function_call", "id": f"item-{block.id}", "status": "completed", **named}
        case Reasoning(data=item):
            return item


def _begun(block: Text | Call | Reasoning) -> dict[str, Any]:
    match block:
        case Text():
            return {"status": "in_progress", "content": []}
        case Call():
            return {"status": "in_progress", "arguments": ""}
        case Reasoning():
            return {}


def faults(body: Any) -> list[str]:
    """What a strict server refuses the request for (S1, S2, S3, S7)."""
    found: list[str] = []
    items = body["input"]
    pending: list[str] = []
    called: set[str] = set()
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            if not item["call_id"] or item["call_id"] in called:
                found.append(f"item {place} has an empty or repeated id {item['call_id']!r}")
            if not is_object(item["arguments"]):
                found.append(f"item {place}: the arguments are no text of a JSON object")
            called.add(item["call_id"])
            pending.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in pending:
                found.append(f"item {place} answers {item['call_id']!r}, which waits for no answer")
            else:
                pending.remove(item["call_id"])
        elif kind == "reasoning":
            found += _reasoning_faults(items, place)
        elif item.get("role") == "user" and pending:
            found.append(f"item {place} comes before the outputs of {pending}")
    if pending:
        found.append(f"the calls {pending} have no outputs")
    return found


def _reasoning_faults(items: list[Any], place: int) -> list[str]:
    after = items[place + 1] if place + 1 < len(items) else {}
    follows = after.get("type") in {"function_call", "reasoning"} or after.get("role") == "assistant"
    return [] if follows else [f"item {place}, {items[place].get('id')!r}, is not followed by what it came with"]
