"""Messages: what the model said is sent back as it said it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.models import Anthropic
from actors.models.anthropic._messages_reply import MessagesReply
from actors.models.anthropic._messages_request import encode_request
from actors.models.wire._endpoint import Endpoint
from actors.models.wire._sse import EventStreamDecoder
from protocol import codec
from protocol.model import ModelRequest, Profile, Resume
from protocol.normalise import normalise
from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, Turn, UserMessage
from tests.actors.models._anthropic_cases import CITED, FOUND, SEARCH
from tests.actors.models._anthropic_wire import HI, closed, delta, faults_of, opened, start, stop
from tests.actors.models._wire import Heard, Network, stream

TEXTS = st.text(min_size=1, max_size=8).map(lambda text: text + "é")
SIGNATURES = st.sampled_from(["EqQBCkgIARABGAIiQL8=", "s:/+=", "anthropic-messages:x", "é"])


def streamed(blocks: list[dict[str, Any]], reason: str) -> str:
    """Blocks as the format streams them: text, thinking, signatures, inputs and citations in pieces."""
    steps = [start()]
    for index, block in enumerate(blocks):
        begun, deltas = dict(block), []
        for field, kind in (("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")):
            if field in block:
                begun[field] = ""
                cut = len(block[field]) // 2 if field != "signature" else 0
                deltas += [delta(index, kind, **{field: piece}) for piece in (block[field][:cut], block[field][cut:])]
        for citation in begun.pop("citations", []):
            deltas.append(delta(index, "citations_delta", citation=citation))
        if "input" in block:
            begun["input"] = {}
            text = json.dumps(block["input"])
            deltas += [delta(index, "input_json_delta", partial_json=piece) for piece in ("", text[:3], text[3:])]
        kind = begun.pop("type")
        steps += [opened(index, kind, **begun), *deltas, closed(index)]
    return "".join([*steps, stop(reason)])


def read(blocks: list[dict[str, Any]], *, whole: bool, reason: str = "end_turn") -> Turn:
    reader = MessagesReply(Endpoint.of("http://127.0.0.1:1", "/v1/messages"))
    if whole:
        reader.feed_body(json.dumps({"content": blocks, "stop_reason": reason}).encode())
    else:
        for event in EventStreamDecoder().feed(streamed(blocks, reason).encode()):
            reader.feed(event)
    return normalise(reader.finish(), knows_call=lambda _: False, max_calls=128)[0]


def stored(*messages: Message) -> list[Message]:
    """Through the form in which a conversation is kept."""
    return codec.decode(codec.encode(messages), list[Message])


def sent(request: ModelRequest) -> list[dict[str, Any]]:
    body = json.loads(encode_request(request, model="m", profile=Profile(default_max_tokens=9)))
    assert [] == [fault for fault in faults_of(body) if "last message" not in fault]
    messages: list[dict[str, Any]] = body["messages"]
    return messages


@st.composite
def contents(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What a model may say in one turn, calls and thinking in any order, not ending in thinking."""
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(["text", "cited", "thinking", "redacted", "tool_use", "search", "new"])):
            case "text":
                made.append({"type": "text", "text": draw(TEXTS)})
            case "cited":
                made.append({"type": "text", "text": draw(TEXTS), "citations": [CITED]})
            case "thinking":
                made.append({"type": "thinking", "thinking": draw(TEXTS), "signature": draw(SIGNATURES)})
            case "redacted":
                made.append({"type": "redacted_thinking", "data": draw(TEXTS)})
            case "tool_use":
                value = draw(st.dictionaries(TEXTS, st.one_of(st.integers(), TEXTS, st.lists(st.booleans()))))
                call = {"type": "tool_use", "id": f"toolu_{number}", "name": "t", "input": value}
                made.append(call | draw(st.sampled_from([{}, {"caller": {"type": "code", "tool_id": "x"}}])))
            case "search":
                use, result = {**SEARCH, "id": f"s{number}"}, {**FOUND, "tool_use_id": f"s{number}"}
                made += [use, result]
            case _:
                made.append({"type": "brand_new", "fields": {"n": [1, None, 2.5]}, "words": draw(TEXTS)})
    return [*made, {"type": "text", "text": draw(TEXTS)}]


@pytest.mark.slow
@given(contents(), st.booleans())
def test_a_turn_goes_back_unchanged_and_in_order(blocks: list[dict[str, Any]], whole: bool) -> None:
    """Signed thinking, the provider's own blocks, citations and calls: read, stored and sent, they are the same."""
    turn = read(blocks, whole=whole)
    messages: list[Message] = [UserMessage("?"), AssistantMessage(turn.parts)]
    if turn.calls:
        messages.append(ToolMessage(tuple(ToolResult(call.id, call.name, "ok", "1") for call in turn.calls)))
    made = sent(ModelRequest(messages=stored(*messages, UserMessage("!"))))

    assert blocks == made[1]["content"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_paused_turn_is_sent_back_as_it_is(whole: bool) -> None:
    """Last, unchanged, its open search included; what the server then adds stands behind it in one turn."""
    before: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Wait."},
        SEARCH,
    ]
    after = [FOUND, {"type": "text", "text": "It is A.", "citations": [CITED]}]
    paused = read(before, whole=whole, reason="pause_turn")
    first = sent(ModelRequest(messages=[UserMessage("?")], resume=Resume(paused.parts, "resend")))
    parts = (*paused.parts, *read(after, whole=whole).parts)
    later = sent(ModelRequest(messages=stored(UserMessage("?"), AssistantMessage(parts), UserMessage("!"))))

    assert "paused" == paused.finish
    assert {"role": "assistant", "content": before} == first[-1]
    assert [*before, *after] == later[1]["content"]


async def test_thinking_in_a_tool_loop(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """The turn that called the tool begins with its thinking, byte for byte, in the next request."""
    thought = {"type": "thinking", "thinking": 'A "café"\n', "signature": "EqQB+/="}
    use = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"n": 1}}
    network.server.replies = [stream(streamed([thought, use], "tool_use")), stream(*HI)]
    model = Anthropic("m", base_url="http://127.0.0.1:8080", transport=network.transport())
    turn = await model.turn(ModelRequest(messages=[UserMessage("?")]), Heard())
    [call] = turn.calls
    results = ToolMessage((ToolResult(call.id, "t", "ok", "1"),))
    await model.turn(ModelRequest(messages=[UserMessage("?"), AssistantMessage(turn.parts), results]), Heard())

    assert [thought, use] == network.server.requests[1].json["messages"][1]["content"]
