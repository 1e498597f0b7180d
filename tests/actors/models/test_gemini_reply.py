"""generateContent replies: what each of them is read into."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.gemini._generate_reply import GenerateReply, finish_of
from actors.models.gemini._generate_request import encode_request
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ModelError, ModelRateLimited, ModelRefused, ModelReplyError, ModelServerError
from protocol.model import ModelRequest, Profile
from protocol.normalise import normalise
from protocol.turns import AssistantMessage, ReasoningPart, TextPart, ToolCall, Turn, Unfinished
from protocol.usage import Usage
from tests.actors.models._gemini import call, chunk, kept, reply, text, thought
from tests.actors.models._gemini_cases import CASES, turned
from tests.actors.models._wire import Heard, event

HERE = Endpoint.of("http://127.0.0.1:8080", "/v1beta/models/m:streamGenerateContent?alt=sse", secrets=["very-secret"])
ADDRESS = "http://127.0.0.1:8080/v1beta/models/m:streamGenerateContent"


def feed(*chunks: str | bytes) -> tuple[GenerateReply, Heard]:
    reader, decoder, heard = GenerateReply(HERE), EventStreamDecoder(), Heard()
    for data in chunks:
        for made in decoder.feed(data.encode() if isinstance(data, str) else data):
            for model_event in reader.feed(made):
                heard(model_event)
    return reader, heard


def feed_body(body: Any) -> tuple[GenerateReply, Heard]:
    reader, heard = GenerateReply(HERE), Heard()
    for model_event in reader.feed_body(body if isinstance(body, bytes) else json.dumps(body).encode()):
        heard(model_event)
    return reader, heard


def check(turn: Turn, heard: Heard) -> None:
    """The deltas, put together, are the turn."""
    assert "".join(part.text for part in turn.parts if isinstance(part, TextPart)) == heard.text
    assert "".join(part.text for part in turn.parts if isinstance(part, ReasoningPart)) == heard.reasoning
    assert [(made.name, made.arguments) for made in turn.calls] == heard.calls


@pytest.mark.parametrize("name", CASES)
def test_a_reply_is_read_into_its_turn(name: str) -> None:
    """Streamed, byte by byte or all at once, or as a list of the same objects; the deltas are the turn."""
    chunks, turn = CASES[name]
    stream = "".join([event(made) for made in chunks]).encode()
    for reader, heard in (
        feed(stream),
        feed(*[stream[index : index + 1] for index in range(len(stream))]),
        feed(stream.replace(b"\n", b"\r\n"), b"data: [DONE]\r\n\r\n"),
        feed_body(chunks),
    ):
        assert turn == reader.finish()
        check(turn, heard)


def test_a_whole_body_is_a_reply() -> None:
    """One object, as servers send that do not stream."""
    reader, heard = feed_body(reply(thought("hm"), text("Hello"), finish="STOP"))

    assert turned(ReasoningPart("hm"), TextPart("Hello")) == reader.finish()
    assert ("Hello", "hm", True) == (heard.text, heard.reasoning, reader.done)


@pytest.mark.parametrize("name", CASES)
def test_what_was_read_goes_back_as_it_came(name: str) -> None:
    """Every part but empty text and unsigned thoughts, in order, with its signature and its vendor's id."""
    chunks, turn = CASES[name]
    read, _ = normalise(turn, knows_call=lambda _: False, max_calls=128)
    request = ModelRequest(messages=[AssistantMessage(read.parts)])
    contents = json.loads(encode_request(request, profile=Profile()))["contents"]
    came = [
        part
        for made in chunks
        for candidate in made.get("candidates", [])
        if not candidate.get("index")
        for part in candidate.get("content", {}).get("parts", [])
    ]
    if name == "arguments in pieces":
        came = [call("t", json.loads(turn.calls[0].arguments), id="g", signature="S"), call("u")]

    assert _joined(came) == _joined(contents[0]["parts"] if contents else [])


def _joined(parts: list[Any]) -> list[Any]:
    """Parts, with text that nothing came with joined, and without what need not be sent."""
    made: list[Any] = []
    for part in parts:
        if not isinstance(part, dict) or not part or (part.get("thought") and "thoughtSignature" not in part):
            continue
        if isinstance(part.get("functionCall"), dict):
            arguments = part["functionCall"].get("args")
            args = arguments if isinstance(arguments, dict) else {}
            made.append({**part, "functionCall": {**part["functionCall"], "args": args}})
        elif part.keys() <= {"text", "thought"} and made and made[-1].keys() == {"text"}:
            made[-1] = {"text": made[-1]["text"] + part["text"]}
        else:
            made.append(dict(part))
    return made


