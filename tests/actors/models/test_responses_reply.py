"""Responses replies: what each of them is read into."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.models.openai._responses_reply import ResponsesReply
from protocol.errors import (
    ModelError,
    ModelReplyError,
)
from protocol.turns import ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage
from tests.actors.models._responses_cases import (
    BODIES,
    COUNTED,
    HERE,
    HI,
    STREAMS,
    USAGE,
    added,
    arguments,
    bare,
    called,
    ended,
    feed,
    finished,
    message,
    sent,
    text,
)
from tests.actors.models._wire import Heard


def check(turn: Turn, heard: Heard) -> None:
    """The deltas, put together, are the turn."""
    assert turn.text == heard.text
    assert "".join(part.text for part in turn.parts if isinstance(part, ReasoningPart)) == heard.reasoning
    assert [call.name for call in turn.calls] == [name for name, _ in heard.calls]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_into_its_turn(name: str) -> None:
    """Whatever tells a thing, and however often: it is in the turn once, and was reported once."""
    case = STREAMS[name]
    reader, heard = feed(*case.chunks)

    assert case.turn == bare(reader.finish())
    assert (True, True) == (reader.ended, reader.done)
    check(case.turn, heard)


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=15)
@given(st.data())
def test_the_split_of_a_stream_makes_no_difference(name: str, data: st.DataObject) -> None:
    """However the bytes come, the turn is the same, to the last item of the server's own."""
    case = STREAMS[name]
    stream = b"".join([chunk.encode() if isinstance(chunk, str) else chunk for chunk in case.chunks])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=9)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    cut, heard = feed(*chunks)

    assert feed(stream)[0].finish() == cut.finish()
    check(case.turn, heard)


@pytest.mark.parametrize("name", STREAMS)
def test_every_single_byte_may_be_a_chunk(name: str) -> None:
    """Byte by byte the turn is the same."""
    case = STREAMS[name]
    stream = b"".join([chunk.encode() if isinstance(chunk, str) else chunk for chunk in case.chunks])

    assert case.turn == bare(feed(*[stream[index : index + 1] for index in range(len(stream))])[0].finish())


@pytest.mark.parametrize("name", BODIES)
def test_a_whole_body_is_read_into_its_turn(name: str) -> None:
    """A reply that was not streamed comes to the same turns, and its content is reported too."""
    body, turn = BODIES[name]
    reader, heard = ResponsesReply(HERE), Heard()
    for made in reader.feed_body(json.dumps(body).encode()):
        heard(made)

    assert turn == bare(reader.finish())
    check(turn, heard)


@pytest.mark.parametrize("new", ["", "x"])
def test_what_was_not_streamed_stands_at_its_place(new: str) -> None:
    """The order of the turn is the server's, though it is reported when it comes; ids may be new."""
    told = [message(letter, id=new + letter) for letter in "abc"]
    reader, heard = feed(text("b", id="b", index=1), ended(*told))

    assert ("abc", "bac") == (reader.finish().text, heard.text)


def test_pieces_are_reported_as_they_come() -> None:
    """Nothing is held back but the pieces of a call that has no name yet."""
    _, heard = feed(*HI[:5])

    assert "Hel" == heard.text

    item = called("a", "t", '{"n":1}')
    _, heard = feed(added(item), arguments('{"n"'))

    assert [("t", '{"n"')] == heard.calls

    _, heard = feed(arguments('{"n"'), arguments(":1}"))

    assert [] == heard.calls

    _, heard = feed(arguments('{"n"'), arguments(":1}"), finished(item))

    assert [("t", '{"n":1}')] == heard.calls


NESTED = "[" * 600 + '"\\ud83d"' + "]" * 600


