"""Interactions: a request as its body says it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from actors.models.gemini._interactions_request import check_extra_body, request_body
from protocol.errors import SpecError
from protocol.model import ForceTool, ModelRequest, Resume, ToolChoice, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)

HELLO = UserMessage("Hello?")
ADD = ToolDefinition("add", "Adds.", MappingProxyType({"type": "object", "properties": {}}))


def body_of(*messages: Message, extra_body: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return request_body(ModelRequest(messages=messages, **fields), model="gemini-x", extra_body=extra_body)


def steps_of(*messages: Message, **fields: Any) -> Any:
    return body_of(*messages, **fields)["input"]


def text(kind: str, said: str) -> dict[str, Any]:
    return {"type": kind, "content": [{"type": "text", "text": said}]}


def opaque(step: dict[str, Any], call: str | None = None, format: str = "gemini-interactions") -> OpaquePart:
    return OpaquePart(format, msgspec.json.encode(step).decode(), call)


def test_a_plain_request() -> None:
    """Without options a body says what is asked, that it is streamed, and that nothing is to be kept."""
    expected = {"model": "gemini-x", "input": [text("user_input", "Hello?")], "stream": True, "store": False}

    assert expected == body_of(HELLO)


def test_settings() -> None:
    """System text, caps and tools stand where the format has them."""
    body = body_of(HELLO, system="Be exact.", tools=[ADD], temperature=0.5, max_tokens=64)

    assert "Be exact." == body["system_instruction"]
    assert {"max_output_tokens": 64, "temperature": 0.5} == body["generation_config"]
    assert [{"type": "function", "name": "add", "description": "Adds.", "parameters": ADD.parameters}] == body["tools"]


def test_temperature_is_left_out_where_the_model_takes_none() -> None:
    """A profile without temperature keeps it off the wire."""
    body = request_body(ModelRequest(messages=[HELLO], temperature=0.5), model="gemini-x", takes_temperature=False)

    assert "generation_config" not in body


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "any"),
        (ForceTool("add"), {"allowed_tools": {"mode": "any", "tools": ["add"]}}),
    ],
)
def test_tool_choice(choice: ToolChoice, said: Any) -> None:
    """With definitions each choice has its word; tools that are off stay visible (F4). Without them none is sent."""
    body = body_of(HELLO, tools=[ADD], tool_choice=choice)

    assert said == body.get("generation_config", {}).get("tool_choice")
    assert 1 == len(body["tools"])
    assert {"tools", "generation_config"}.isdisjoint(body_of(HELLO, tool_choice=choice))


def test_the_conversation_as_steps() -> None:
    """Thoughts, signed calls, results and unknown steps go back as they came, each in its place."""
    thought = {"type": "thought", "signature": "s1", "summary": [{"type": "text", "text": "Hm."}]}
    search = {"type": "google_search_call", "id": "g1", "arguments": {"queries": ["x"]}, "signature": "s3"}
    parts = (
        ReasoningPart("Hm."),
        opaque(thought),
        TextPart("Let "),
        TextPart("me see."),
        ToolCall("c1", "add", '{"a":1}'),
        opaque({"signature": "s2", "future": [1]}, "c1"),
        opaque(search),
        ToolCall("c2", "add", "{}"),
    )
    results = (ToolResult("c1", "add", "ok", "4"), ToolResult("c2", "add", "error", "No."))
    asked: list[Message] = [
        HELLO,
        AssistantMessage(parts),
        ToolMessage(results),
        AssistantMessage((TextPart("Four."),)),
    ]

    assert [
        text("user_input", "Hello?"),
        thought,
        text("model_output", "Let me see."),
        {"type": "function_call", "id": "c1", "name": "add", "arguments": {"a": 1}, "signature": "s2", "future": [1]},
        search,
        {"type": "function_call", "id": "c2", "name": "add", "arguments": {}},
        result("c1", "4", is_error=False),
        result("c2", "No.", is_error=True),
        text("model_output", "Four."),
        text("user_input", "And now?"),
    ] == steps_of(*asked, tail="And now?")


def result(call: str, said: str, *, is_error: bool) -> dict[str, Any]:
    content = [{"type": "text", "text": said}]
    return {"type": "function_result", "call_id": call, "name": "add", "result": content, "is_error": is_error}


@pytest.mark.parametrize("status", ["error", "timed_out", "interrupted", "denied", "discarded", "not_run"])
def test_a_result_that_is_none_says_so(status: ToolStatus) -> None:
    """Whatever kept a call from its result, the model is told that it is an error."""
    exchange = (
        AssistantMessage((ToolCall("c1", "add", "{}"),)),
        ToolMessage((ToolResult("c1", "add", status, "No."),)),
    )

    assert result("c1", "No.", is_error=True) == steps_of(HELLO, *exchange)[-1]


def test_what_is_not_the_formats_stays_out() -> None:
    """Another format's items and signatures, unsigned reasoning and what is empty or broken are not sent."""
    parts = (
        opaque({"type": "thinking"}, format="anthropic-messages"),
        ReasoningPart("Hm.", "foreign"),
        OpaquePart("gemini-interactions", "{oops"),
        OpaquePart("gemini-interactions", "[]"),
        TextPart(""),
        ToolCall("c1", "add", "oops"),
        opaque({"signature": "foreign"}, "c1", format="openai-responses"),
    )

    assert [
        text("user_input", "Hello?"),
        {"type": "function_call", "id": "c1", "name": "add", "arguments": {}},
    ] == steps_of(HELLO, AssistantMessage(parts))


