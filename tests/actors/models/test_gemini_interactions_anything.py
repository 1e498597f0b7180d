"""Interactions: whatever a server sends, it comes to a turn or to an error of ours, and what it left can be sent back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.gemini._interactions_deltas import Deltas
from actors.models.gemini._interactions_reply import partial_turn, turn_of
from actors.models.gemini._interactions_request import request_body
from actors.models.wire import encode_body
from protocol.decode import LoopState
from protocol.errors import ModelError
from protocol.model import ModelRequest
from protocol.normalise import normalise
from protocol.outcome import outcome_of
from protocol.turns import AssistantMessage, ToolMessage, ToolResult
from tests.actors.models._interactions_read import ENDPOINT
from tests.actors.models._wire import HELLO

KINDS = ["start", "delta", "stop"]
EVENT_TYPES = [
    *[f"{family}.{kind}" for family in ("step", "content") for kind in KINDS],
    *("interaction.created", "interaction.completed", "interaction.status_update", "interaction.complete", "error"),
]
TYPES = [
    *("text", "thought", "thought_summary", "thought_signature", "function_call", "arguments_delta", "model_output"),
    *("user_input", "google_search_call", "image", "new"),
]
NAMES = [
    *("id", "name", "arguments", "text", "summary", "content", "signature", "status", "continuation_token", "usage"),
    *("steps", "outputs", "error", "errors", "total_input_tokens"),
]
STATUSES = ["completed", "requires_action", "requires_continuation", "failed", "in_progress", "new"]


def things(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects that often have the names and types of the format."""
    return st.builds(
        lambda kind, fields: {"type": kind, **fields},
        st.sampled_from(TYPES),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    )


texts = st.sampled_from(["", "a", "{}", '{"a":', "\ud83d", "\ude00"])
leaves = st.none() | st.booleans() | st.integers(-1, 3) | st.floats(allow_nan=False) | texts
values = st.recursive(
    leaves | st.sampled_from(STATUSES),
    lambda inner: st.lists(inner, max_size=3) | things(inner),
    max_leaves=8,
)


def fields_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    names = ["index", "step", "content", "delta", "metadata", "interaction", "interaction_id", "status", "usage"]
    some = st.dictionaries(
        st.sampled_from([*names, "continuation_token", "error"]), things(values) | values, max_size=5
    )
    return some.map(lambda fields: {**fields, "event_type": kind})


sent = st.lists(st.lists(st.sampled_from(EVENT_TYPES).flatmap(fields_of), max_size=6), min_size=1, max_size=3)


@pytest.mark.slow
@given(sent)
def test_whatever_comes(hops: list[list[dict[str, Any]]]) -> None:
    """No event makes the reader fail with an error that is not a `ModelError`, and its parts go on the wire again."""
    loop, deltas = LoopState({"store": False}), Deltas()
    for events in hops:
        deltas.begin_hop()
        for event in events:
            loop.observe(event)
            deltas.feed(event)
        loop.end_hop()
    try:
        turn = turn_of(loop.records, ENDPOINT)
    except ModelError:
        turn = partial_turn(loop.told())
    outcome_of(turn)
    turn, _ = normalise(turn, knows_call=lambda _: False, max_calls=9)
    results = tuple([ToolResult(call.id, call.name, "ok", "x") for call in turn.calls])
    messages = [*HELLO.messages, AssistantMessage(turn.parts), ToolMessage(results)]

    assert encode_body(request_body(ModelRequest(messages=messages), model="gemini-x"))
