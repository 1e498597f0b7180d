"""generateContent replies, and the turn that each of them is."""

from __future__ import annotations

from typing import Any

from protocol.turns import Part, ReasoningPart, TextPart, ToolCall, Turn, Unfinished
from protocol.usage import Usage
from tests.actors.models._gemini import call, kept, reply, text, thought


def turned(*parts: Part, finish: Any = "stop", raw: str | None = "STOP", **more: Any) -> Turn:
    return Turn(parts, finish, raw, response="r1", **more)


CASES: dict[str, tuple[list[dict[str, Any]], Turn]] = {
    "text": ([reply(text("He")), reply(text("llo"), finish="STOP")], turned(TextPart("Hello"))),
    "characters of several bytes": (
        [reply(text("\u4f60\u597d")), reply(text("\U0001f600\u2028"), finish="STOP")],
        turned(TextPart("\u4f60\u597d\U0001f600\u2028")),
    ),
    "thoughts, then text": (
        [reply(thought("h")), reply(thought("m"), text("a")), reply(text("b", thought=False), finish="STOP")],
        turned(ReasoningPart("hm"), TextPart("ab")),
    ),
    "a signature on an empty part": (
        [reply(text("a")), reply(text("", thoughtSignature="S"), finish="STOP")],
        turned(TextPart("a"), kept('{"text":"","thoughtSignature":"S"}')),
    ),
    "a signature on a text": (
        [reply(text("a")), reply(text("b", thoughtSignature="S")), reply(text("c"), finish="STOP")],
        turned(TextPart("a"), TextPart("b"), kept('{"text":null,"thoughtSignature":"S"}'), TextPart("c")),
    ),
    "a signature on a thought": (
        [reply(thought("a", thoughtSignature="S"), text("b"), finish="STOP")],
        turned(ReasoningPart("a"), kept('{"text":null,"thought":true,"thoughtSignature":"S"}'), TextPart("b")),
    ),
    "a signature alone": (
        [reply({"thoughtSignature": "S"}, finish="STOP")],
        turned(kept('{"thoughtSignature":"S"}')),
    ),
    "calls side by side, the first signed": (
        [reply(call("t", {"n": 1}, signature="S"), call("u"), finish="STOP")],
        turned(
            ToolCall("", "t", '{"n":1}'),
            kept('{"thoughtSignature":"S"}', ""),
            ToolCall("", "u", "{}"),
            finish="tool_calls",
        ),
    ),
    "calls with ids": (
        [reply(text("a"), call("t", id="g1")), reply(call("t", id="g2"), finish="STOP")],
        turned(
            TextPart("a"),
            ToolCall("g1", "t", "{}"),
            kept('{"functionCall":{"id":"g1"}}', "g1"),
            ToolCall("g2", "t", "{}"),
            kept('{"functionCall":{"id":"g2"}}', "g2"),
            finish="tool_calls",
        ),
    ),
    "a word that is not Google's": (
        [reply(call("t"), finish="FUNCTION_CALL")],
        turned(ToolCall("", "t", "{}"), finish="tool_calls", raw="FUNCTION_CALL"),
    ),
    "arguments that are null, or missing": (
        [reply({"functionCall": {"name": "t", "args": None}}, {"functionCall": {"name": "u"}}, finish="STOP")],
        turned(ToolCall("", "t", "{}"), ToolCall("", "u", "{}"), finish="tool_calls"),
    ),
    "arguments that are no object": (
        [
            reply(
                {"functionCall": {"name": "t", "args": "n=1"}},
                {"functionCall": {"name": "u", "args": [1]}},
                finish="STOP",
            )
        ],
        turned(ToolCall("", "t", "n=1"), ToolCall("", "u", "[1]"), finish="tool_calls"),
    ),
    "a call cut by the limit": (
        [reply(call("t"), finish="MAX_TOKENS")],
        turned(ToolCall("", "t", "{}"), finish="length", raw="MAX_TOKENS"),
    ),
    "items of other kinds": (
        [
            reply(text("a"), {"executableCode": {"code": "1"}}),
            reply({"codeExecutionResult": {"output": "1"}}, {"functionCall": 1}, {}, None, "x", finish="STOP"),
        ],
        turned(
            TextPart("a"),
            kept('{"executableCode":{"code":"1"}}'),
            kept('{"codeExecutionResult":{"output":"1"}}'),
            kept('{"functionCall":1}'),
        ),
    ),
    "arguments in pieces": (
        [
            reply({"functionCall": {"name": "t", "id": "g", "willContinue": True}, "thoughtSignature": "S"}),
            reply({
                "functionCall": {
                    "partialArgs": [
                        {"jsonPath": "$.place.city", "stringValue": "Os", "willContinue": True},
                        {"jsonPath": "$.days[0]", "stringValue": "1"},
                    ],
                    "willContinue": True,
                }
            }),
            reply({
                "functionCall": {
                    "partialArgs": [
                        {"jsonPath": "$.place.city", "stringValue": "lo"},
                        {"jsonPath": "$.days[0]", "stringValue": "2"},
                        {"jsonPath": "$.days[1]", "nullValue": "NULL_VALUE"},
                        {"jsonPath": "$['a b']", "boolValue": True},
                    ],
                    "willContinue": True,
                }
            }),
            reply({"functionCall": {}}),
            reply(call("u"), {"functionCall": {}}, finish="STOP"),
        ],
        turned(
            ToolCall("g", "t", '{"place":{"city":"Oslo"},"days":["12",null],"a b":true}'),
            kept('{"thoughtSignature":"S","functionCall":{"id":"g"}}', "g"),
            ToolCall("", "u", "{}"),
            finish="tool_calls",
        ),
    ),
    "another candidate": (
        [{"candidates": [{"index": 1, "content": {"parts": [text("x")]}}]}, reply(text("a"), finish="STOP")],
        turned(TextPart("a")),
    ),
    "chunks of nothing": (
        [{"responseId": "r1", "candidates": []}, {"candidates": [{}]}, {}, reply(text("a")), reply(finish="STOP")],
        turned(TextPart("a")),
    ),
    "no reason yet": (
        [reply(text("a"), finish="FINISH_REASON_UNSPECIFIED"), reply(text("b"), finish="STOP")],
        turned(TextPart("ab")),
    ),
    "feedback on a prompt that was answered": (
        [
            reply(text("a"), finish="STOP", promptFeedback={"blockReason": "OTHER"}),
            {"promptFeedback": {"blockReason": "OTHER"}},
        ],
        turned(TextPart("a")),
    ),
    "an id that is empty": (
        [reply({"functionCall": {"name": "t", "args": {}, "id": ""}}, finish="STOP")],
        turned(ToolCall("", "t", "{}"), kept('{"functionCall":{"id":""}}', ""), finish="tool_calls"),
    ),
    "a blocked prompt": (
        [{"promptFeedback": {"blockReason": "OTHER"}, "responseId": "r1", "usageMetadata": {"promptTokenCount": 3}}],
        turned(finish="content_filter", raw="OTHER", usage=Usage(3)),
    ),
    "a decode that could go on": (
        [
            {**reply(text("a")), "candidates": [{"content": {"parts": [text("a")]}, "continuationToken": "T1"}]},
            {"candidates": [{"continuationToken": "T2"}]},
            {"candidates": [{"finishReason": "CONTINUATION"}]},
        ],
        turned(TextPart("a"), finish="length", raw="CONTINUATION", unfinished=Unfinished("T2")),
    ),
    "a decode that could go on, without a reason": (
        [{"responseId": "r1", "candidates": [{"content": {"parts": [text("a")]}, "continuationToken": "T"}]}],
        turned(TextPart("a"), finish="length", raw=None, unfinished=Unfinished("T")),
    ),
    "a decode that went on by itself": (
        [
            {"responseId": "r1", "candidates": [{"content": {"parts": [text("a")]}, "continuationToken": "T"}]},
            reply(text("b"), finish="STOP"),
        ],
        turned(TextPart("ab")),
    ),
}
