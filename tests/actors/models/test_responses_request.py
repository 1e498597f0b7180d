"""Responses requests: what goes on the wire."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from actors.models.openai._responses_request import encode_request, output_cap
from protocol.errors import SpecError
from protocol.model import CONTINUE_TEXT, ForceTool, ModelRequest, Profile, Resume, ToolChoice, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

SEARCH = ToolDefinition("search", "Search it.", {"type": "object", "properties": {"q": {"type": "string"}}})
ASKED = [UserMessage("Hello?")]
HELLO = {"type": "message", "role": "user", "content": "Hello?"}


def body(request: ModelRequest | None = None, *, profile: Profile | None = None, **settings: Any) -> dict[str, Any]:
    request = request or ModelRequest(messages=ASKED)
    encoded = json.loads(encode_request(request, model="m", profile=profile or Profile(), **settings).decode())
    assert isinstance(encoded, dict)
    return encoded


def test_the_least_request() -> None:
    """Only what was asked for is sent, and that nothing is to be stored."""
    assert {"model": "m", "input": [HELLO], "stream": True, "store": False} == body()


def test_a_whole_conversation() -> None:
    """Instructions apart, tail last, one output per result in order; text and calls in the order they were made."""
    request = ModelRequest(
        system="Be exact.",
        messages=[
            UserMessage("Hello?"),
            AssistantMessage((
                ReasoningPart("hm"),
                TextPart("Let me "),
                TextPart("look."),
                ToolCall("a", "search", '{"q":"x"}'),
                OpaquePart("openai-chat", "{}", "a"),
                ToolCall("b", "search", "{}", malformed="{"),
                TextPart("So."),
            )),
            ToolMessage((ToolResult("a", "search", "ok", "1"), ToolResult("b", "search", "error", ""))),
            UserMessage("And now?"),
            AssistantMessage((TextPart("Wait"),), partial=True),
        ],
        tail="Answer.",
    )
    expected = [
        HELLO,
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "a", "name": "search", "arguments": '{"q":"x"}'},
        {"type": "function_call", "call_id": "b", "name": "search", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": "So."},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": ""},
        {"type": "message", "role": "user", "content": "And now?"},
        {"type": "message", "role": "assistant", "content": "Wait"},
        {"type": "message", "role": "user", "content": "Answer."},
    ]

    assert ("Be exact.", expected) == (body(request)["instructions"], body(request)["input"])


@pytest.mark.parametrize("parts", [(), (TextPart(""),), (TextPart("  "), TextPart("\n")), (ReasoningPart("hm"),)])
def test_an_assistant_message_of_nothing_is_left_out(parts: tuple[Part, ...]) -> None:
    """FIN-15: no message without content."""
    request = ModelRequest(messages=[*ASKED, AssistantMessage(parts), *ASKED])

    assert [HELLO, HELLO] == body(request)["input"]


FORCED = {"type": "function", "name": "search"}


@pytest.mark.parametrize(
    ("choice", "sent"), [("auto", None), ("none", "none"), ("required", "required"), (ForceTool("search"), FORCED)]
)
def test_tool_choices(choice: ToolChoice, sent: object) -> None:
    """Each choice has its form on the wire; `auto` is the server's default and not sent; without tools none is."""
    with_tools = body(ModelRequest(messages=ASKED, tools=[SEARCH], tool_choice=choice))
    without = body(ModelRequest(messages=ASKED, tool_choice=choice), profile=Profile(parallel_calls=False))

    assert (1, sent) == (len(with_tools["tools"]), with_tools.get("tool_choice"))
    assert body() == without


def test_a_definition_is_a_function_with_its_schema() -> None:
    """Schemas in read-only views are JSON objects on the wire; the format's own strictness is off."""
    parameters = MappingProxyType({"type": "object", "properties": MappingProxyType({"q": {"enum": ("a", "b")}})})
    request = ModelRequest(messages=[], tools=[ToolDefinition("t", "Do it.", parameters)])
    expected = {
        "type": "function",
        "name": "t",
        "description": "Do it.",
        "parameters": {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}},
        "strict": False,
    }

    assert [expected] == body(request)["tools"]


def test_settings_are_sent_only_if_set() -> None:
    """0 is a temperature; the profile says what the server would refuse, and what it has to be told."""
    request = ModelRequest(messages=ASKED, temperature=0.0, max_tokens=7, tools=[SEARCH])
    plain = body(request)
    told = body(request, profile=Profile(takes_temperature=False, parallel_calls=False))

    assert (0.0, 7, False) == (plain["temperature"], plain["max_output_tokens"], "parallel_tool_calls" in plain)
    assert ("temperature" in told, told["parallel_tool_calls"]) == (False, False)
    assert "parallel_tool_calls" not in body(request, profile=Profile(parallel_calls=True))


