"""Responses replies as servers really send them, and the turn that each of them is."""

from __future__ import annotations

import json
from typing import Any

import attrs

from actors.models.openai._responses_reply import ResponsesReply
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.turns import Finish, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._wire import Heard

HERE = Endpoint.of("http://127.0.0.1:8080/v1", "/responses", secrets=["sk-very-secret"])
USAGE: dict[str, Any] = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 17,
}
COUNTED = Usage(5, 4, 1, 7, 5, complete=True)


def feed(*chunks: str | bytes) -> tuple[ResponsesReply, Heard]:
    """Read a stream as far as it goes."""
    reader, decoder, heard = ResponsesReply(HERE), EventStreamDecoder(), Heard()
    for data in chunks:
        for made in decoder.feed(data.encode() if isinstance(data, str) else data):
            for model_event in reader.feed(made):
                heard(model_event)
    return reader, heard


def sent(type_: str, **fields: Any) -> str:
    """One event of a stream."""
    return f"event: {type_}\ndata: {json.dumps({'type': type_, **fields}, ensure_ascii=False)}\n\n"


def ended(*output: dict[str, Any], status: str = "completed", **fields: Any) -> str:
    """The terminal event."""
    return sent(f"response.{status}", response={"id": "r1", "status": status, "output": list(output), **fields})


