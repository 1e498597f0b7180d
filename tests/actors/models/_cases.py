"""Replies as servers really send them, and the turn that each of them is. The ids are those of public reports."""

from __future__ import annotations

import attrs

from protocol.turns import Part, ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._wire import DONE, HI, STOP, chunk, event, piece, pieces

UNKNOWN = Usage()
CALLED = chunk(finish="tool_calls") + DONE
HELLO = Turn((TextPart("Hello"),), "stop", "stop", UNKNOWN, response="r1")


def called(*parts: Part) -> Turn:
    return Turn(parts, "tool_calls", "tool_calls", UNKNOWN, response="r1")


@attrs.frozen
class Case:
    """The chunks of one stream, and what it comes to."""

    chunks: list[str | bytes]
    turn: Turn


_split_text = (
    bytes.fromhex(
        "646174613a207b226964223a227231222c2263686f69636573223a5b7b22696e646578223a302c2264656c7461223a7b22636f6e74656e74223a22e4bda0e5"
    ),
    bytes.fromhex("a5bdf09f9880227d2c2266696e6973685f726561736f6e223a6e756c6c7d5d7d0a0a"),
)

STREAMS: dict[str, Case] = {
    "SSE-01 comments": Case([": OPENROUTER PROCESSING\n\n", HI[0], ": ping\n", HI[1], ":\n\n", HI[2]], HELLO),
    "SSE-02 blank lines": Case(
        ["id: 1\n" + HI[0], ": ping\n\n", "data:\n\n", "id: 2\n" + HI[1], "event: keepalive\n\n", HI[2]],
        HELLO,
    ),
    "SSE-05 split characters": Case(
        [*_split_text, STOP],
        Turn((TextPart("\u4f60\u597d\U0001f600"),), "stop", "stop", response="r1"),
    ),
    "SSE-06 split line ends": Case(
        ['data: {"id":"r1",\r', '\ndata: "choices":[{"delta":{"content":"Hello"}}]}\r\n\r', "\n", STOP], HELLO
    ),
    "SSE-08 no space": Case([text.replace("data: ", "data:") for text in HI], HELLO),
    "SSE-09 unicode separators": Case(
        [chunk({"content": "a\u2028b\u2029c\u0085de"}), STOP],
        Turn((TextPart("a\u2028b\u2029c\u0085de"),), "stop", "stop", response="r1"),
    ),
    "SSE-15 no choices": Case(
        [
            event({"id": "", "choices": [], "prompt_filter_results": []}),
            HI[0],
            HI[1],
            chunk(finish="stop"),
            event({"id": "r1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
            DONE,
        ],
        attrs.evolve(HELLO, usage=Usage(3, output_tokens=2, complete=True)),
    ),
    "DEL-01 all index 0": Case(
        [
            piece(index=0, id="a", name="s", arguments='{"q":"Emma"}'),
            piece(index=0, id="b", name="s", arguments='{"q":"Virginia"}'),
            CALLED,
        ],
        called(ToolCall("a", "s", '{"q":"Emma"}'), ToolCall("b", "s", '{"q":"Virginia"}')),
    ),
    "DEL-01 all index 0, no ids": Case(
        [
            piece(index=0, name="s", arguments='{"q":"Emma"}'),
            piece(index=0, name="s", arguments='{"q":"Emma"}'),
            CALLED,
        ],
        called(ToolCall("", "s", '{"q":"Emma"}'), ToolCall("", "s", '{"q":"Emma"}')),
    ),
    "DEL-01 all index 0, no arguments": Case(
        [piece(index=0, id="a", name="now"), piece(index=0, id="b", name="now"), CALLED],
        called(ToolCall("a", "now", ""), ToolCall("b", "now", "")),
    ),
    "DEL-02 no index": Case(
        [
            piece(id="a", name="w", arguments='{"c":"Par'),
            piece(arguments='is"}'),
            piece(id="b", name="z", arguments="{}"),
            CALLED,
        ],
        called(ToolCall("a", "w", '{"c":"Paris"}'), ToolCall("b", "z", "{}")),
    ),
    "DEL-02 index null": Case(
        [
            piece(index=None, id="a", name="w", arguments='{"c":"Par'),
            piece(index=None, arguments='is"}'),
            piece(index=None, id="b", name="z", arguments="{}"),
            CALLED,
        ],
        called(ToolCall("a", "w", '{"c":"Paris"}'), ToolCall("b", "z", "{}")),
    ),
    "DEL-02 first with index 0": Case(
        [
            piece(index=0, id="a", name="w", arguments='{"c":"Par'),
            piece(arguments='is"}'),
            piece(id="b", name="z", arguments="{}"),
            CALLED,
        ],
        called(ToolCall("a", "w", '{"c":"Paris"}'), ToolCall("b", "z", "{}")),
    ),
    "DEL-02 no index, no ids": Case(
        [
            piece(name="w", arguments='{"c":"Par'),
            piece(name="w", arguments='is"}'),
            piece(name="w", arguments='{"c":"Oslo"}'),
            CALLED,
        ],
        called(ToolCall("", "w", '{"c":"Paris"}'), ToolCall("", "w", '{"c":"Oslo"}')),
    ),
    "DEL-04 two entries": Case(
        [
            pieces({"index": 0, "id": "a", "name": "t"}, {"index": 0, "arguments": '{"n":'}),
            piece(index=0, arguments="5}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":5}')),
    ),
    "DEL-05 name repeated": Case(
        [
            piece(index=0, id="a", name="search", arguments='{"q":'),
            piece(index=0, id="a", name="search", arguments='"x'),
            piece(index=0, id="a", name="search", arguments='"}'),
            CALLED,
        ],
        called(ToolCall("a", "search", '{"q":"x"}')),
    ),
    "DEL-05 name repeated at once": Case(
        [
            piece(index=0, id="a", name="search"),
            piece(index=0, id="a", name="search", arguments='{"q":"x"}'),
            CALLED,
        ],
        called(ToolCall("a", "search", '{"q":"x"}')),
    ),
    "DEL-05 name in pieces": Case(
        [
            piece(index=0, id="a", name="sea"),
            piece(index=0, name="rch", arguments=""),
            piece(index=0, arguments='{"q":"x"}'),
            CALLED,
        ],
        called(ToolCall("a", "search", '{"q":"x"}')),
    ),
    "DEL-05 name as it grows": Case(
        [piece(index=0, id="a", name="sea"), piece(index=0, id="a", name="search", arguments="{}"), CALLED],
        called(ToolCall("a", "search", "{}")),
    ),
    "a name after the arguments have begun": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=0, id="a", name="function", arguments="1}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "DEL-07 other index": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=1, arguments="4"),
            piece(index=2, arguments="}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":4}')),
    ),
    "DEL-09 text first": Case(
        [
            chunk({"content": "thinking "}),
            chunk({"content": "aloud"}),
            piece(index=0, id="a", name="greet", arguments="{}"),
            CALLED,
        ],
        called(TextPart("thinking aloud"), ToolCall("a", "greet", "{}")),
    ),
    "calls side by side": Case(
        [
            pieces({"index": 0, "id": "a", "name": "s", "arguments": ""}, {"index": 1, "id": "b", "name": "t"}),
            pieces({"index": 1, "arguments": '{"m":'}, {"index": 0, "arguments": '{"n":'}),
            pieces({"index": 0, "arguments": "1}"}, {"index": 1, "arguments": "2}"}),
            CALLED,
        ],
        called(ToolCall("a", "s", '{"n":1}'), ToolCall("b", "t", '{"m":2}')),
    ),
    "arguments as an object": Case(
        [piece(index=0, id="a", name="t", arguments={"n": [1, {"m": "\u00e9"}]}), CALLED],
        called(ToolCall("a", "t", '{"n":[1,{"m":"\u00e9"}]}')),
    ),
    "arguments missing or null": Case(
        [piece(index=0, id="a", name="t"), piece(index=1, id="b", name="u", arguments=None), CALLED],
        called(ToolCall("a", "t", ""), ToolCall("b", "u", "")),
    ),
    "objects inside the arguments": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"a":{}'),
            piece(index=0, id="a", name="t", arguments=',"b":{"c":{}}'),
            piece(index=0, id="a", name="t", arguments="}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"a":{},"b":{"c":{}}}')),
    ),
    "arguments that are no JSON": Case(
        [piece(index=0, id="a", name="t", arguments="n=1"), CALLED],
        called(ToolCall("a", "t", "n=1")),
    ),
    "id late": Case(
        [piece(index=0, name="t", arguments='{"n":'), piece(index=0, id="a", arguments="1}"), CALLED],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "id empty or blank": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=0, id="", name="", arguments="1"),
            piece(index=0, id=" ", name=None, arguments="}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "id in the function": Case(
        [chunk({"tool_calls": [{"index": 0, "function": {"id": "a", "name": "t", "arguments": "{}"}}]}), CALLED],
        called(ToolCall("a", "t", "{}")),
    ),
    "another id for each fragment": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=0, id="b", arguments="1"),
            piece(index=0, id="c", arguments="}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "same id, two indexes": Case(
        [
            piece(index=0, id="x", name="t", arguments='{"n":1}'),
            piece(index=1, id="x", name="t", arguments='{"n":2}'),
            CALLED,
        ],
        called(ToolCall("x", "t", '{"n":1}'), ToolCall("x", "t", '{"n":2}')),
    ),
    "same id, two indexes, same arguments": Case(
        [
            piece(index=0, id="x", name="t", arguments='{"n":1}'),
            piece(index=1, id="x", name="t", arguments='{"n":1}'),
            CALLED,
        ],
        called(ToolCall("x", "t", '{"n":1}'), ToolCall("x", "t", '{"n":1}')),
    ),
    "same id, same index, other arguments": Case(
        [
            piece(index=0, id="x", name="t", arguments='{"n":1}'),
            piece(index=0, id="x", name="t", arguments='{"n":2}'),
            CALLED,
        ],
        called(ToolCall("x", "t", '{"n":1}'), ToolCall("x", "t", '{"n":2}')),
    ),
    "whole call repeated at the end": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=0, arguments="1}"),
            piece(index=0, id="a", name="t", arguments='{"n":1}'),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "place holder arguments": Case(
        [
            piece(index=0, id="a", name="t", arguments="{}"),
            piece(index=0, arguments='{"n":'),
            piece(index=0, arguments="1}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "white space after the arguments": Case(
        [piece(index=0, id="a", name="t", arguments='{"n":1}'), piece(index=0, arguments="\n"), CALLED],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "by id, then index": Case(
        [
            piece(id="a", name="t", arguments='{"n":'),
            piece(index=3, id="a", arguments="1}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "index as text": Case(
        [piece(index="0", id="a", name="t", arguments='{"n":'), piece(index="0", arguments="1}"), CALLED],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "entries of nothing": Case(
        [
            chunk({"content": "Hello", "tool_calls": None}),
            chunk({"tool_calls": []}),
            chunk({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": ""}}, None, 3]}),
            STOP,
        ],
        HELLO,
    ),
    "the old function call": Case(
        [
            chunk({"function_call": {"name": "t", "arguments": '{"n":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk(finish="function_call"),
            DONE,
        ],
        Turn((ToolCall("", "t", '{"n":1}'),), "tool_calls", "function_call", response="r1"),
    ),
    "FIN-02 stop with a call": Case(
        [chunk({"content": "let me check"}), piece(index=0, id="a", name="t", arguments="{}"), STOP],
        Turn((TextPart("let me check"), ToolCall("a", "t", "{}")), "stop", "stop", response="r1"),
    ),
    "FIN-02 no reason": Case(
        [piece(index=0, id="a", name="t", arguments="{}"), DONE],
        Turn((ToolCall("a", "t", "{}"),), None, None, response="r1"),
    ),
    "a call without arguments, and no reason": Case(
        [piece(index=0, id="a", name="t"), DONE],
        Turn((ToolCall("a", "t", ""),), None, None, response="r1"),
    ),
    "ids that change": Case([HI[0], HI[1].replace("r1", "r2"), HI[2].replace("r1", "r3")], HELLO),
    "FIN-03 filter": Case(
        [chunk({"content": ""}), chunk(finish="content_filter"), DONE],
        Turn((), "content_filter", "content_filter", response="r1"),
    ),
    "finish reason empty on each chunk": Case(
        [chunk({"content": "Hel"}, finish=""), chunk({"content": "lo"}, finish=""), STOP],
        HELLO,
    ),
    "text beside the reason": Case([chunk({"content": "Hel"}), chunk({"content": "lo"}, finish="stop"), DONE], HELLO),
    "a reason and no sentinel": Case([HI[0], HI[1], chunk(finish="stop")], HELLO),
    "a sentinel and no reason": Case([HI[0], HI[1], DONE], attrs.evolve(HELLO, finish=None, raw_finish=None)),
    "usage in every chunk": Case(
        [
            chunk({"content": "Hel"}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
            chunk({"content": "lo"}, usage={"prompt_tokens": 9, "completion_tokens": 2}),
            chunk(finish="stop", usage={"prompt_tokens": None, "completion_tokens": 3}),
            chunk(usage=None),
            DONE,
        ],
        attrs.evolve(HELLO, usage=Usage(9, output_tokens=3, complete=True)),
    ),
    "reasoning": Case(
        [
            chunk({"reasoning_content": "Let "}),
            chunk({"reasoning": "me ", "content": ""}),
            chunk({"reasoning": "see", "reasoning_content": "see", "content": None}),
            *HI,
        ],
        Turn((ReasoningPart("Let me see"), TextPart("Hello")), "stop", "stop", response="r1"),
    ),
    "parts in their order": Case(
        [
            chunk({"content": "a"}),
            piece(index=0, id="a", name="t", arguments="{}"),
            chunk({"content": "b"}),
            chunk({"reasoning": "c"}),
            CALLED,
        ],
        called(TextPart("a"), ToolCall("a", "t", "{}"), TextPart("b"), ReasoningPart("c")),
    ),
    "content as blocks": Case(
        [
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
            chunk({"content": [{"type": "text", "text": "Hello"}, {"type": "image_url"}]}),
            STOP,
        ],
        Turn((ReasoningPart("hm"), TextPart("Hello")), "stop", "stop", response="r1"),
    ),
    "a refusal": Case(
        [chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP],
        Turn((TextPart("I cannot."),), "stop", "stop", response="r1"),
    ),
    "message in place of delta": Case(
        [event({"id": "r1", "choices": [{"message": {"content": "Hello"}}]}), STOP],
        HELLO,
    ),
    "choices beside the first": Case(
        [event({"id": "r1", "choices": [{"index": 1, "delta": {"content": "Bye"}, "finish_reason": "length"}]}), *HI],
        HELLO,
    ),
    "keys of their own": Case(
        [
            event({
                "id": "r1",
                "error": None,
                "choices": [{"delta": {"content": "Hello", "x": 1}}],
                "timings": {"a": 1},
            }),
            STOP,
        ],
        HELLO,
    ),
    "a character in two halves": Case(
        [
            'data: {"id":"r1","choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
            'data: {"id":"r1","choices":[{"delta":{"content":"\\ude00b"}}]}\n\n',
            STOP,
        ],
        Turn((TextPart("a\U0001f600b"),), "stop", "stop", response="r1"),
    ),
    "half a character": Case(
        [
            'data: {"id":"r1","choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
            'data: {"id":"r1","choices":[{"delta":{"content":"b"},"logprobs":NaN}]}\n\n',
            STOP,
        ],
        Turn((TextPart("a\ufffdb"),), "stop", "stop", response="r1"),
    ),
    "half a character in arguments": Case(
        [
            (
                'data: {"id":"r1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
                '{"name":"t","arguments":"{\\"n\\":\\"\\ud83d\\"}"}}]}}]}\n\n'
            ),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":"\ufffd"}')),
    ),
}

BODIES: dict[str, tuple[object, Turn]] = {
    "IDS-01 empty ids": (
        {
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "", "type": "function", "function": {"name": "t", "arguments": '{"n":1}'}},
                            {"id": "", "type": "function", "function": {"name": "t", "arguments": '{"n":2}'}},
                        ],
                    },
                }
            ]
        },
        Turn((ToolCall("", "t", '{"n":1}'), ToolCall("", "t", '{"n":2}')), "tool_calls", "tool_calls"),
    ),
    "IDS-03 one id twice": (
        {
            "id": "r1",
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "tool_calls": [
                            {"id": "x", "function": {"name": "t", "arguments": '{"n":1}'}},
                            {"id": "x", "function": {"name": "t", "arguments": '{"n":1}'}},
                        ]
                    },
                }
            ],
        },
        called(ToolCall("x", "t", '{"n":1}'), ToolCall("x", "t", '{"n":1}')),
    ),
    "FIN-15 empty list of calls": (
        {
            "id": "r1",
            "choices": [
                {"finish_reason": "stop", "message": {"role": "assistant", "content": "Hello", "tool_calls": []}}
            ],
        },
        HELLO,
    ),
    "FIN-15 null for calls": (
        {"id": "r1", "choices": [{"finish_reason": "stop", "message": {"content": "Hello", "tool_calls": None}}]},
        HELLO,
    ),
    "FIN-16 end_turn": (
        {"id": "r1", "choices": [{"finish_reason": "end_turn", "message": {"role": "assistant", "content": "hi"}}]},
        Turn((TextPart("hi"),), "stop", "end_turn", response="r1"),
    ),
    "usage and reasoning": (
        {
            "id": "r1",
            "choices": [{"finish_reason": "stop", "message": {"reasoning_content": "hm", "content": "Hello"}}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
        },
        Turn(
            (ReasoningPart("hm"), TextPart("Hello")),
            "stop",
            "stop",
            Usage(5, 4, 1, 7, 5, complete=True),
            response="r1",
        ),
    ),
}