def test_signatures_survive_calls_without_ids() -> None:
    """Each goes back with its own call, also where the calls beyond the limit were cut off."""
    parts = [call("t", {"n": number}, signature=f"S{number}") for number in range(4)]
    turn, _ = normalise(feed(chunk(*parts, finish="STOP"))[0].finish(), knows_call=lambda _: False, max_calls=3)
    request = ModelRequest(messages=[AssistantMessage(turn.parts)])

    assert parts[:3] == json.loads(encode_request(request, profile=Profile()))["contents"][0]["parts"]
    assert 3 == len({made.id for made in turn.calls})


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "malformed"),
        ("UNEXPECTED_TOOL_CALL", "malformed"),
        ("FUNCTION_CALL", "tool_calls"),
        ("max_tokens", "length"),
        ("OTHER", "other"),
        ("TOO_MANY_TOOL_CALLS", "other"),
        ("Brand_New", "other"),
    ],
)
def test_finish_reasons_are_put_in_common_words(reason: str, finish: str) -> None:
    """An unknown reason is `other`, and kept verbatim."""
    turn = feed(chunk(text("a"), finish=reason))[0].finish()

    assert (finish, reason) == (turn.finish, turn.raw_finish)
    assert finish == finish_of(reason)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ([{}], Usage()),
        ([{"promptTokenCount": 0, "candidatesTokenCount": 0}], Usage(0, output_tokens=0, complete=True)),
        (
            [{"promptTokenCount": 9, "candidatesTokenCount": 1}, {"promptTokenCount": 9, "candidatesTokenCount": 4}],
            Usage(9, output_tokens=4, complete=True),
        ),
        (
            [
                {
                    "promptTokenCount": 9,
                    "cachedContentTokenCount": 7,
                    "candidatesTokenCount": 4,
                    "thoughtsTokenCount": 3,
                    "toolUsePromptTokenCount": 5,
                    "totalTokenCount": 21,
                }
            ],
            Usage(7, 7, None, 7, 3, complete=True),
        ),
        ([{"promptTokenCount": 9, "totalTokenCount": 9}], Usage(9, output_tokens=0, complete=True)),
        (
            [{"promptTokenCount": 9, "thoughtsTokenCount": 3, "totalTokenCount": 12}],
            Usage(9, output_tokens=3, reasoning_tokens=3, complete=True),
        ),
        (
            [{"promptTokenCount": 9, "toolUsePromptTokenCount": 5, "totalTokenCount": 16}],
            Usage(14, output_tokens=2, complete=True),
        ),
        ([{"promptTokenCount": 9}], Usage(9)),
        ([{"thoughtsTokenCount": 3}], Usage(output_tokens=3, reasoning_tokens=3)),
        ([{"promptTokenCount": "9", "candidatesTokenCount": -1}], Usage()),
        ([{"promptTokenCount": 3, "cachedContentTokenCount": 7}], Usage(0, 7)),
        ([{"promptTokenCount": 9, "cachedContentTokenCount": 7}, {"promptTokenCount": 9}], Usage(2, 7)),
    ],
)
def test_usage_is_in_classes_that_do_not_overlap(reported: list[dict[str, Any]], usage: Usage) -> None:
    """Each report counts from the beginning; cached input is in the prompt, thoughts are not in the candidates."""
    chunks = [chunk(text("a"), usageMetadata=one) for one in reported]

    assert usage == feed(*chunks, chunk(finish="STOP"))[0].finish().usage


@pytest.mark.parametrize("body", [False, True])
def test_a_reply_without_a_positive_end_is_lost(body: bool) -> None:
    """What came is kept as partial, and never passes for an answer; `[DONE]` alone is no end."""
    made = reply(text("He"), call("t", {"n": 1}))
    reader, _ = feed_body(made) if body else feed(event(made), "data: [DONE]\n\n")
    with pytest.raises(ModelReplyError, match=f"{ADDRESS}: the reply ended without a finish reason") as caught:
        reader.finish()

    assert caught.value.retryable
    assert not reader.ended
    assert Turn((TextPart("He"), ToolCall("", "t", '{"n":1}')), end="lost", response="r1") == reader.lost()