def test_encrypted_reasoning_is_asked_for() -> None:
    """Only then can it come back."""
    assert ["reasoning.encrypted_content"] == body(encrypted_reasoning=True)["include"]


def test_extra_fields_and_options_are_laid_over_the_body() -> None:
    """They add, replace and, with `None`, remove; the request's options win."""
    request = ModelRequest(messages=ASKED, max_tokens=9, provider_options={"store": True, "max_output_tokens": None})
    sent = body(
        request, encrypted_reasoning=True, extra_body={"store": None, "include": None, "reasoning": {"effort": "low"}}
    )

    assert {**body(), "store": True, "reasoning": {"effort": "low"}} == sent


@pytest.mark.parametrize(
    "name",
    ["input", "instructions", "stream", "model", "tools", "tool_choice", "previous_response_id", "conversation"],
)
@pytest.mark.parametrize("value", [None, False, "auto", []])
def test_what_a_request_says_itself_cannot_be_an_option(name: str, value: object) -> None:
    """Conversation, streaming and tools are never overridden, and no second conversation is put beside this one."""
    with pytest.raises(SpecError, match=f"provider_options must not set {name}"):
        body(ModelRequest(messages=ASKED, provider_options={name: value}))


@pytest.mark.parametrize(
    ("fields", "extra", "cap"),
    [
        ({}, {}, None),
        ({"max_tokens": 7}, {}, 7),
        ({"max_tokens": 7}, {"max_output_tokens": 5}, 5),
        ({"max_tokens": 7, "provider_options": {"max_output_tokens": 3}}, {"max_output_tokens": 5}, 3),
        ({"max_tokens": 7, "provider_options": {"max_output_tokens": None}}, {}, None),
        ({"max_tokens": 7, "provider_options": {"max_output_tokens": "many"}}, {}, None),
    ],
)
def test_the_cap_of_a_request(fields: dict[str, Any], extra: dict[str, Any], cap: int | None) -> None:
    """It is the one that is sent."""
    assert cap == output_cap(ModelRequest(messages=[], **fields), extra)


PARTS = (ReasoningPart("hm"), TextPart("Once "), TextPart("upon"))


def test_a_turn_that_a_user_message_continues() -> None:
    """The turn so far and the request to go on stand behind the tail."""
    request = ModelRequest(messages=ASKED, tail="Now.", resume=Resume(PARTS, "user_turn"))
    [_, tail, turn, asks] = body(request)["input"]

    assert ("Now.", CONTINUE_TEXT) == (tail["content"], asks["content"])
    assert {"type": "message", "role": "assistant", "content": "Once upon"} == turn


MESSAGE = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text"}] * 2}


@pytest.mark.parametrize("shell", [(), (OpaquePart("openai-responses", json.dumps(MESSAGE)),)])
def test_a_turn_that_goes_on_as_a_prefix(shell: tuple[Part, ...]) -> None:
    """It is the last item, marked as unfinished; of one that ends with a call there is nothing to mark."""
    request = ModelRequest(messages=ASKED, resume=Resume((*shell, *PARTS), "exact_prefix"))
    called = ModelRequest(messages=ASKED, resume=Resume((ToolCall("a", "t", "{}"),), "exact_prefix"))

    assert {"type": "message", "role": "assistant", "content": "Once upon", "status": "in_progress"} == body(request)[
        "input"
    ][-1]
    assert "status" not in body(called)["input"][-1]


def test_the_body_is_strict_json_in_utf8() -> None:
    """Lone surrogates and NaN, in whatever place, do not reach the server."""
    request = ModelRequest(
        messages=[UserMessage("a\ud800b \u00e9 \U0001f600"), AssistantMessage((ToolCall("a", "t", '{"n":"\udc00"}'),))],
        tools=[ToolDefinition("t\udfff", "", MappingProxyType({"default": float("nan")}))],
    )
    encoded = encode_request(request, model="m", profile=Profile())
    sent = json.loads(encoded.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))

    assert "a\ufffdb \u00e9 \U0001f600" == sent["input"][0]["content"]
    assert '{"n":"\ufffd"}' == sent["input"][1]["arguments"]
    assert ("t\ufffd", {"default": None}) == (sent["tools"][0]["name"], sent["tools"][0]["parameters"])
