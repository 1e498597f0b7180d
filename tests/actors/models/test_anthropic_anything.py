"""Messages replies of whatever shape and depth: a turn or a `ModelError`, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.anthropic._messages_reply import MessagesReply
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ModelError, ModelReplyError
from protocol.normalise import normalise
from protocol.turns import Turn
from tests.actors.models._anthropic_wire import END, start, stop

HERE = Endpoint.of("http://127.0.0.1:8080", "/v1/messages")


def feed(*chunks: str) -> MessagesReply:
    reader = MessagesReply(HERE)
    for made in EventStreamDecoder().feed("".join(chunks).encode()):
        reader.feed(made)
    return reader


def deeper(frames: int, take: Callable[[], Turn]) -> Turn:
    """Call with less of the stack left."""
    return deeper(frames - 1, take) if frames else take()


@pytest.mark.parametrize("kind", ["tool_use", "brand_new"])
def test_a_block_that_nests_deeply_crashes_nothing(kind: str) -> None:
    """However deep it is, it is read, refused or left out; a call that cannot be read has no arguments to run with."""
    turns = []
    for depth in range(200, 1000, 20):
        value = "[" * depth + "]" * depth
        block = f'{{"type":"{kind}","id":"a","name":"t","input":{value}}}'
        data = f'data: {{"type":"content_block_start","index":0,"content_block":{block}}}\n\n'
        try:
            reader = feed(start(), data, stop("tool_use"))
            turn = deeper(40, reader.finish)
        except ModelReplyError:
            continue
        turns.append(normalise(turn, knows_call=lambda _: False, max_calls=9)[0])

    assert turns
    assert [] == [call for turn in turns for call in turn.calls if call.malformed is None]


KEYS = st.sampled_from(
    ["id", "type", "index", "delta", "message", "content", "content_block", "text", "thinking", "signature", "input"]
    + ["partial_json", "usage", "input_tokens", "output_tokens", "stop_reason", "error", "citations", "citation"]
    + ["name", "data", "caller", "output_tokens_details"]
)
WORDS = st.sampled_from(
    ["", "x", "{}", "text", "thinking", "tool_use", "server_tool_use", "text_delta", "input_json_delta", "citations_delta"]
    + ["signature_delta", "thinking_delta", "end_turn", "error", "\ud83d"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 600), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=12,
)
EVENTS = st.one_of(
    ANYTHING,
    st.fixed_dictionaries({
        "type": st.sampled_from([
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
        ]),
        "index": st.one_of(st.integers(0, 2), st.none()),
        "content_block": st.one_of(ANYTHING, st.fixed_dictionaries({"type": WORDS, "name": WORDS, "input": ANYTHING})),
        "delta": st.one_of(
            ANYTHING, st.fixed_dictionaries({"type": WORDS, "text": WORDS, "data": ANYTHING, "partial_json": WORDS})
        ),
        "usage": ANYTHING,
        "message": ANYTHING,
    }),
)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=6), ANYTHING)
def test_nothing_that_is_json_crashes(events: list[Any], body: Any) -> None:
    """A reply of whatever shape is a turn or a `ModelError`, and what it left behind can be taken."""
    reader, decoder, turns = MessagesReply(HERE), EventStreamDecoder(), []
    stream = "".join([*[f"data: {json.dumps(value)}\n\n" for value in events], END])
    try:
        for made in decoder.feed(stream.encode()):
            reader.feed(made)
        turns.append(reader.finish())
    except ModelError as error:
        turns.append(Turn(response=str(error)))
    turns.append(reader.lost())
    try:
        reader = MessagesReply(HERE)
        reader.feed_body(json.dumps(body).encode())
        turns.append(reader.finish())
    except ModelError as error:
        turns.append(Turn(response=str(error)))

    assert [Turn] * 3 == [type(turn) for turn in turns]
    assert [] == [call for turn in turns for call in turn.calls if not call.name]