def message(*texts: str, id: str = "m1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content, **fields}


def called(id: str, name: str, arguments: str = "{}", *, number: str = "1", **fields: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc{number}", "call_id": id, "name": name, "arguments": arguments}
    return {**item, "status": "completed", **fields}


def thought(text: str = "", *, id: str = "rs1", encrypted: str | None = "xyz") -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}


def added(item: dict[str, Any], index: int | None = 0) -> str:
    begun = {**item, "status": "in_progress"}
    if item["type"] == "message":
        begun["content"] = []
    if "arguments" in item:
        begun["arguments"] = ""
    return sent("response.output_item.added", item=begun, **({} if index is None else {"output_index": index}))


def finished(item: dict[str, Any], index: int | None = 0) -> str:
    return sent("response.output_item.done", item=item, **({} if index is None else {"output_index": index}))


def text(piece: str, id: str = "m1", index: int = 0, part: int = 0) -> str:
    return sent("response.output_text.delta", item_id=id, output_index=index, content_index=part, delta=piece)


def arguments(piece: str, id: str = "fc1", index: int = 0) -> str:
    return sent("response.function_call_arguments.delta", item_id=id, output_index=index, delta=piece)


CREATED = sent("response.created", response={"id": "r1", "status": "in_progress", "output": [], "usage": None})
HI = [
    CREATED,
    sent("response.in_progress", response={"id": "r1", "status": "in_progress"}),
    added(message()),
    sent("response.content_part.added", item_id="m1", output_index=0, content_index=0, part={"type": "output_text", "text": ""}),
    text("Hel"),
    text("lo"),
    sent("response.output_text.done", item_id="m1", output_index=0, content_index=0, text="Hello"),
    sent("response.content_part.done", item_id="m1", output_index=0, content_index=0, part={"type": "output_text", "text": "Hello"}),
    finished(message("Hello")),
    ended(message("Hello"), usage=USAGE),
]  # fmt: skip
"""A text, told in all five ways."""


@attrs.frozen
class Case:
    """The chunks of one stream, and what it comes to, without what is only for the server."""

    chunks: list[str | bytes]
    turn: Turn


def turn(*parts: Part, finish: Finish = "stop", raw: str = "completed", usage: Usage | None = None) -> Turn:
    return Turn(parts, finish, raw, usage or Usage(), response="r1")


def calls(*parts: Part) -> Turn:
    return turn(*parts, finish="tool_calls")


def bare(whole: Turn) -> Turn:
    """Without the items that are only for the server."""
    return attrs.evolve(whole, parts=tuple(part for part in whole.parts if not isinstance(part, OpaquePart)))


HELLO = turn(TextPart("Hello"), usage=COUNTED)
_N1 = called("a", "t", '{"n":1}')
_N2 = called("b", "t", '{"n":2}', number="2")
_N12 = calls(ToolCall("a", "t", '{"n":1}'), ToolCall("b", "t", '{"n":2}'))

STREAMS: dict[str, Case] = {
    "all that the format says": Case([*HI], HELLO),
    "no event lines": Case([chunk.partition("\n")[2] for chunk in HI], HELLO),
    "types in the event lines alone": Case([chunk.replace('"type": "response.', '"x": "') for chunk in HI], HELLO),
    "comments and blank data": Case([": ping\n\n", HI[0], "data:\n\n", *HI[1:]], HELLO),
    "deltas alone": Case([text("Hel"), text("lo"), ended()], turn(TextPart("Hello"))),
    "deltas that name no item": Case(
        [sent("response.output_text.delta", delta="Hel"), sent("response.output_text.delta", delta="lo"), ended()],
        turn(TextPart("Hello")),
    ),
    "text at the end of its part alone": Case(
        [sent("response.output_text.done", item_id="m1", output_index=0, content_index=0, text="Hello"), ended()],
        turn(TextPart("Hello")),
    ),
    "text in its content part alone": Case(
        [sent("response.content_part.done", item_id="m1", part={"type": "output_text", "text": "Hello"}), ended()],
        turn(TextPart("Hello")),
    ),
    "text in its item alone": Case([finished(message("Hello")), ended()], turn(TextPart("Hello"))),
    "text in the whole response alone": Case([ended(message("Hello"))], turn(TextPart("Hello"))),
    "the end of a text that was not streamed": Case(
        [added(message()), text("Hel"), finished(message("Hello")), ended(message("Hello!"))],
        turn(TextPart("Hello!")),
    ),
    "a telling that contradicts the stream": Case(
        [added(message()), text("Hello"), finished(message("<prefix>Hello")), ended(message("<prefix>Hello"))],
        turn(TextPart("Hello")),
    ),
    "an end of a part that contradicts the stream": Case(
        [text("Hello"), sent("response.output_text.done", item_id="m1", output_index=0, text="<prefix>Hello"), ended()],
        turn(TextPart("Hello")),
    ),
    "two messages that are not named": Case(
        [
            finished(message("a", id=""), None),
            finished(message("a", id=""), None),
            sent("response.output_text.delta", delta="b"),
            ended(),
        ],
        turn(TextPart("a"), TextPart("b")),
    ),
    "new ids in each telling": Case(
        [
            added(message(id="m1")),
            text("Hel", id="m2"),
            text("lo", id="m3"),
            finished(message("Hello", id="m4")),
            ended(message("Hello", id="m5")),
        ],
        turn(TextPart("Hello")),
    ),
    "new ids, and no places": Case(
        [
            sent("response.output_text.delta", item_id="m1", delta="Hel"),
            sent("response.output_text.delta", item_id="m2", delta="lo"),
            finished(message("Hello", id="m3"), None),
            ended(message("Hello", id="m4")),
        ],
        turn(TextPart("Hello")),
    ),
    "parts counted in another way": Case(
        [added(message()), text("Hel", part=1), text("lo", part=1), finished(message("Hello")), ended(message("Hello"))],
        turn(TextPart("Hello")),
    ),
    "the end of a part under another index": Case(
        [text("Hello", part=1), sent("response.output_text.done", item_id="m1", output_index=0, text="Hello"), ended()],
        turn(TextPart("Hello")),
    ),
    "two content parts": Case(
        [text("a"), text("b", part=1), finished(message("a", "b")), ended(message("a", "b"))],
        turn(TextPart("a"), TextPart("b")),
    ),
    "two messages": Case(
        [text("a"), text("b", id="m2", index=1), ended(message("a"), message("b", id="m2"))],
        turn(TextPart("a"), TextPart("b")),
    ),
    "events twice, and too late": Case(
        [*HI[:3], HI[2], *HI[4:9], HI[8], HI[5], HI[6], HI[7], HI[9], HI[9], HI[5], ended(status="failed"), "data: [DONE]\n\n"], HELLO
    ),
    "events that nobody knows": Case(
        [
            HI[0],
            sent("response.web_search_call.searching", item_id="ws1", output_index=0),
            sent("response.output_text.annotation.added", item_id="m1", annotation={}),
            sent("keepalive"),
            sent("response.output_item.added", item=None),
            sent("response.output_item.done", item={"type": 3}),
            sent("response.audio.delta", delta="UklGRg"),
            *HI[1:],
        ],
        HELLO,
    ),
    "a refusal": Case(
        [
            sent("response.refusal.delta", item_id="m1", output_index=0, content_index=0, delta="I can"),
            sent("response.refusal.delta", item_id="m1", output_index=0, content_index=0, delta="not."),
            sent("response.refusal.done", item_id="m1", output_index=0, content_index=0, refusal="I cannot."),
            finished(message(content=[{"type": "refusal", "refusal": "I cannot."}])),
            ended(message(content=[{"type": "refusal", "refusal": "I cannot."}])),
        ],
        turn(TextPart("I cannot.")),
    ),
    "content as a string": Case([ended(message(content="Hello"))], turn(TextPart("Hello"))),
    "a summary of the reasoning": Case(
        [
            added({"type": "reasoning", "id": "rs1", "summary": []}),
            sent("response.reasoning_summary_part.added", item_id="rs1", output_index=0, summary_index=0, part={"type": "summary_text", "text": ""}),
            sent("response.reasoning_summary_text.delta", item_id="rs1", output_index=0, summary_index=0, delta="Let me "),
            sent("response.reasoning_summary_text.delta", item_id="rs1", output_index=0, summary_index=0, delta="see"),
            sent("response.reasoning_summary_text.done", item_id="rs1", output_index=0, summary_index=0, text="Let me see"),
            sent("response.reasoning_summary_part.done", item_id="rs1", output_index=0, summary_index=1, part={"type": "summary_text", "text": "Yes"}),
            finished({"type": "reasoning", "id": "rs1", "summary": [{"text": "Let me see"}, {"text": "Yes"}]}),
            text("Hello", index=1),
            ended(),
        ],
        turn(ReasoningPart("Let me see\n\nYes"), TextPart("Hello")),
    ),
    "reasoning in clear": Case(
        [
            sent("response.reasoning_text.delta", item_id="rs1", output_index=0, content_index=0, delta="hm"),
            sent("response.reasoning_text.delta", item_id="rs9", output_index=0, content_index=0, delta="m"),
            ended({"type": "reasoning", "id": "rs2", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]}, message("Hello")),
        ],
        turn(ReasoningPart("hmm"), TextPart("Hello")),
    ),
    "reasoning in the item alone": Case(
        [ended(thought("hm"), message("Hello"))], turn(ReasoningPart("hm"), TextPart("Hello"))
    ),
    "a call": Case(
        [
            CREATED,
            added(_N1),
            arguments('{"n"'),
            arguments(":1}"),
            sent("response.function_call_arguments.done", item_id="fc1", output_index=0, arguments='{"n":1}', name="t"),
            finished(_N1),
            ended(_N1),
        ],
        calls(ToolCall("a", "t", '{"n":1}')),
    ),
    "text, then a call": Case(
        [text("Let me look."), added(_N1, 1), arguments('{"n":1}', index=1), finished(_N1, 1), ended(message("Let me look."), _N1)],
        calls(TextPart("Let me look."), ToolCall("a", "t", '{"n":1}')),
    ),
    "a call without places and numbers": Case(
        [
            added(_N1, None),
            sent("response.function_call_arguments.delta", item_id="fc1", delta='{"n"'),
            sent("response.function_call_arguments.delta", item_id="fc1", delta=":1}"),
            finished(_N1, None),
            ended(_N1),
        ],
        calls(ToolCall("a", "t", '{"n":1}')),
    ),
    "a call whose pieces name no item": Case(
        [
            added(_N1, None),
            sent("response.function_call_arguments.delta", delta='{"n":1'),
            sent("response.function_call_arguments.delta", delta="}"),
            ended(),
        ],
        calls(ToolCall("a", "t", '{"n":1}')),
    ),
    "a call that is named at its end": Case(
        [arguments('{"n":'), arguments("1}"), finished(_N1), ended(_N1)], calls(ToolCall("a", "t", '{"n":1}'))
    ),
    "a call named beside its whole arguments": Case(
        [sent("response.function_call_arguments.done", item_id="fc1", arguments="{}", name="t"), ended()],
        calls(ToolCall("fc1", "t", "{}")),
    ),
    "a call in its item alone": Case([finished(_N1), ended()], calls(ToolCall("a", "t", '{"n":1}'))),
    "a call in the whole response alone": Case([ended(_N1)], calls(ToolCall("a", "t", '{"n":1}'))),
    "a call without arguments": Case([added(called("a", "now")), ended()], calls(ToolCall("a", "now", ""))),
    "arguments as an object": Case([finished({**_N1, "arguments": {"n": 1}}), ended()], calls(ToolCall("a", "t", '{"n":1}'))),
    "arguments null": Case([finished({**_N1, "arguments": None}), ended()], calls(ToolCall("a", "t", ""))),
    "arguments that end otherwise": Case(
        [added(_N1), arguments('{"n": 1'), finished(_N1), ended(_N1)], calls(ToolCall("a", "t", '{"n":1}'))
    ),
    "no id of the call": Case([finished({**_N1, "call_id": None}), ended()], calls(ToolCall("fc1", "t", '{"n":1}'))),
    "two calls": Case(
        [added(_N1), arguments('{"n":1}'), finished(_N1), added(_N2, 1), arguments('{"n":2}', "fc2", 1), finished(_N2, 1), ended(_N1, _N2)],
        _N12,
    ),
    "two calls side by side": Case(
        [
            added(_N1),
            added(_N2, 1),
            arguments('{"n"', "fc2", 1),
            arguments('{"n":1'),
            arguments(":2}", "fc2", 1),
            arguments("}"),
            ended(_N1, _N2),
        ],
        _N12,
    ),
    "two calls at one place": Case(
        [added(_N1), added(_N2), arguments('{"n":1}'), arguments('{"n":2}', "fc2"), finished(_N1), finished(_N2), ended(_N1, _N2)],
        _N12,
    ),
    "two calls with new ids in each telling": Case(
        [
            added({**_N1, "id": "x1"}),
            arguments('{"n":1}', "x2", 0),
            finished({**_N1, "id": "x3"}),
            added({**_N2, "id": "x4"}, 1),
            arguments('{"n":2}', "x5", 1),
            finished({**_N2, "id": "x6"}, 1),
            ended({**_N1, "id": "x7"}, {**_N2, "id": "x8"}),
        ],
        _N12,
    ),
    "calls without ids, not streamed": Case(
        [finished({**_N1, "id": None}, None), finished({**_N2, "id": None}, None), ended()], _N12
    ),
    "calls without ids, told twice": Case(
        [finished({**_N1, "id": None}, None), finished({**_N1, "id": None}, None), finished({**_N2, "id": None}, None), ended()],
        _N12,
    ),
    "calls without ids, announced": Case(
        [
            added({**_N1, "id": None}, None),
            added({**_N2, "id": None}, None),
            finished({**_N2, "id": None}, None),
            finished({**_N1, "id": None}, None),
            ended(),
        ],
        _N12,
    ),
    "calls of two tools without ids": Case(
        [
            added({**_N1, "id": None}, None),
            finished({**_N2, "id": None, "name": "u"}, None),
            finished({**_N1, "id": None}, None),
            ended(),
        ],
        calls(ToolCall("a", "t", '{"n":1}'), ToolCall("b", "u", '{"n":2}')),
    ),
    "calls in another order in the whole response": Case(
        [
            added(_N1),
            arguments('{"n":1}'),
            added(_N2, 1),
            arguments('{"n":2}', "fc2", 1),
            ended({**_N2, "id": "x"}, {**_N1, "id": "y"}),
        ],
        _N12,
    ),
    "another call in the whole response": Case(
        [finished(_N1), ended({**_N2, "id": "x"})],
        calls(ToolCall("b", "t", '{"n":2}'), ToolCall("a", "t", '{"n":1}')),
    ),
    "arguments that come too late": Case(
        [finished(_N1), arguments("}"), ended()], calls(ToolCall("a", "t", '{"n":1}'))
    ),
    "other ids of calls in the whole response": Case(
        [finished(_N1), finished(_N2, 1), ended({**_N1, "id": "y", "call_id": "z"}, {**_N2, "id": "w", "call_id": "v"})], _N12
    ),
    "a place counted for each type": Case(
        [text("x"), added(_N1), arguments('{"n":1}'), finished(_N1, 1), added(_N2, 1), arguments('{"n":2}', "fc2", 1), ended(message("x"), _N1, _N2)],
        calls(TextPart("x"), *_N12.parts),
    ),
    "the same id of two calls": Case(
        [finished(_N1), finished({**_N2, "call_id": "a"}, 1), ended(_N1, {**_N2, "call_id": "a"})],
        calls(ToolCall("a", "t", '{"n":1}'), ToolCall("a", "t", '{"n":2}')),
    ),
    "cut by the cap": Case(
        [text("half "), ended(message("half ", status="incomplete"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}, usage=USAGE)],
        turn(TextPart("half "), finish="length", raw="max_output_tokens", usage=COUNTED),
    ),
    "FIN-10 cut, with nothing named": Case(
        [
            sent("response.output_text.delta", delta="half "),
            ended(status="incomplete", incomplete_details={"reason": "max_output_tokens"}, usage={"input_tokens": 7, "output_tokens": 3}),
        ],
        turn(TextPart("half "), finish="length", raw="max_output_tokens", usage=Usage(7, output_tokens=3, complete=True)),
    ),
    "cut, in an event that says completed": Case(
        [sent("response.completed", response={"id": "r1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [message("half ")]})],
        turn(TextPart("half "), finish="length", raw="max_output_tokens"),
    ),
    "cut, in a response that says completed": Case(
        [text("half "), sent("response.incomplete", response={"id": "r1", "status": "completed"})],
        turn(TextPart("half "), finish="length", raw="incomplete"),
    ),
    "completed, in a response that still goes on": Case(
        [text("Hello"), sent("response.completed", response={"id": "r1", "status": "in_progress"})], turn(TextPart("Hello"))
    ),
    "cut for an unknown reason": Case(
        [text("half "), ended(status="incomplete", incomplete_details={"reason": "Steered"})],
        turn(TextPart("half "), finish="length", raw="Steered"),
    ),
    "cut for no reason": Case(
        [text("half "), ended(status="incomplete", incomplete_details=None)],
        turn(TextPart("half "), finish="length", raw="incomplete"),
    ),
    "filtered": Case(
        [text("half "), ended(status="incomplete", incomplete_details={"reason": "content_filter"})],
        turn(TextPart("half "), finish="content_filter", raw="content_filter"),
    ),
    "a cut call": Case(
        [added(_N1), arguments('{"n'), ended({**_N1, "arguments": '{"n', "status": "incomplete"}, status="incomplete", incomplete_details={"reason": "max_output_tokens"})],
        turn(ToolCall("a", "t", '{"n'), finish="length", raw="max_output_tokens"),
    ),
    "a whole call in a cut reply": Case(
        [ended(_N1, status="incomplete", incomplete_details={"reason": "content_filter"})],
        turn(ToolCall("a", "t", '{"n":1}'), finish="length", raw="content_filter"),
    ),
    "a cut call in a reply that says completed": Case(
        [ended({**_N1, "status": "incomplete"})], turn(ToolCall("a", "t", '{"n":1}'), finish="length")
    ),
    "a character in two halves": Case(
        [
            'data: {"type":"response.output_text.delta","delta":"a\\ud83d"}\n\n',
            'data: {"type":"response.output_text.delta","delta":"\\ude00b"}\n\n',
            ended(message("a\U0001f600b")),
        ],
        turn(TextPart("a\U0001f600b")),
    ),
    "half a character": Case(
        [text("aX").replace("X", "\\ud83d").replace('"output_index": 0', '"logprobs": NaN'), text("b"), ended()],
        turn(TextPart("a\ufffdb")),
    ),
    "half a character in an item": Case(
        [finished(message("a")).replace('"a"', '"a\\ud83d"').replace("m1", "m\\udc00"), ended()], turn(TextPart("a\ufffd"))
    ),
    "half a character in arguments": Case(
        [finished({**_N1, "arguments": {"n": "N"}}).replace('"N"', '"\\ud83d"'), ended()],
        calls(ToolCall("a", "t", '{"n":"\ufffd"}')),
    ),
}  # fmt: skip

BODIES: dict[str, tuple[object, Turn]] = {
    "all there is": (
        {"id": "r1", "status": "completed", "error": None, "output": [thought("hm"), message("Hello")], "usage": USAGE},
        turn(ReasoningPart("hm"), TextPart("Hello"), usage=COUNTED),
    ),
    "calls": ({"id": "r1", "status": "completed", "output": [_N1, _N2]}, _N12),
    "cut": (
        {"id": "r1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [message("half ")]},
        turn(TextPart("half "), finish="length", raw="max_output_tokens"),
    ),
    "no status": ({"id": "r1", "output": [message("Hello")]}, turn(TextPart("Hello"))),
    "no output": ({"id": "r1", "status": "completed"}, turn()),
}  # fmt: skip