def test_what_nests_too_deeply_to_be_written_is_left_out() -> None:
    """The rest of the turn stands."""
    deep = ended(message("Hello", x="DEEP"), called("a", "t", "DEEP")).replace('"DEEP"', NESTED)

    assert (TextPart("Hello"), ToolCall("a", "t", "")) == bare(feed(deep)[0].finish()).parts


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "get_x"]),
            st.dictionaries(st.text(max_size=3), st.one_of(st.integers(0, 9), st.text(max_size=4)), max_size=3),
        ),
        min_size=1,
        max_size=4,
    ),
    st.data(),
    st.sampled_from(["ids", "places", "both"]),
    st.booleans(),
)
def test_calls_survive_any_cut_and_order_of_their_pieces(
    calls: list[tuple[str, dict[str, Any]]], choices: st.DataObject, named_by: str, told: bool
) -> None:
    """Pieces by id, by place or both, in any interleaving, with the whole told again or not, are the calls sent."""
    queues = []
    output = []
    for place, (name, values) in enumerate(calls):
        whole = json.dumps(values)
        item = called(f"c{place}", name, whole, number=str(place))
        ids: dict[str, Any] = {} if named_by == "places" else {"item_id": item["id"]}
        ids |= {} if named_by == "ids" else {"output_index": place}
        cuts = sorted(choices.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
        pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        queues.append([sent("response.function_call_arguments.delta", delta=piece, **ids) for piece in pieces])
        queues[-1].insert(0, added(item, None if named_by == "ids" else place))
        output.append(item)
    stream = [queue.pop(0) for queue in queues]
    while any(queues):
        stream.append(choices.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    reader, heard = feed(*stream, ended(*(output if told else [])))
    expected = [ToolCall(f"c{place}", name, json.dumps(values)) for place, (name, values) in enumerate(calls)]

    assert expected == list(reader.finish().calls)
    assert [(call.name, call.arguments) for call in expected] == heard.calls


@pytest.mark.parametrize(
    "chunks",
    [
        [sent("response.function_call_arguments.delta", delta="{}")],
        [
            added(called("a", "t"), None),
            added(called("b", "t", number="2"), None),
            sent("response.function_call_arguments.delta", delta="{}"),
        ],
        [
            added(called("a", "t"), None),
            sent("response.function_call_arguments.delta", item_id="fc9", delta="{}"),
            ended(),
        ],
        [arguments('{"n":1}'), ended()],
        [ended({**called("a", ""), "arguments": '{"n":1}'})],
    ],
)
def test_arguments_that_belong_to_no_call_are_a_fault(chunks: list[str]) -> None:
    """A guess might run a tool with another call's arguments."""
    with pytest.raises(ModelReplyError, match="tool call"):
        feed(*chunks)[0].finish()


def test_a_call_of_nothing_is_no_call() -> None:
    """Neither a name nor arguments: nothing is lost with it."""
    assert () == feed(ended({**called("a", ""), "arguments": ""}))[0].finish().calls


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"input_tokens": 0, "output_tokens": 0}, Usage(0, output_tokens=0, complete=True)),
        ({"input_tokens": "9", "output_tokens": 2}, Usage(output_tokens=2)),
        (USAGE, COUNTED),
        (
            {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 7}},
            Usage(0, 7, output_tokens=2, complete=True),
        ),
        (
            {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": None},
            Usage(3, output_tokens=2, complete=True),
        ),
    ],
)
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_usage_is_in_classes_that_do_not_overlap(status: str, usage: Any, expected: Usage) -> None:
    """Cached input is not counted twice, reasoning is part of the output, what is missing stays unknown."""
    assert expected == feed(text("x"), ended(status=status, usage=usage))[0].finish().usage


KEYS = [
    "item",
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
    "delta",
    "text",
    "part",
    "response",
    "error",
]
KEYS += [
    "id",
    "call_id",
    "name",
    "arguments",
    "content",
    "summary",
    "status",
    "type",
    "output",
    "usage",
    "incomplete_details",
]
TYPES = [f"response.{name}" for name in ("created", "completed", "incomplete", "output_item.added", "output_item.done")]
TYPES += [
    f"response.{name}.{what}"
    for name in ("output_text", "refusal", "reasoning_text", "reasoning_summary_text", "function_call_arguments")
    for what in ("delta", "done", "x")
]
TYPES += ["response.content_part.done", "response.reasoning_summary_part.done", "error"]
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.floats(),
        st.sampled_from(["", "x", "{}", "m1", "function_call", "message", "reasoning", "output_text", "\ud83d"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=4,
)
ITEMS = st.builds(
    lambda type_, fields: {**fields, "type": type_},
    st.sampled_from(["message", "function_call", "reasoning", "web_search_call"]),
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=4),
)
EVENTS = st.builds(
    lambda type_, fields: {**fields, "type": type_},
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(ANYTHING, ITEMS), max_size=4),
)
RESPONSES = st.builds(
    lambda output, fields: {**fields, "output": output},
    st.lists(ITEMS, max_size=3),
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=2),
)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=4), st.one_of(RESPONSES, ANYTHING))
def test_nothing_that_is_json_crashes(events: list[Any], response: Any) -> None:
    """A reply of whatever shape is a turn or a `ModelError`."""
    turns = []
    stream = [
        f"data: {json.dumps(value)}\n\n" for value in [*events, {"type": "response.completed", "response": response}]
    ]
    try:
        turns.append(feed(*stream)[0].finish())
        reader = ResponsesReply(HERE)
        reader.feed_body(json.dumps(response).encode())
        turns += [reader.finish(), reader.lost()]
    except ModelError as error:
        turns.append(Turn(response=str(error)))

    assert [Turn] * len(turns) == [type(turn) for turn in turns]
    assert [] == [call for turn in turns for call in turn.calls if not call.name]
    assert [] == [part for turn in turns for part in turn.parts if isinstance(part, TextPart) and not part.text]