def test_a_text_that_was_cut_is_continued_by_a_message() -> None:
    """What resumes a turn stands behind the conversation, and asks to go on."""
    steps = steps_of(HELLO, resume=Resume((TextPart("Once "),), "user_turn"))

    assert ["user_input", "model_output", "user_input"] == [step["type"] for step in steps]


def test_options_are_laid_over() -> None:
    """`extra_body` over the body, `provider_options` over that, the generation config field by field."""
    body = body_of(
        HELLO,
        max_tokens=64,
        temperature=0.5,
        extra_body={"store": True, "labels": {"a": "b"}, "generation_config": {"seed": 1, "top_p": 0.5}},
        provider_options={"labels": None, "generation_config": {"seed": 2, "temperature": None}},
    )

    assert (True, {"max_output_tokens": 64, "top_p": 0.5, "seed": 2}) == (body["store"], body["generation_config"])
    assert "labels" not in body
    assert "generation_config" not in body_of(HELLO, max_tokens=9, provider_options={"generation_config": None})


@pytest.mark.parametrize(
    "options",
    [
        {"input": "x"},
        {"model": "x"},
        {"tools": []},
        {"continuation_token": "x"},
        {"previous_interaction_id": "x"},
        {"stream": False},
        {"background": True},
        {"agent": "x"},
        {"generation_config": {"tool_choice": "any"}},
        {"generation_config": 5},
    ],
)
def test_options_that_are_not_theirs(options: dict[str, Any]) -> None:
    """What the request says itself, or what would make another kind of call of it, is refused with its name."""
    with pytest.raises(SpecError, match=r"provider_options.*" + next(iter(options))):
        body_of(HELLO, provider_options=options)
    if options != {"stream": False}:
        with pytest.raises(SpecError, match=r"extra_body.*" + next(iter(options))):
            check_extra_body(options)


def test_extra_body_is_a_copy_and_json() -> None:
    """Later changes do not reach the model; what is no JSON is refused when it is made."""
    given: dict[str, Any] = {"labels": {"a": "b"}}
    copy = check_extra_body(given)
    given["labels"]["a"] = "c"

    assert {"labels": {"a": "b"}} == copy
    with pytest.raises(SpecError, match="JSON"):
        check_extra_body({"labels": object()})
