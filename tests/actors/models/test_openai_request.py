"""Chat Completions requests: what goes on the wire."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from actors.models.openai._chat_request import OWNED, encode_request
from actors.models.wire import check_extra_body
from protocol.errors import SpecError
from protocol.model import ModelRequest, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

SEARCH = ToolDefinition("search", "Search it.", {"type": "object", "properties": {"q": {"type": "string"}}})


def body(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    encoded = json.loads(encode_request(request, model="m", **settings).decode())
    assert isinstance(encoded, dict)
    return encoded


def test_the_least_request() -> None:
    """Only what was asked for is sent: nothing about tools, temperature or length."""
    expected = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }

    assert expected == body(ModelRequest(messages=[UserMessage("Hello?")]))


def test_a_whole_conversation() -> None:
    """System first, tail last, one `tool` message per result in order, ids and arguments as they are stored."""
    request = ModelRequest(
        system="Be exact.",
        messages=[
            UserMessage("Hello?"),
            AssistantMessage((
                ReasoningPart("hm"),
                TextPart("Let me "),
                TextPart("look."),
                ToolCall("a", "search", '{"q":"x"}', vendor_id="v"),
                OpaquePart("openai-chat", "{}", "a"),
                ToolCall("b", "search", "{}", malformed="{"),
            )),
            ToolMessage((ToolResult("a", "search", "ok", "1"), ToolResult("b", "search", "error", ""))),
            UserMessage("And now?"),
            AssistantMessage((TextPart("Wait"),), partial=True),
        ],
        tail="Answer.",
    )
    expected = [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": "Hello?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}},
                {"id": "b", "type": "function", "function": {"name": "search", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Wait"},
        {"role": "user", "content": "Answer."},
    ]

    assert expected == body(request)["messages"]


def test_calls_without_text_have_null_content() -> None:
    """Content is null beside calls alone; white space is no text."""
    request = ModelRequest(messages=[AssistantMessage((TextPart(" \n"), ToolCall("a", "t", "{}")))])
    [message] = body(request)["messages"]

    assert (None, 1) == (message["content"], len(message["tool_calls"]))


@pytest.mark.parametrize("parts", [(), (TextPart(""),), (TextPart("  "),), (ReasoningPart("hm"),)])
def test_an_assistant_message_of_nothing_is_left_out(parts: tuple[Any, ...]) -> None:
    """FIN-15: no message without content and calls, no empty list of calls."""
    request = ModelRequest(messages=[UserMessage("a"), AssistantMessage(parts), UserMessage("b")])

    assert [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}] == body(request)["messages"]


def test_text_alone_has_no_key_for_calls() -> None:
    """FIN-15: a list of calls is sent only if it holds some."""
    request = ModelRequest(messages=[AssistantMessage((TextPart("hi"),))])

    assert [{"role": "assistant", "content": "hi"}] == body(request)["messages"]


@pytest.mark.parametrize(
    ("tools", "choice", "expected"),
    [
        ([], "auto", {}),
        ([], "none", {}),
        ([], "required", {}),
        ([SEARCH], "auto", {"tools": 1}),
        ([SEARCH], "none", {"tools": 1, "tool_choice": "none"}),
        ([SEARCH], "required", {"tools": 1, "tool_choice": "required"}),
    ],
)
def test_tools_are_encoded_as_the_request_says(
    tools: list[ToolDefinition], choice: Any, expected: dict[str, Any]
) -> None:
    """Without definitions no word of tools is sent; off but visible is the choice `none`."""
    sent = body(ModelRequest(messages=[], tools=tools, tool_choice=choice))
    found = {
        key: sent[key] if key == "tool_choice" else len(sent[key]) for key in ("tools", "tool_choice") if key in sent
    }

    assert expected == found


def test_a_definition_is_a_function_with_its_schema() -> None:
    """Schemas in read-only views, as agents hold them, are JSON objects on the wire."""
    parameters = MappingProxyType({
        "type": "object",
        "properties": MappingProxyType({"q": MappingProxyType({"enum": ("a", "b")})}),
    })
    request = ModelRequest(messages=[], tools=[ToolDefinition("t", "Do it.", parameters)])
    expected = {
        "type": "function",
        "function": {
            "name": "t",
            "description": "Do it.",
            "parameters": {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}},
        },
    }

    assert [expected] == body(request)["tools"]


def test_settings_are_sent_only_if_set() -> None:
    """0 is a temperature; the name of the cap is the server's."""
    request = ModelRequest(messages=[], temperature=0.0, max_tokens=7)

    assert (0.0, 7) == (body(request)["temperature"], body(request)["max_tokens"])
    assert 7 == body(request, max_tokens_field="max_completion_tokens")["max_completion_tokens"]
    assert "max_tokens" not in body(request, max_tokens_field="max_completion_tokens")


def test_extra_fields_are_laid_over_the_body() -> None:
    """They add, replace and, with `None`, remove."""
    request = ModelRequest(messages=[], temperature=1.0)
    sent = body(request, extra_body={"seed": 1, "temperature": 0.5, "stream_options": None})

    assert (1, 0.5, False) == (sent["seed"], sent["temperature"], "stream_options" in sent)


def test_a_request_that_is_not_streamed_has_no_stream_options() -> None:
    """Servers refuse the one without the other."""
    sent = body(ModelRequest(messages=[]), extra_body={"stream": False})

    assert (False, False) == (sent["stream"], "stream_options" in sent)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"messages": []}, "must not set messages"),
        ({"tools": [], "model": "x"}, "must not set model, tools"),
        ({"x": object()}, "must be a JSON object"),
        ({"x": "\ud800"}, "must be a JSON object"),
    ],
)
def test_extra_fields_that_cannot_be_are_refused_at_once(extra: dict[str, Any], said: str) -> None:
    """What the request says itself cannot be set beside it; what is no JSON is found before the first call."""
    with pytest.raises(SpecError, match=said):
        check_extra_body(extra, OWNED)


def test_extra_fields_are_a_copy() -> None:
    """Later changes of the caller's do not reach the model."""
    inner: list[int] = [1]
    copy = check_extra_body({"x": inner}, OWNED)
    inner.append(2)

    assert {"x": [1]} == copy


def test_the_body_is_strict_json_in_utf8() -> None:
    """Lone surrogates and NaN, in whatever place, do not reach the server."""
    request = ModelRequest(
        messages=[
            UserMessage("a\ud800b \u00e9 \U0001f600"),
            AssistantMessage((ToolCall("a", "t", '{"n":"\udc00"}'),)),
        ],
        tools=[ToolDefinition("t\udfff", "", MappingProxyType({"default": float("nan")}))],
    )
    encoded = encode_request(request, model="m")
    sent = json.loads(encoded.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))

    assert "a\ufffdb \u00e9 \U0001f600" == sent["messages"][0]["content"]
    assert '{"n":"\ufffd"}' == sent["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert {"name": "t\ufffd", "description": "", "parameters": {"default": None}} == sent["tools"][0]["function"]
