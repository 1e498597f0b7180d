"""Whole replies in the Messages format, and the turn that each of them is."""

from __future__ import annotations

import attrs

from protocol.turns import ReasoningPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._anthropic_cases import HELLO, called, opaque, turn

BODIES: dict[str, tuple[object, Turn]] = {
    "text": (
        {
            "id": "m1",
            "type": "message",
            "content": [{"type": "text", "text": "Hello", "citations": None}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 20, "output_tokens": 5},
        },
        attrs.evolve(HELLO, usage=Usage(1, 20, output_tokens=5, complete=True)),
    ),
    "thinking and calls": (
        {
            "id": "m1",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "AbC="},
                {"type": "tool_use", "id": "a", "name": "t", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "u", "input": {}},
                3,
            ],
            "stop_reason": "tool_use",
        },
        called(
            ReasoningPart("hm", "anthropic-messages:s"),
            opaque({"type": "redacted_thinking", "data": "AbC="}),
            ToolCall("a", "t", '{"n":1}'),
            ToolCall("b", "u", ""),
        ),
    ),
    "nothing": ({"id": "m1", "content": [], "stop_reason": "refusal"}, turn(reason="refusal", finish="content_filter")),
}
