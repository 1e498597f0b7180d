"""Messages replies: what each of them is read into."""

from __future__ import annotations

import json

import pytest

from actors.models.anthropic._messages_reply import MessagesReply, finish_of
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ModelError, ModelRateLimited, ModelReplyError, ModelServerError
from protocol.model import CallDelta
from protocol.normalise import normalise
from protocol.turns import ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._anthropic_bodies import BODIES
from tests.actors.models._anthropic_cases import SEARCH, STREAMS, opaque
from tests.actors.models._anthropic_wire import END, HI, delta, opened, sent, start, stop, text, thinking, tool
from tests.actors.models._wire import Heard, event

HERE = Endpoint.of("http://127.0.0.1:8080", "/v1/messages", secrets=["sk-very-secret"])
ADDRESS = "http://127.0.0.1:8080/v1/messages"


def feed(*chunks: str | bytes) -> tuple[MessagesReply, Heard]:
    reader, decoder, heard = MessagesReply(HERE), EventStreamDecoder(), Heard()
    for data in chunks:
        for made in decoder.feed(data.encode() if isinstance(data, str) else data):
            for model_event in reader.feed(made):
                heard(model_event)
    return reader, heard


def check(turn: Turn, heard: Heard) -> None:
    """The deltas, put together, are the turn."""
    assert turn.text == heard.text
    assert "".join(part.text for part in turn.parts if isinstance(part, ReasoningPart)) == heard.reasoning
    assert [(call.name, call.arguments) for call in turn.calls] == heard.calls


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_into_its_turn(name: str) -> None:
    """Every known form and deviation comes to the turn that was meant, and is reported as it comes."""
    case = STREAMS[name]
    reader, heard = feed(*case.chunks)

    assert case.turn == reader.finish()
    check(case.turn, heard)


@pytest.mark.parametrize("name", STREAMS)
def test_the_split_of_a_stream_makes_no_difference(name: str) -> None:
    """Byte by byte, or all at once."""
    case = STREAMS[name]
    stream = b"".join([data.encode() if isinstance(data, str) else data for data in case.chunks])
    single, _ = feed(*[stream[index : index + 1] for index in range(len(stream))])
    whole, _ = feed(stream)

    assert case.turn == single.finish()
    assert case.turn == whole.finish()


@pytest.mark.parametrize("name", BODIES)
def test_a_whole_body_is_read_into_its_turn(name: str) -> None:
    """A reply that was not streamed comes to the same turns, and its content is reported too."""
    body, turn = BODIES[name]
    reader, heard = MessagesReply(HERE), Heard()
    for made in reader.feed_body(json.dumps(body).encode()):
        heard(made)

    assert turn == reader.finish()
    check(turn, heard)


def test_pieces_are_reported_as_they_come() -> None:
    """Neither text nor arguments are held back; the first delta of a call carries its name."""
    _, heard = feed(start(), opened(0, "tool_use", id="a", name="t", input={}))

    assert [CallDelta(0, "", "t")] == heard.events

    _, heard = feed(start(), opened(0, "text", text=""), delta(0, "text_delta", text="He"))

    assert "He" == heard.text


def test_a_cut_call_is_malformed_and_nothing_else() -> None:
    """What the limit left of its input is no object: the raw text is kept, and nothing passes for arguments."""
    reader, _ = feed(start(), tool(0, "a", "write", '{"path": "a", "te'), stop("max_tokens"))
    turn, arguments = normalise(reader.finish(), knows_call=lambda _: False, max_calls=9)

    assert (ToolCall("a", "write", "{}", '{"path": "a", "te'),) == turn.calls
    assert {"a": {}} == arguments


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "paused"),
        ("compaction", "paused"),
        ("refusal", "content_filter"),
        ("Brand_New", "other"),
    ],
)
def test_stop_reasons_are_put_in_common_words(reason: str, finish: str) -> None:
    """Each is classified, and kept verbatim; an unknown one is `other`, and none is none."""
    turn = feed(*HI[:2], stop(reason))[0].finish()

    assert (finish, reason) == (turn.finish, turn.raw_finish)
    assert finish_of(None) is None


