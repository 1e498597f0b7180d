"""Chat Completions replies: what each of them is read into."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.models.openai._chat_finish import finish_of
from actors.models.openai._chat_reply import ChatReply
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ModelError, ModelRateLimited, ModelReplyError, ModelServerError
from protocol.turns import ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._cases import BODIES, STREAMS
from tests.actors.models._wire import DONE, HI, Heard, chunk, event, piece, pieces

HERE = Endpoint.of("http://127.0.0.1:8080/v1", "/chat/completions", secrets=["sk-very-secret"])
ADDRESS = "http://127.0.0.1:8080/v1/chat/completions"


def feed(*chunks: str | bytes) -> tuple[ChatReply, Heard]:
    reader, decoder, heard = ChatReply(HERE), EventStreamDecoder(), Heard()
    for data in chunks:
        for made in decoder.feed(data.encode() if isinstance(data, str) else data):
            for model_event in reader.feed(made):
                heard(model_event)
    return reader, heard


def check(turn: Turn, heard: Heard) -> None:
    """The deltas, put together, are the turn."""
    assert turn.text == heard.text
    assert "".join(part.text for part in turn.parts if isinstance(part, ReasoningPart)) == heard.reasoning
    assert [call.name for call in turn.calls] == [name for name, _ in heard.calls]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_into_its_turn(name: str) -> None:
    """Every known deviation comes to the turn that was meant."""
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
    reader, heard = ChatReply(HERE), Heard()
    for made in reader.feed_body(json.dumps(body).encode()):
        heard(made)

    assert turn == reader.finish()
    check(turn, heard)


def test_pieces_of_arguments_are_reported_as_they_come() -> None:
    """The first delta of a call carries its name, whole; arguments are not held back."""
    reader, heard = feed(
        piece(index=0, id="a", name="sea"),
        piece(index=0, name="rch"),
        piece(index=0, arguments='{"q":'),
        piece(index=0, arguments='"x"}'),
        piece(index=1, id="b", name="now"),
    )

    assert [("search", '{"q":"x"}')] == heard.calls

    _, heard = feed(piece(index=0, id="b", name="now"), chunk(finish="tool_calls"))

    assert [("now", "")] == heard.calls
    assert not reader.ended


@pytest.mark.slow
@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "get_x"]),
            st.dictionaries(st.text(max_size=3), st.one_of(st.integers(0, 9), st.text(max_size=4)), max_size=3),
        ),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_calls_survive_any_cut_and_order_of_their_fragments(
    calls: list[tuple[str, dict[str, Any]]], choices: st.DataObject
) -> None:
    """As the format has it: fragments by index, in any interleaving, come to the calls that were sent."""
    queues = []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cuts = sorted(choices.draw(st.lists(st.integers(0, len(text)), max_size=5)))
        bounds = [0, *cuts, len(text)]
        fragments: list[dict[str, Any]] = [{"index": index, "id": f"c{index}", "name": name or "f"}]
        fragments += [
            {"index": index, "arguments": text[start:end]} for start, end in zip(bounds, bounds[1:], strict=False)
        ]
        queues.append(fragments)
    stream = [pieces(queue.pop(0)) for queue in queues]
    while any(queues):
        turn = choices.draw(st.sampled_from([queue for queue in queues if queue]))
        stream.append(pieces(turn.pop(0)))
    reader, heard = feed(*stream, chunk(finish="tool_calls"))
    expected = [ToolCall(f"c{n}", name or "f", json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]

    assert expected == list(reader.finish().calls)
    assert [(call.name, call.arguments) for call in expected] == heard.calls


@pytest.mark.parametrize(
    "chunks",
    [
        [piece(index=0, arguments='{"n":1}')],
        [piece(index=0, id="a", name="t", arguments="{}"), piece(index=1, arguments='{"n":1}')],
        [
            pieces({"index": 0, "id": "a", "name": "t"}, {"index": 1, "id": "b", "name": "t"}),
            piece(index=2, arguments='{"n":1}'),
        ],
        [piece(arguments='{"n":1}')],
        [piece(index=0, id="a", arguments='{"n":1}')],
        [piece(index=0, id="a", name="t", arguments="{}"), piece(index=0, id="b", arguments='{"n":1}')],
    ],
)
def test_a_fragment_of_no_call_is_an_error(chunks: list[str]) -> None:
    """What cannot be told apart is not guessed at: no call gets another's arguments, none has an empty name."""
    with pytest.raises(ModelReplyError, match="broken tool call"):
        feed(*chunks, chunk(finish="tool_calls"), DONE)[0].finish()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("eos", "stop"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("tool_use", "tool_calls"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("content_filter: SAFETY", "content_filter"),
        ("malformed_function_call", "malformed"),
        ("brand_new_reason", "other"),
        (None, None),
    ],
)
def test_finish_reasons_are_put_in_common_words(reason: str | None, finish: str | None) -> None:
    """An unknown reason is `other`, and none is none: neither passes for `stop`."""
    assert finish == finish_of(reason)


