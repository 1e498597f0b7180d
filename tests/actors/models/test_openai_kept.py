"""Chat Completions: what goes back with a turn: reasoning where that is wanted, and what the server added to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.openai._chat_reply import ChatReply
from actors.models.openai._chat_request import encode_request
from actors.models.servers import COMPATIBLE, SERVERS, Server
from actors.models.wire._endpoint import Endpoint
from protocol.model import ModelRequest, Profile, Resume
from protocol.turns import AssistantMessage, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, UserMessage
from tests.actors.models._wire import Heard

HERE = Endpoint.of("http://127.0.0.1:8080/v1", "/chat/completions")
ECHO = Profile(echoes_reasoning=True)
CALL = ToolCall("a", "t", '{"n":1}')
WRITTEN = {"id": "a", "type": "function", "function": {"name": "t", "arguments": '{"n":1}'}}


def written(*parts: Part, server: Server = COMPATIBLE, profile: Profile | None = None) -> dict[str, Any]:
    """The message that a turn is sent back as."""
    request = ModelRequest(messages=[UserMessage("Hello?"), AssistantMessage(parts), UserMessage("And?")])
    sent = json.loads(encode_request(request, model="m", server=server, profile=profile))
    assert len(sent["messages"]) == 3
    message: dict[str, Any] = sent["messages"][1]
    return message


def read(message: dict[str, Any], **settings: Any) -> tuple[Part, ...]:
    """The parts of a reply with this message."""
    reader = ChatReply(HERE, **settings)
    heard = Heard()
    for event in reader.feed_body(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()):
        heard(event)
    return reader.finish().parts


MESSAGES: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [{**WRITTEN, "extra_content": {"google": {"s": "x"}}}]},
    {"role": "assistant", "content": "Hi", "extra_content": {"google": {"s": "x"}}},
    {"role": "assistant", "content": "Hi", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {**WRITTEN, "function": {**WRITTEN["function"], "sign": 1}, "more": [1, {"a": None}]},  # type: ignore[dict-item]
            {**WRITTEN, "id": "b"},
        ],
    },
]


@pytest.mark.parametrize("message", MESSAGES)
def test_what_a_server_added_comes_back_as_it_was(message: dict[str, Any]) -> None:
    """A message that is read and sent back is the same message."""
    assert message == written(*read(message))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_strict_server_gets_nothing_of_it(message: dict[str, Any]) -> None:
    """A conversation that moves to a server which refuses unknown fields is not refused for another's."""
    sent = written(*read(message), server=SERVERS["mistral"])

    assert sent.keys() <= {"role", "content", "tool_calls"}
    assert [] == [call for call in sent.get("tool_calls", []) if call.keys() != WRITTEN.keys()]


@pytest.mark.parametrize(
    "part",
    [
        OpaquePart("anthropic", '{"extra": 1}'),
        OpaquePart("openai-chat", "no json"),
        OpaquePart("openai-chat", "[1]"),
        OpaquePart("openai-chat", '{"extra": 1}', "another call"),
    ],
)
def test_what_is_not_ours_or_not_readable_is_not_sent(part: OpaquePart) -> None:
    """Another format's items, another call's, and what somebody else wrote into the history."""
    assert {"role": "assistant", "content": "Hi"} == written(part, TextPart("Hi"))


def test_what_was_added_never_overrides_the_turn() -> None:
    """Role, text, calls and ids are the turn's own."""
    own = OpaquePart("openai-chat", '{"role":"system","content":"x","tool_calls":[],"extra":1}')
    beside = OpaquePart("openai-chat", '{"id":"z","type":"x","function":{"name":"rm","arguments":"x","sign":1}}', "a")
    sent = written(own, TextPart("Hi"), CALL, beside)
    call = {**WRITTEN, "function": {"name": "t", "arguments": '{"n":1}', "sign": 1}}

    assert {"role": "assistant", "content": "Hi", "tool_calls": [call], "extra": 1} == sent


@pytest.mark.parametrize(
    ("server", "field"),
    [("deepseek", "reasoning_content"), ("openrouter", "reasoning"), ("vllm", None), ("openai", None)],
)
def test_reasoning_goes_back_where_it_is_wanted(server: str, field: str | None) -> None:
    """Joined, under the server's word; a signed one belongs to another format."""
    known = SERVERS[server]
    parts = (ReasoningPart("Let "), ReasoningPart("foreign", "signed"), ReasoningPart("me."), TextPart("Hi"), CALL)
    sent = written(*parts, server=known)

    assert ({field: "Let me."} if field else {}) == {key: sent[key] for key in sent if key.startswith("reasoning")}


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("usual", ["vllm", "lmstudio"])
def test_reasoning_goes_back_under_the_field_it_came_in(field: str, usual: str) -> None:
    """Whatever the table supposes; the turn itself knows, so that a run can be taken up."""
    message = {"role": "assistant", "content": "Hi", field: "Let me."}
    parts = read(message, server=SERVERS[usual], echoes_reasoning=True)

    assert message == written(*parts, server=SERVERS[usual], profile=ECHO)


def test_where_reasoning_is_not_wanted_its_field_is_not_kept() -> None:
    """The turn holds nothing that no request needs."""
    assert (ReasoningPart("Hm"), TextPart("Hi")) == read({"content": "Hi", "reasoning": "Hm"})


def test_details_stand_in_for_plain_reasoning() -> None:
    """Sent once, in the form that holds the signatures."""
    message = {
        "role": "assistant",
        "content": "Hi",
        "reasoning": "Hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "signature": "s"}],
    }
    sent = written(*read(message, server=SERVERS["openrouter"], echoes_reasoning=True), server=SERVERS["openrouter"])

    assert {key: value for key, value in message.items() if key != "reasoning"} == sent


def test_deepseek_wants_the_field_beside_every_call() -> None:
    """Empty where the model thought nothing, or where another model made the turn; a turn of text alone needs none."""
    assert "" == written(CALL, server=SERVERS["deepseek"])["reasoning_content"]
    assert "reasoning_content" not in written(TextPart("Hi"), server=SERVERS["deepseek"])
    assert "reasoning" not in written(CALL, server=SERVERS["openrouter"])


def test_a_turn_to_go_on_has_its_reasoning() -> None:
    """What it was thinking stands before what it said so far."""
    resume = Resume((ReasoningPart("Hm"), TextPart("It is")), "exact_prefix")
    request = ModelRequest(messages=[UserMessage("Why?")], resume=resume)
    sent = json.loads(encode_request(request, model="m", server=SERVERS["deepseek"]))["messages"][-1]

    assert {"role": "assistant", "content": "It is", "reasoning_content": "Hm", "prefix": True} == sent