@pytest.mark.parametrize(
    "made",
    [
        reply(text("a"), finish="FINISH_REASON_UNSPECIFIED"),
        {"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}},
    ],
)
def test_a_word_for_no_reason_is_no_end(made: dict[str, Any]) -> None:
    """The enumerations have a member that says nothing."""
    with pytest.raises(ModelReplyError, match="without a finish reason"):
        feed(event(made))[0].finish()


def test_a_call_that_was_not_finished_has_no_arguments() -> None:
    """Its text is no JSON: nobody runs it, whatever the finish reason says."""
    piece = {"name": "t", "partialArgs": [{"jsonPath": "$.n", "numberValue": 1}], "willContinue": True}
    turn = feed(chunk({"functionCall": piece}, finish="STOP"))[0].finish()
    [made] = normalise(turn, knows_call=lambda _: False, max_calls=128)[0].calls

    assert ("t", "{}", '{"n":1') == (made.name, made.arguments, made.malformed)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"functionCall": {"args": {"n": 1}}}, "it has no name"),
        ({"functionCall": {"name": "", "partialArgs": [1]}}, "it has no name"),
        ({"functionCall": {"name": "t", "partialArgs": [{"jsonPath": "n", "numberValue": 1}]}}, "'n', which is none"),
        ({"functionCall": {"name": "t", "partialArgs": [{"jsonPath": "$", "numberValue": 1}]}}, "'$', which is none"),
        ({"functionCall": {"name": "t", "partialArgs": [{"jsonPath": "$.a[", "boolValue": 1}]}}, "which is none"),
        ({"functionCall": {"name": "t", "partialArgs": [{"jsonPath": "$.a[7]", "boolValue": 1}]}}, "can stand"),
        (
            {"functionCall": {"name": "t", "args": {"a": 1}, "partialArgs": [{"jsonPath": "$.a.b", "boolValue": 1}]}},
            "can",
        ),
    ],
)
def test_a_broken_call_is_an_error(part: dict[str, Any], said: str) -> None:
    """What has no name or no place is not guessed at."""
    with pytest.raises(ModelReplyError, match=r"the reply holds a broken function call: ") as caught:
        feed(chunk(part))

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "kind", "status", "retryable", "said"),
    [
        (event({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}), ModelServerError, 503, True, "busy"),
        (event([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]), ModelRateLimited, 429, True, "exhausted"),
        (event({"error": {"status": "INVALID_ARGUMENT", "message": "no"}}), ModelRefused, 400, False, "no"),
        ('event: error\ndata: {"message":"oh no"}\n\n', ModelServerError, 500, False, "oh no"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_that_error(
    data: str, kind: type[ModelRefused], status: int, retryable: bool, said: str
) -> None:
    """Classified like an HTTP status, with the server's own words."""
    with pytest.raises(kind) as caught:
        feed(chunk(text("He")), data)

    assert (status, retryable) == (caught.value.status, caught.value.retryable)
    assert said in str(caught.value)


@pytest.mark.parametrize("data", ["{malformed", "3", "[3]", '"x"', "[" * 100_000])
def test_what_is_no_json_object_is_an_error_that_shows_it(data: str) -> None:
    """The error names the address and the beginning of what came."""
    with pytest.raises(ModelReplyError, match=f"{ADDRESS}: the reply is no JSON object: ") as caught:
        feed(chunk(text("He")), f"data: {data}\n\n")

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"object":"list"}', b'{"candidates":[]}'])
def test_a_body_without_a_candidate_is_an_error(body: bytes) -> None:
    """A JSON body that is no reply is not an empty answer."""
    with pytest.raises(ModelReplyError, match=f"{ADDRESS}: the reply holds no candidates") as caught:
        feed_body(body)

    assert not caught.value.retryable


def test_lone_surrogates_are_replaced() -> None:
    """In whatever place they came."""
    data = event(reply(text("a"), call("t"), {"x": "b"}, finish="STOP")).replace('"a"', '"\\ud800"')
    data = data.replace('"t"', '"\\udc00"').replace('"b"', '"\\udc00"')
    turn = feed(data)[0].finish()

    assert (TextPart("\ufffd"), ToolCall("", "\ufffd", "{}"), kept('{"x":"\ufffd"}')) == turn.parts


KEYS = st.sampled_from(
    ["candidates", "index", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args"]
    + ["id", "partialArgs", "willContinue", "jsonPath", "stringValue", "finishReason", "continuationToken", "error"]
    + ["promptFeedback", "blockReason", "usageMetadata", "promptTokenCount", "responseId", "inlineData"]
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 600),
        st.floats(),
        st.sampled_from(["", "x", "{}", "STOP", "$.a", "$.a[0]", "\ud800"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)
PARTS = st.lists(st.one_of(ANYTHING, st.fixed_dictionaries({"functionCall": ANYTHING})), max_size=3)
CHUNKS = st.one_of(
    ANYTHING,
    st.builds(
        lambda parts, finish: {"candidates": [{"content": {"parts": parts}, "finishReason": finish}]}, PARTS, ANYTHING
    ),
)


@pytest.mark.slow
@given(st.lists(CHUNKS, max_size=3), CHUNKS)
def test_nothing_that_is_json_crashes(chunks: list[Any], body: Any) -> None:
    """A reply of whatever shape is a turn that can be sent back, or a `ModelError`."""
    streamed = [f"data: {json.dumps(made)}\n\n" for made in chunks]
    sent: list[str] = []
    for whole in (False, True):
        try:
            reader, _ = feed_body(body) if whole else feed(*streamed, chunk(finish="STOP"))
            turn = reader.finish()
        except ModelError as error:
            turn = Turn(response=str(error))
        turn, _ = normalise(turn, knows_call=lambda _: False, max_calls=128)
        request = ModelRequest(messages=[AssistantMessage(turn.parts)])
        sent.append(encode_request(request, profile=Profile()).decode())

    assert 2 == len(sent)


def test_errors_show_no_secret() -> None:
    """A server that echoes the key does not bring it into an error."""
    with pytest.raises(ModelError) as caught:
        feed(event({"error": {"message": "bad key very-secret", "code": 500}}))

    assert "bad key ***" in str(caught.value)


def test_a_reply_that_was_cut_keeps_its_token() -> None:
    """What was lost after a checkpoint can be resumed from it by hand."""
    made = reply(text("a"))
    made["candidates"][0]["continuationToken"] = "T"
    lost = feed(event(made))[0].lost()

    assert attrs.evolve(lost, unfinished=None, end="complete") == Turn((TextPart("a"),), response="r1")
    assert Unfinished("T") == lost.unfinished