def test_an_unknown_reason_is_kept_verbatim() -> None:
    """FIN-05, FIN-16: it neither crashes nor is lost."""
    turn = feed(HI[0], chunk(finish="Brand_New"), DONE)[0].finish()

    assert ("other", "Brand_New") == (turn.finish, turn.raw_finish)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, output_tokens=0, complete=True)),
        ({"completion_tokens": 4}, Usage(output_tokens=4)),
        ({"prompt_tokens": 4}, Usage(4)),
        ({"prompt_tokens": "4", "completion_tokens": True}, Usage()),
        ({"prompt_tokens": 4.0, "completion_tokens": -1}, Usage(4)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}},
            Usage(2, 7, output_tokens=2, complete=True),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None},
            Usage(9, output_tokens=2, complete=True),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8},
            Usage(1, 8, output_tokens=2, complete=True),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}},
            Usage(0, 7, output_tokens=2, complete=True),
        ),
    ],
)
def test_usage_is_in_classes_that_do_not_overlap(reported: dict[str, Any], usage: Usage) -> None:
    """Cached input is not counted twice; what is missing stays unknown, and a reported 0 is 0."""
    assert usage == feed(*HI[:2], chunk(finish="stop", usage=reported), DONE)[0].finish().usage


def test_a_stream_without_a_positive_end_is_lost() -> None:
    """SSE-12: what came is kept as partial, and never passes for an answer."""
    reader, _ = feed(HI[0], piece(index=0, id="a", name="t", arguments='{"n":'), piece(index=1, id="b"))
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the stream ended in the middle") as caught:
        reader.finish()

    assert caught.value.retryable
    assert Turn((TextPart("He"), ToolCall("a", "t", '{"n":')), end="lost", response="r1") == reader.lost()


@pytest.mark.parametrize(
    ("data", "kind", "status", "retryable", "said"),
    [
        (event({"error": {"message": "Overloaded", "type": "overloaded_error"}}), ModelServerError, 529, True, "overloaded_error"),
        (event({"error": {"code": 502, "message": "provider down"}}), ModelServerError, 502, True, "provider down"),
        (event({"error": {"code": "429", "message": "slow down"}}), ModelRateLimited, 429, True, "slow down"),
        (event({"error": "it broke"}), ModelServerError, 500, False, "it broke"),
        (event({"object": "error", "message": "bad", "code": 503}), ModelServerError, 503, True, "bad"),
        ('event: error\ndata: {"message":"oh no"}\n\n', ModelServerError, 500, False, "oh no"),
        (event([{"error": {"code": 503, "message": "listed"}}]), ModelServerError, 503, True, "listed"),
        (chunk({"content": "x"}, finish="error", error={"message": "both"}), ModelServerError, 500, False, "both"),
        (chunk(finish="error"), ModelServerError, 500, True, "'error'"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_that_error(
    data: str, kind: type[ModelServerError], status: int, retryable: bool, said: str
) -> None:
    """SSE-10, HTP-04, HTP-15: classified like an HTTP status, with the server's own words."""
    with pytest.raises(kind) as caught:
        feed(HI[0], data)

    assert (status, retryable) == (caught.value.status, caught.value.retryable)
    assert said in str(caught.value)
    assert ADDRESS in str(caught.value)


@pytest.mark.parametrize("text", ["{malformed", "3", "[" * 100_000, "[NaN, " + "[" * 100_000])
def test_what_is_no_json_object_is_an_error_that_shows_it(text: str) -> None:
    """The error names the address and the beginning of what came."""
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the reply is no JSON object: [{{3\[]") as caught:
        feed(HI[0], f"data: {text}\n\n")

    assert len(str(caught.value)) < 400


KEYS = st.sampled_from(
    ["id", "choices", "index", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "usage"]
    + ["finish_reason", "error", "code", "type", "status", "object", "text", "thinking", "refusal", "reasoning"]
    + ["function_call", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens"]
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 600), st.floats(), st.sampled_from(["", "x", "{}", "error", "429"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)
CHUNKS = st.one_of(
    ANYTHING,
    st.fixed_dictionaries({
        "choices": st.lists(st.fixed_dictionaries({"delta": ANYTHING, "index": ANYTHING}), max_size=2)
    }),
    st.fixed_dictionaries({
        "choices": st.tuples(st.fixed_dictionaries({"delta": st.fixed_dictionaries({"tool_calls": ANYTHING})}))
    }),
)


@pytest.mark.slow
@given(st.lists(CHUNKS, max_size=3), CHUNKS)
def test_nothing_that_is_json_crashes(chunks: list[Any], body: Any) -> None:
    """A reply of whatever shape is a turn or a `ModelError`."""
    turns = []
    try:
        turns.append(feed(*[event(value) for value in chunks], DONE)[0].finish())
        reader = ChatReply(HERE)
        reader.feed_body(json.dumps(body).encode())
        turns.append(reader.finish())
    except ModelError as error:
        turns.append(Turn(response=str(error)))

    assert [Turn] * len(turns) == [type(turn) for turn in turns]
    assert [] == [call for turn in turns for call in turn.calls if not call.name]


@pytest.mark.parametrize("body", [b'{"choices":[]}', b'{"object":"list"}', b"[]", b'"x"', b"{"])
def test_a_whole_body_without_a_choice_is_an_error(body: bytes) -> None:
    """A JSON body that is no completion is not an empty answer."""
    with pytest.raises(ModelReplyError, match=ADDRESS):
        ChatReply(HERE).feed_body(body)


def test_errors_show_no_secret() -> None:
    """A server that echoes the key does not bring it into an error."""
    with pytest.raises(ModelError) as caught:
        feed(event({"error": {"message": "bad key sk-very-secret\x1b[31m\nsecond line", "code": 500}}))

    assert "bad key *** [31m second line" in str(caught.value)