def test_a_later_delta_without_a_reason_takes_none_away() -> None:
    """The end of a message may be told more than once; what is null is not told."""
    reader, _ = feed(*HI[:2], stop("max_tokens").removesuffix(END), stop(None, output_tokens=4))

    assert ("max_tokens", 4) == (reader.finish().raw_finish, reader.finish().usage.output_tokens)


@pytest.mark.parametrize(
    "chunks",
    [
        [delta(0, "input_json_delta", partial_json='{"n":1}')],
        [text(0, "Hello"), delta(0, "input_json_delta", partial_json='{"n":1}')],
        [tool(0, "a", "t", "{}"), delta(1, "input_json_delta", partial_json='{"n":1}')],
        [tool(0, "a", "", '{"n":1}')],
    ],
)
def test_a_piece_of_no_call_is_an_error(chunks: list[str]) -> None:
    """No call gets another's arguments, none has an empty name."""
    with pytest.raises(ModelReplyError, match=r"tool call .*n.*:1"):
        feed(start(), *chunks, stop("tool_use"))[0].finish()


def test_a_stream_without_a_positive_end_is_lost() -> None:
    """What came is kept as partial, and never passes for an answer; half an opaque block is not kept."""
    reader, _ = feed(
        start(input_tokens=3, output_tokens=1),
        thinking(0, "hm", signature="s"),
        text(1, "He"),
        tool(2, "srv_1", "web_search", '{"query":"café"}', kind="server_tool_use"),
        opened(3, "brand_new", data="a"),
        opened(4, "tool_use", id="b", name=""),
        opened(5, "tool_use", id="a", name="t"),
        delta(5, "input_json_delta", partial_json='{"n":'),
    )
    parts = (
        ReasoningPart("hm", "anthropic-messages:s"),
        TextPart("He"),
        opaque(SEARCH),
        ToolCall("a", "t", '{"n":'),
    )
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the stream ended in the middle") as caught:
        reader.finish()

    assert caught.value.retryable
    assert Turn(parts, usage=Usage(3, output_tokens=1), end="lost", response="m1") == reader.lost()


def test_a_sentinel_alone_is_no_end() -> None:
    """`[DONE]` is not of this format: it ends the reading, and not the turn."""
    reader, _ = feed(*HI[:2], "data: [DONE]\n\n")

    assert (True, False) == (reader.done, reader.ended)


@pytest.mark.parametrize(
    ("data", "kind", "status", "retryable", "said"),
    [
        (sent("error", error={"type": "overloaded_error", "message": "Overloaded"}), ModelServerError, 529, True, "Overloaded"),
        (sent("error", error={"type": "rate_limit_error", "message": "slow"}), ModelRateLimited, 429, True, "slow"),
        (sent("error", error={"type": "api_error", "message": "broke"}), ModelServerError, 500, True, "broke"),
        (event({"error": {"code": 503, "message": "Loading", "type": "unavailable_error"}}), ModelServerError, 503, True, "Loading"),
        ('event: error\ndata: {"message":"oh no"}\n\n', ModelServerError, 500, False, "oh no"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_that_error(
    data: str, kind: type[ModelServerError], status: int, retryable: bool, said: str
) -> None:
    """Classified like an HTTP status, in both shapes, with the server's own words."""
    with pytest.raises(kind, match=ADDRESS) as caught:
        feed(*HI[:2], data)

    assert (status, retryable) == (caught.value.status, caught.value.retryable)
    assert said in str(caught.value)


@pytest.mark.parametrize("data", ["{malformed", "3", "[" * 100_000])
def test_what_is_no_json_object_is_an_error_that_shows_it(data: str) -> None:
    """The error names the address and the beginning of what came."""
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the reply is no JSON object: [{{3\[]") as caught:
        feed(HI[0], f"data: {data}\n\n")

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b'{"choices":[]}', b'{"content":"Hello"}', b"[]", b'"x"', b"{"])
def test_a_whole_body_without_content_is_an_error(body: bytes) -> None:
    """A JSON body that is no message is not an empty answer."""
    with pytest.raises(ModelReplyError, match=ADDRESS):
        MessagesReply(HERE).feed_body(body)


def test_errors_show_no_secret() -> None:
    """A server that echoes the key does not bring it into an error."""
    with pytest.raises(ModelError) as caught:
        feed(sent("error", error={"type": "authentication_error", "message": "bad key sk-very-secret"}))

    assert "bad key ***" in str(caught.value)
