"""Replies in the Messages format as servers really send them, and the turn that each of them is."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs

from protocol.turns import OpaquePart, ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._anthropic_wire import (
    END,
    HI,
    PING,
    closed,
    delta,
    opened,
    sent,
    start,
    stop,
    text,
    thinking,
    tool,
)
from tests.actors.models._cases import Case

HELLO = Turn((TextPart("Hello"),), "stop", "end_turn", response="m1")
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "café"}}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"title": "A", "encrypted": "x"}],
}
CITED = {"type": "web_search_result_location", "cited_text": "a", "encrypted_index": "y"}


def opaque(block: dict[str, Any], call: str | None = None) -> OpaquePart:
    return OpaquePart("anthropic-messages", json.dumps(block, ensure_ascii=False, separators=(",", ":")), call)


def turn(*parts: Any, reason: str = "end_turn", finish: Any = "stop") -> Turn:
    return Turn(parts, finish, reason, response="m1")


def called(*parts: Any) -> Turn:
    return turn(*parts, reason="tool_use", finish="tool_calls")


STREAMS: dict[str, Case] = {
    "text": Case([*HI], HELLO),
    "pings and unknown events": Case([HI[0], PING, sent("brand_new", index=0), HI[1], PING, HI[2]], HELLO),
    "no event names": Case(
        [line + "\n\n" for step in HI for line in step.split("\n") if line.startswith("data")], HELLO
    ),
    "event names alone": Case([re.sub(r'data: \{"type": "\w+"(, )?', "data: {", step) for step in HI], HELLO),
    "usage": Case(
        [
            start(input_tokens=9, cache_read_input_tokens=4, cache_creation_input_tokens=2, output_tokens=1),
            HI[1],
            sent("message_delta", delta={"stop_reason": None}, usage={"output_tokens": 5}),
            stop(
                output_tokens=7,
                input_tokens=None,
                cache_read_input_tokens=3,
                output_tokens_details={"thinking_tokens": 6},
            ),
        ],
        attrs.evolve(HELLO, usage=Usage(9, 3, 2, 7, 6, complete=True)),
    ),
    "usage that no delta tells is no count": Case(
        [start(input_tokens=9, output_tokens=1), HI[1], stop()], attrs.evolve(HELLO, usage=Usage(9, output_tokens=1))
    ),
    "no start of the message": Case(
        [HI[1], stop(output_tokens=3)], attrs.evolve(HELLO, response=None, usage=Usage(output_tokens=3))
    ),
    "no start of the block": Case(
        [delta(0, "text_delta", text="Hel"), delta(0, "text_delta", text="lo"), closed(0), stop()],
        attrs.evolve(HELLO, response=None),
    ),
    "no start of thinking": Case(
        [
            start(),
            delta(0, "thinking_delta", thinking="hm"),
            delta(0, "signature_delta", signature="s"),
            closed(0),
            text(1, "Hello"),
            stop(),
        ],
        turn(ReasoningPart("hm", "anthropic-messages:s"), TextPart("Hello")),
    ),
    "a stop of no block": Case([start(), closed(0), stop()], turn()),
    "a stop reason and no message_stop": Case(
        [HI[0], HI[1], sent("message_delta", delta={"stop_reason": "end_turn"})], HELLO
    ),
    "message_stop and no stop reason": Case([HI[0], HI[1], END], attrs.evolve(HELLO, finish=None, raw_finish=None)),
    "a sentinel behind the end": Case([HI[0], HI[1], HI[2].removesuffix(END), "data: [DONE]\n\n"], HELLO),
    "text in the start": Case(
        [start(), opened(0, "text", text="Hel"), delta(0, "text_delta", text="lo"), stop()], HELLO
    ),
    "blocks that are not stopped": Case(
        [start(), opened(0, "text", text=""), delta(0, "text_delta", text="Hello"), stop()], HELLO
    ),
    "blocks side by side": Case(
        [
            start(),
            opened(0, "text", text=""),
            opened(1, "tool_use", id="a", name="t", input={}),
            delta(1, "input_json_delta", partial_json='{"n":'),
            delta(0, "text_delta", text="Hello"),
            delta(1, "input_json_delta", partial_json="1}"),
            stop("tool_use"),
        ],
        called(TextPart("Hello"), ToolCall("a", "t", '{"n":1}')),
    ),
    "no index": Case(
        [
            start(),
            opened(None, "text", text=""),
            delta(None, "text_delta", text="Hello"),
            closed(None),
            opened(None, "tool_use", id="a", name="t"),
            delta(None, "input_json_delta", partial_json="{}"),
            closed(None),
            stop("tool_use"),
        ],
        called(TextPart("Hello"), ToolCall("a", "t", "{}")),
    ),
    "calls": Case(
        [
            start(),
            text(0, "Let me look."),
            tool(1, "a", "read", "", '{"path": "ca', 'fé"}'),
            tool(2, "b", "now"),
            stop("tool_use"),
        ],
        called(TextPart("Let me look."), ToolCall("a", "read", '{"path": "café"}'), ToolCall("b", "now", "")),
    ),
    "a call without input in its start": Case(
        [start(), opened(0, "tool_use", id="a", name="t"), closed(0), stop("tool_use")], called(ToolCall("a", "t", ""))
    ),
    "a call with its input in its start": Case(
        [start(), opened(0, "tool_use", id="a", name="t", input={"n": [1]}), closed(0), stop("tool_use")],
        called(ToolCall("a", "t", '{"n":[1]}')),
    ),
    "input in the start, and neither its stop nor message_stop": Case(
        [start(), opened(0, "tool_use", id="a", name="t", input={"n": 1}), stop("tool_use").removesuffix(END)],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "input in the start and in pieces": Case(
        [
            start(),
            opened(0, "tool_use", id="a", name="t", input={"n": 1}),
            delta(0, "input_json_delta", partial_json='{"n":1}'),
            stop("tool_use"),
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "a call cut by the limit": Case(
        [start(), tool(0, "a", "write", '{"path": "a", "te'), stop("max_tokens")],
        turn(ToolCall("a", "write", '{"path": "a", "te'), reason="max_tokens", finish="length"),
    ),
    "who called": Case(
        [
            start(),
            tool(0, "a", "t", "{}", caller={"type": "code_execution", "tool_id": "srv_1"}),
            tool(1, "b", "t", "{}", caller={"type": "direct"}),
            stop("tool_use"),
        ],
        called(
            ToolCall("a", "t", "{}"),
            opaque({"type": "tool_use", "caller": {"type": "code_execution", "tool_id": "srv_1"}}, "a"),
            ToolCall("b", "t", "{}"),
        ),
    ),
    "signed thinking": Case(
        [start(), thinking(0, "Let ", "me see", signature="EqQB"), text(1, "Hello"), stop()],
        turn(ReasoningPart("Let me see", "anthropic-messages:EqQB"), TextPart("Hello")),
    ),
    "thinking that is signed and not shown": Case(
        [start(), thinking(0, signature="EqQB"), text(1, "Hello"), stop()],
        turn(ReasoningPart("", "anthropic-messages:EqQB"), TextPart("Hello")),
    ),
    "thinking that nobody signed": Case(
        [start(), thinking(0, "hm"), text(1, "Hello"), stop()], turn(ReasoningPart("hm"), TextPart("Hello"))
    ),
    "thinking cut before its signature": Case(
        [start(), opened(0, "thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), stop("max_tokens")],
        turn(ReasoningPart("hm"), reason="max_tokens", finish="length"),
    ),
    "thinking between calls": Case(
        [
            start(),
            thinking(0, "one", signature="s1"),
            opened(1, "redacted_thinking", data="AbC="),
            closed(1),
            tool(2, "a", "t", "{}"),
            thinking(3, "two", signature="s2"),
            tool(4, "b", "t", "{}"),
            stop("tool_use"),
        ],
        called(
            ReasoningPart("one", "anthropic-messages:s1"),
            opaque({"type": "redacted_thinking", "data": "AbC="}),
            ToolCall("a", "t", "{}"),
            ReasoningPart("two", "anthropic-messages:s2"),
            ToolCall("b", "t", "{}"),
        ),
    ),
    "a search at the provider, with citations": Case(
        [
            start(),
            tool(0, "srv_1", "web_search", '{"query": "ca', 'fé"}', kind="server_tool_use"),
            opened(1, FOUND["type"], tool_use_id="srv_1", content=FOUND["content"]),
            closed(1),
            opened(2, "text", text="", citations=[]),
            delta(2, "text_delta", text="Hel"),
            delta(2, "citations_delta", citation=CITED),
            delta(2, "text_delta", text="lo"),
            closed(2),
            stop(),
        ],
        turn(opaque(SEARCH), opaque(FOUND), TextPart("Hello"), opaque({"type": "text", "citations": [CITED]})),
    ),
    "a pause": Case(
        [start(), tool(0, "srv_1", "web_search", '{"query":"café"}', kind="server_tool_use"), stop("pause_turn")],
        turn(opaque(SEARCH), reason="pause_turn", finish="paused"),
    ),
    "a search whose input was cut": Case(
        [start(), tool(0, "srv_1", "web_search", '{"que', kind="server_tool_use"), stop("max_tokens")],
        turn(reason="max_tokens", finish="length"),
    ),
    "a compaction": Case(
        [
            start(),
            opened(0, "compaction", content=None),
            delta(0, "compaction_delta", content="So far: café."),
            closed(0),
            stop("compaction"),
        ],
        turn(opaque({"type": "compaction", "content": "So far: café."}), reason="compaction", finish="paused"),
    ),
    "a block and deltas that are not known": Case(
        [
            start(),
            opened(0, "brand_new", data="a", n=1),
            delta(0, "brand_new_delta", data="b", n=2),
            delta(0, "text_delta", text="c"),
            delta(0, "brand_new_delta", data="c", words="d"),
            delta(0, "brand_new_delta", words=["e"]),
            closed(0),
            text(1, "Hello"),
            delta(1, "brand_new_delta", words=1),
            delta(7, "brand_new_delta", words=1),
            stop(),
        ],
        turn(opaque({"type": "brand_new", "data": "abc", "n": 2, "words": ["e"], "text": "c"}), TextPart("Hello")),
    ),
    "a blank piece of no call": Case(
        [
            *HI[:2],
            delta(0, "input_json_delta", partial_json=""),
            delta(5, "input_json_delta", partial_json="\n"),
            HI[2],
        ],
        HELLO,
    ),
    "an empty block of text": Case([start(), text(0), text(1, "Hello"), stop()], HELLO),
    "a character in two halves": Case(
        [
            start(),
            opened(0, "text", text=""),
            'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}\n\n',
            'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ude00b\\ud83d"}}\n\n',
            closed(0),
            stop(),
        ],
        turn(TextPart("a\U0001f600b\ufffd")),
    ),
}
