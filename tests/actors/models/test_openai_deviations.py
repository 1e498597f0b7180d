"""Chat Completions replies of public failure reports, and the turn that each of them is. Names say which report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.openai._chat_finish import outranking
from actors.models.openai._chat_reply import ChatReply
from actors.models.servers import SERVERS
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ModelReplyError, ModelServerError
from protocol.model import Resume
from protocol.normalise import normalise
from protocol.outcome import outcome_of
from protocol.turns import OpaquePart, ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._cases import CALLED, HELLO, Case, called
from tests.actors.models._wire import DONE, HI, STOP, Heard, chunk, event, piece

HERE = Endpoint.of("http://127.0.0.1:8080/v1", "/chat/completions")
GOOGLE = {"google": {"thought_signature": "c2lnbg=="}}
SIGNED = '{"extra_content":{"google":{"thought_signature":"c2lnbg=="}}}'
CUT = "length"


def cut(*parts: Any, raw: str = CUT, usage: Usage | None = None) -> Turn:
    return Turn(parts, "length", raw, usage or Usage(), response="r1")


def entry(delta: dict[str, Any], **more: Any) -> str:
    """One event whose choice holds just this."""
    return event({"id": "r1", "choices": [{"index": 0, "delta": delta, **more}]})


STREAMS: dict[str, Case] = {
    "vllm 35705: the last chunk carries text": Case(
        [chunk({"content": "Hel"}), chunk({"content": "lo"}, finish="length"), DONE], cut(TextPart("Hello"))
    ),
    "hermes-agent 7680: another reason behind the cut": Case(
        [piece(index=0, id="a", name="t", arguments='{"n":'), chunk(finish="length"), CALLED],
        cut(ToolCall("a", "t", '{"n":')),
    ),
    "hermes-agent 7680: another reason before the cut": Case(
        [HI[0], chunk(finish="stop"), chunk(finish="length"), DONE], cut(TextPart("He"))
    ),
    "a router that rewrote the reason": Case(
        [HI[0], entry({}, finish_reason="stop", native_finish_reason="MAX_TOKENS"), DONE],
        cut(TextPart("He"), raw="MAX_TOKENS"),
    ),
    "a router's native reason alone is no end": Case(
        [entry({"content": "Hello"}, finish_reason=None, native_finish_reason="completed"), STOP], HELLO
    ),
    "camel 4222: done_reason beside stop": Case(
        [HI[0], entry({}, finish_reason="stop", done_reason="length"), DONE], cut(TextPart("He"))
    ),
    "camel 4222: done_reason in the choice alone": Case(
        [HI[0], entry({}, finish_reason=None, done_reason="length"), DONE], cut(TextPart("He"))
    ),
    "camel 4222: done_reason of the chunk": Case(
        [HI[0], event({"choices": [{"index": 0, "delta": {}}], "done": True, "done_reason": "length"}), DONE],
        cut(TextPart("He")),
    ),
    "usage in the choice": Case(
        [
            *HI[:2],
            entry({}, finish_reason="stop", usage={"prompt_tokens": 3, "completion_tokens": 2}),
            DONE,
        ],
        Turn((TextPart("Hello"),), "stop", "stop", Usage(3, output_tokens=2, complete=True), response="r1"),
    ),
    "LocalAI 1744: no field for the reason, zero usage on the way": Case(
        [
            event({
                "id": "r1",
                "choices": [{"delta": {"content": "Hello"}}],
                "usage": {"prompt_tokens": 0, "completion_tokens": 0},
            }),
            chunk(finish="stop", usage={"prompt_tokens": 4, "completion_tokens": 1}),
            DONE,
        ],
        Turn((TextPart("Hello"),), "stop", "stop", Usage(4, output_tokens=1, complete=True), response="r1"),
    ),
    "autogen 6465: a choice without a delta": Case(
        [event({"id": "r1", "choices": [{"index": 0, "finish_reason": None}]}), *HI], HELLO
    ),
    "continue 13225: indexes without ids": Case(
        [
            piece(index=0, name="s", arguments='{"q":"a"}'),
            piece(index=1, name="s", arguments='{"q":"b"}'),
            CALLED,
        ],
        called(ToolCall("", "s", '{"q":"a"}'), ToolCall("", "s", '{"q":"b"}')),
    ),
    "vllm 31437: the last chunk has neither id nor name": Case(
        [
            piece(index=0, id="a", name="t", arguments='{"n":'),
            piece(index=0, id=None, name=None, arguments="1}"),
            CALLED,
        ],
        called(ToolCall("a", "t", '{"n":1}')),
    ),
    "OpenMAIC 1556: a signature, and no index": Case(
        [piece(id="a", name="t", arguments="{}", extra_content=GOOGLE), STOP],
        Turn((ToolCall("a", "t", "{}"), OpaquePart("openai-chat", SIGNED, "a")), "stop", "stop", response="r1"),
    ),
    "a signature of a call without an id": Case(
        [
            piece(index=0, name="t", arguments="{}", extra_content=GOOGLE),
            piece(index=1, name="u", arguments="{}"),
            CALLED,
        ],
        called(ToolCall("call_0", "t", "{}"), OpaquePart("openai-chat", SIGNED, "call_0"), ToolCall("", "u", "{}")),
    ),
    "signatures of calls with one id": Case(
        [
            piece(index=0, id="call_1", name="t", arguments="{}"),
            piece(index=1, id="call_1", name="t", arguments="{}", extra_content=GOOGLE),
            CALLED,
        ],
        called(
            ToolCall("call_1", "t", "{}"),
            ToolCall("call_1_", "t", "{}", vendor_id="call_1"),
            OpaquePart("openai-chat", SIGNED, "call_1_"),
        ),
    ),
    "a field inside the function": Case(
        [
            chunk({"tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}", "signature": "s"}}]}),
            CALLED,
        ],
        called(ToolCall("a", "t", "{}"), OpaquePart("openai-chat", '{"function":{"signature":"s"}}', "a")),
    ),
    "a call without the object for its function": Case(
        [chunk({"tool_calls": [{"id": "a", "name": "t", "arguments": "{}", "sign": "s"}]}), CALLED],
        called(ToolCall("a", "t", "{}"), OpaquePart("openai-chat", '{"sign":"s"}', "a")),
    ),
    "null beside a call is nothing": Case(
        [piece(id="a", name="t", arguments="{}", extra_content=None, custom=None), CALLED],
        called(ToolCall("a", "t", "{}")),
    ),
    "a signature of the message": Case(
        [chunk({"content": "Hello", "extra_content": GOOGLE}), STOP],
        Turn((OpaquePart("openai-chat", SIGNED), TextPart("Hello")), "stop", "stop", response="r1"),
    ),
    "OpenRouter: details in pieces": Case(
        [
            chunk({"reasoning": "Let", "reasoning_details": [{"type": "reasoning.text", "text": "Let", "index": 0}]}),
            chunk({
                "reasoning": " me",
                "reasoning_details": [{"type": "reasoning.text", "text": " me", "index": 0, "signature": None}],
            }),
            chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "s", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "see", "index": 2}]}),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}, 7]}),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "y", "index": 1}]}),
            *HI,
        ],
        Turn(
            (
                OpaquePart(
                    "openai-chat",
                    '{"reasoning_details":[{"type":"reasoning.text","text":"Let me","index":0,"signature":"s"},'
                    '{"type":"reasoning.text","text":"see","index":2},'
                    '{"type":"reasoning.encrypted","data":"x","index":1},'
                    '{"type":"reasoning.encrypted","data":"y","index":1}]}',
                ),
                ReasoningPart("Let mesee"),
                TextPart("Hello"),
            ),
            "stop",
            "stop",
            response="r1",
        ),
    ),
    "OpenRouter: details without the plain field": Case(
        [chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}), *HI],
        Turn(
            (
                OpaquePart("openai-chat", '{"reasoning_details":[{"type":"reasoning.summary","summary":"Hm."}]}'),
                ReasoningPart("Hm."),
                TextPart("Hello"),
            ),
            "stop",
            "stop",
            response="r1",
        ),
    ),
}


def read(*chunks: str | bytes, **settings: Any) -> tuple[ChatReply, Heard]:
    reader, decoder, heard = ChatReply(HERE, **settings), EventStreamDecoder(), Heard()
    for data in chunks:
        for made in decoder.feed(data.encode() if isinstance(data, str) else data):
            for model_event in reader.feed(made):
                heard(model_event)
    return reader, heard


@pytest.mark.parametrize("name", STREAMS)
def test_a_deviation_is_read_into_what_was_meant(name: str) -> None:
    """Streamed; and what is reported as it comes is what the turn holds."""
    case = STREAMS[name]
    reader, heard = read(*case.chunks)
    turn = reader.finish()

    assert case.turn == turn
    assert turn.text == heard.text
    assert "".join([part.text for part in turn.parts if isinstance(part, ReasoningPart)]) == heard.reasoning
    assert [call.name for call in turn.calls] == [name for name, _ in heard.calls]


def test_a_whole_body_is_read_likewise() -> None:
    """What a server adds to a call is kept from a reply that was not streamed, too, and its cut outranks."""
    function = {"name": "t", "arguments": '{"n":'}
    message = {"content": None, "tool_calls": [{"id": "a", "function": function, "extra_content": GOOGLE}]}
    choice = {"finish_reason": "tool_calls", "native_finish_reason": "max_tokens", "message": message}
    reader = ChatReply(HERE)
    reader.feed_body(json.dumps({"id": "r1", "choices": [choice]}).encode())
    expected = cut(ToolCall("a", "t", '{"n":'), OpaquePart("openai-chat", SIGNED, "a"), raw="max_tokens")

    assert expected == reader.finish()


def test_vllm_53269_a_cut_that_was_renamed_is_found_by_its_length() -> None:
    """`tool_calls` beside arguments that the cap cut: no call of it runs."""
    usage = {"prompt_tokens": 5, "completion_tokens": 16}
    reader, _ = read(piece(index=0, id="a", name="t", arguments='{"path":"a'), chunk(finish="tool_calls", usage=usage))
    turn, _ = normalise(reader.finish(), knows_call=lambda _: False, max_calls=9)

    assert outcome_of(turn, max_tokens=16).cut
    assert not outcome_of(turn, max_tokens=17).cut


def test_gcli2api_406_arguments_that_belong_to_nobody_run_nothing() -> None:
    """Two objects under one index, the second without a name: the model is told that they are malformed."""
    reader, _ = read(piece(index=0, id="a", name="t", arguments='{"n":1}'), piece(index=0, arguments='{"n":2}'), CALLED)
    turn, arguments = normalise(reader.finish(), knows_call=lambda _: False, max_calls=9)

    assert ['{"n":1}{"n":2}'] == [call.malformed for call in turn.calls]
    assert {"a": {}} == arguments


def test_the_part_of_a_call_follows_its_call() -> None:
    """A call whose id is taken gets another; what belongs to it goes with it, and is dropped with it."""
    reader, _ = read(
        piece(index=0, id="a", name="t", arguments="{}", extra_content=GOOGLE),
        piece(index=1, id="b", name="t", arguments="{}", extra_content=GOOGLE),
        CALLED,
    )
    turn, _ = normalise(reader.finish(), knows_call=lambda call: call == "a", max_calls=1)
    [call] = turn.calls

    assert ("a", 1) == (call.vendor_id, turn.dropped_calls)
    assert [call.id] == [part.call for part in turn.parts if isinstance(part, OpaquePart)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (event({"choices": [], "error": {"message": "provider down", "code": 502}}), "provider down"),
        (
            event({
                "error": {"message": "both", "code": 502},
                "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
            }),
            "both",
        ),
    ],
)
def test_omniroute_8210_an_error_beside_choices_comes_first(data: str, said: str) -> None:
    """A stream with status 200 that reports an error is no empty success."""
    with pytest.raises(ModelServerError, match=said) as caught:
        read(HI[0], data)

    assert (502, True) == (caught.value.status, caught.value.retryable)


def test_hermes_agent_42314_a_drop_is_not_a_cut() -> None:
    """Without a reason and a sentinel nothing says that a limit was reached."""
    reader, _ = read(piece(index=0, id="a", name="t", arguments='{"path":"a'))
    with pytest.raises(ModelReplyError, match="ended in the middle"):
        reader.finish()

    assert (None, "lost") == (reader.lost().finish, reader.lost().end)


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["", "", "stop"], "stop"),
        (["completed", "", "stop"], "stop"),
        (["", "stop", "tool_calls"], "tool_calls"),
        (["max_output_tokens", "", "tool_calls"], "max_output_tokens"),
        (["", "model_length", "stop"], "model_length"),
        ([], ""),
    ],
)
def test_the_reason_that_counts(reasons: list[str], said: str) -> None:
    """A cut outranks; otherwise the last that was told."""
    assert said == outranking(reasons)


EXACT = Resume((TextPart("The cat"),), "exact_prefix")


@pytest.mark.parametrize(
    ("texts", "rest"),
    [
        (["The cat", " sat."], " sat."),
        (["The", " c", "at sat."], " sat."),
        (["The cat sat."], " sat."),
        ([" sat."], " sat."),
        (["The", " dog sat."], "The dog sat."),
        (["The"], "The"),
        (["The cat"], ""),
        ([" sat. The cat"], " sat. The cat"),
    ],
)
def test_a_repeated_beginning_is_taken_away(texts: list[str], rest: str) -> None:
    """Mistral repeats what it continues; a text that goes another way, or ends before, is let through whole."""
    reader, heard = read(*[chunk({"content": text}) for text in texts], STOP, server=SERVERS["mistral"], resume=EXACT)

    assert (rest, rest) == (reader.finish().text, heard.text)


def test_another_beginning_is_not_held_back() -> None:
    """What cannot be the repetition any more is shown at once."""
    _, heard = read(chunk({"content": "Thy"}), server=SERVERS["mistral"], resume=EXACT)

    assert "Thy" == heard.text


def test_nothing_is_taken_away_elsewhere() -> None:
    """Not from servers that do not repeat, not from a reply to a question, not from one that was asked to go on."""
    asked = Resume((TextPart("The cat"),), "user_turn")
    told = []
    for name, resume in (("vllm", EXACT), ("mistral", None), ("mistral", asked)):
        reader, _ = read(chunk({"content": "The cat"}), STOP, server=SERVERS[name], resume=resume)
        told.append(reader.finish().text)

    assert ["The cat"] * 3 == told


def test_a_repetition_that_broke_off_is_no_text() -> None:
    """What had come of it when the stream was lost is not new."""
    reader, heard = read(chunk({"content": "The c"}), server=SERVERS["mistral"], resume=EXACT)

    assert ("", "") == (reader.lost().text, heard.text)


def test_vllm_38749_continued_text_behind_a_reasoning_parser_is_text() -> None:
    """Only where a text is continued exactly, on the server that misplaces it."""
    stream = [chunk({"reasoning": " sat"}), chunk({"reasoning_content": " down"}), chunk({"content": "."}), STOP]
    continued, heard = read(*stream, server=SERVERS["vllm"], resume=EXACT)
    plain, _ = read(*stream, server=SERVERS["vllm"])
    elsewhere, _ = read(*stream, server=SERVERS["llama.cpp"], resume=EXACT)

    assert ((TextPart(" sat down."),), " sat down.", "") == (continued.finish().parts, heard.text, heard.reasoning)
    assert (ReasoningPart(" sat down"), TextPart(".")) == plain.finish().parts == elsewhere.finish().parts
