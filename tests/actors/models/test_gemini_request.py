"""generateContent requests: what goes on the wire."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.gemini._generate_request import encode_request
from protocol.errors import SpecError
from protocol.model import CONTINUE_TEXT, ForceTool, ModelRequest, Profile, Resume, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from tests.actors.models._gemini import call, kept, text, thought

SEARCH = ToolDefinition("search", "Search it.", {"type": "object", "properties": {"q": {"type": "string"}}})
HELLO = UserMessage("Hello?")


def body(request: ModelRequest, *, profile: Profile | None = None, **settings: Any) -> dict[str, Any]:
    encoded = json.loads(encode_request(request, profile=profile or Profile(), **settings).decode())
    assert isinstance(encoded, dict)
    return encoded


def said(*parts: Part, **settings: Any) -> list[dict[str, Any]]:
    """What the parts of one assistant message are written as."""
    contents = body(ModelRequest(messages=[HELLO, AssistantMessage(parts)]), **settings)["contents"]
    return contents[1]["parts"] if len(contents) > 1 else []


def test_the_least_request() -> None:
    """Only what was asked for is sent: nothing about tools, temperature or length."""
    assert {"contents": [{"role": "user", "parts": [{"text": "Hello?"}]}]} == body(ModelRequest(messages=[HELLO]))


def test_a_whole_conversation() -> None:
    """System apart, results as one content behind the calls, what follows in the same role joined to it."""
    request = ModelRequest(
        system="Be exact.",
        messages=[
            HELLO,
            AssistantMessage((
                ReasoningPart("hm", signature="of another format"),
                TextPart("Let me "),
                TextPart("look."),
                ToolCall("a", "search", '{"q":"x"}', vendor_id="v"),
                OpaquePart("openai-chat", '{"x":1}', "a"),
                OpaquePart("openai-chat", '{"x":2}'),
                ToolCall("b", "search", "{}", malformed="{"),
                kept('{"functionCall":{"id":"g7"}}', "b"),
            )),
            ToolMessage((ToolResult("a", "search", "ok", "1"), ToolResult("b", "search", "error", "bad JSON"))),
            UserMessage("And now?"),
            AssistantMessage((TextPart("Wait"),), partial=True),
        ],
        tail="Answer.",
    )
    expected = [
        {"role": "user", "parts": [{"text": "Hello?"}]},
        {
            "role": "model",
            "parts": [{"text": "Let me look."}, call("search", {"q": "x"}), call("search", id="g7")],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "search", "response": {"output": "1"}}},
                {"functionResponse": {"id": "g7", "name": "search", "response": {"error": "bad JSON"}}},
                {"text": "And now?"},
            ],
        },
        {"role": "model", "parts": [{"text": "Wait"}]},
        {"role": "user", "parts": [{"text": "Answer."}]},
    ]
    sent = body(request)

    assert expected == sent["contents"]
    assert {"parts": [{"text": "Be exact."}]} == sent["systemInstruction"]


@pytest.mark.parametrize("status", ["error", "timed_out", "interrupted", "denied", "discarded", "not_run"])
def test_what_did_not_go_well_is_an_error(status: Any) -> None:
    """Only `ok` is an output."""
    messages: list[Message] = [
        AssistantMessage((ToolCall("a", "t", "{}"),)),
        ToolMessage((ToolResult("a", "t", status, "no"),)),
    ]
    response = {"functionResponse": {"name": "t", "response": {"error": "no"}}}

    assert [response] == body(ModelRequest(messages=messages))["contents"][1]["parts"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), []),
        ((TextPart(""),), []),
        ((TextPart(" \n"),), []),
        ((ReasoningPart("hm"),), []),
        ((TextPart(" "), ToolCall("a", "t", "{}")), [call("t")]),
        ((TextPart("a"), ReasoningPart("hm"), TextPart("b")), [text("ab")]),
        ((kept('{"text":"","thoughtSignature":"S"}'),), [text("", thoughtSignature="S")]),
        ((kept('{"thoughtSignature":"S"}'),), [{"thoughtSignature": "S"}]),
        ((kept('{"inlineData":{"data":"AA=="}}'),), [{"inlineData": {"data": "AA=="}}]),
        ((kept("[1]"), kept("{"), TextPart("a")), [text("a")]),
        (
            (TextPart("a"), TextPart("b"), kept('{"text":null,"thoughtSignature":"S"}'), TextPart("c")),
            [text("a"), text("b", thoughtSignature="S"), text("c")],
        ),
        ((TextPart(" "), kept('{"text":null,"thoughtSignature":"S"}')), [text(" ", thoughtSignature="S")]),
        (
            (ReasoningPart("hm"), kept('{"text":null,"thought":true,"thoughtSignature":"S"}')),
            [thought("hm", thoughtSignature="S")],
        ),
        (
            (TextPart("a"), kept('{"text":null,"thought":true,"thoughtSignature":"S"}')),
            [text("a"), thought("", thoughtSignature="S")],
        ),
        (
            (ToolCall("a", "t", "{}"), kept('{"text":null,"thoughtSignature":"S"}')),
            [call("t"), text("", thoughtSignature="S")],
        ),
        (
            (ToolCall("a", "t", '{"n":1}'), kept('{"thoughtSignature":"S","functionCall":{"id":"g"}}', "a")),
            [call("t", {"n": 1}, id="g", signature="S")],
        ),
        ((ToolCall("a", "t", "no JSON"),), [call("t")]),
    ],
)
def test_what_the_model_said_is_written_in_order(parts: tuple[Part, ...], expected: list[dict[str, Any]]) -> None:
    """Text joined, nothing empty, unsigned thoughts left out, signatures on the part that they came with."""
    assert expected == said(*parts)


def test_messages_of_nothing_leave_no_content() -> None:
    """Roles alternate, and no content is without parts."""
    messages: list[Message] = [UserMessage("a"), AssistantMessage((TextPart(""),)), UserMessage(""), UserMessage("b")]

    assert [{"role": "user", "parts": [text("a"), text("b")]}] == body(ModelRequest(messages=messages))["contents"]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [(Profile(), [text("a")]), (Profile(echoes_reasoning=True), [thought("hm"), text("a")])],
)
def test_unsigned_thoughts_go_back_where_the_profile_says_so(profile: Profile, expected: list[Any]) -> None:
    """By default they do not; blank ones never do."""
    assert expected == said(ReasoningPart("hm"), ReasoningPart(" "), TextPart("a"), profile=profile)


def test_calls_of_other_models_are_marked_for_a_strict_model() -> None:
    """The first call of a turn carries Google's word for "not signed"; signed ones and those beside it are left alone."""
    unsigned = (ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}"))
    signed = (ToolCall("a", "t", "{}"), kept('{"thoughtSignature":"S"}', "a"), ToolCall("b", "t", "{}"))

    assert [call("t", signature="skip_thought_signature_validator"), call("t")] == said(*unsigned, marks_unsigned=True)
    assert [call("t", signature="S"), call("t")] == said(*signed, marks_unsigned=True)
    assert [text("a")] == said(TextPart("a"), marks_unsigned=True)


@pytest.mark.parametrize(
    ("tools", "choice", "expected"),
    [
        ([], "auto", {}),
        ([], "none", {}),
        ([], "required", {}),
        ([SEARCH], "auto", {"tools": 1}),
        ([SEARCH], "none", {"tools": 1, "toolConfig": {"mode": "NONE"}}),
        ([SEARCH], "required", {"tools": 1, "toolConfig": {"mode": "ANY"}}),
        (
            [SEARCH],
            ForceTool("search"),
            {"tools": 1, "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
        ),
    ],
)
def test_tools_are_encoded_as_the_request_says(
    tools: list[ToolDefinition], choice: Any, expected: dict[str, Any]
) -> None:
    """F4: without definitions no word of tools is sent, but the calls of the history stay; off but visible is `NONE`."""
    messages: list[Message] = [
        AssistantMessage((ToolCall("a", "t", "{}"),)),
        ToolMessage((ToolResult("a", "t", "ok", "1"),)),
    ]
    sent = body(ModelRequest(messages=messages, tools=tools, tool_choice=choice))
    found: dict[str, Any] = {}
    if "tools" in sent:
        found["tools"] = len(sent["tools"][0]["functionDeclarations"])
    if "toolConfig" in sent:
        found["toolConfig"] = sent["toolConfig"]["functionCallingConfig"]

    assert expected == found
    assert ["functionCall", "functionResponse"] == [[*content["parts"][0]][0] for content in sent["contents"]]


def test_a_definition_carries_its_json_schema() -> None:
    """Schemas in read-only views, as agents hold them, are JSON objects on the wire."""
    parameters = MappingProxyType({"type": "object", "properties": MappingProxyType({"q": {"enum": ("a", "b")}})})
    sent = body(ModelRequest(messages=[], tools=[ToolDefinition("t", "Does it.", parameters)]))
    schema = {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}}
    declaration = {"name": "t", "description": "Does it.", "parametersJsonSchema": schema}

    assert [{"functionDeclarations": [declaration]}] == sent["tools"]


@pytest.mark.parametrize(
    ("extra", "options", "expected"),
    [
        ({}, {}, {"temperature": 0.5, "maxOutputTokens": 9}),
        ({"generationConfig": {"topK": 3}}, {}, {"temperature": 0.5, "maxOutputTokens": 9, "topK": 3}),
        (
            {"generationConfig": {"topK": 3, "temperature": 1}},
            {"generationConfig": MappingProxyType({"topK": None, "temperature": 2})},
            {"temperature": 2, "maxOutputTokens": 9},
        ),
        ({}, {"generationConfig": {"temperature": None, "maxOutputTokens": None}}, None),
        ({}, {"generationConfig": None}, None),
    ],
)
def test_the_generation_config_is_laid_over_field_by_field(
    extra: dict[str, Any], options: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """The model's own, then `extra_body`, then the request's options; `None` removes a field."""
    request = ModelRequest(messages=[], temperature=0.5, max_tokens=9, provider_options=options)

    assert expected == body(request, extra_body=extra).get("generationConfig")


def test_a_model_that_takes_no_temperature() -> None:
    """It is not sent one."""
    request = ModelRequest(messages=[], temperature=0.5)

    assert "generationConfig" not in body(request, profile=Profile(takes_temperature=False))


def test_other_fields_are_laid_over_the_body() -> None:
    """As they are; `None` removes them again."""
    request = ModelRequest(messages=[], provider_options={"labels": {"a": "b"}, "cachedContent": None})

    assert {"contents": [], "labels": {"a": "b"}} == body(request, extra_body={"cachedContent": "c/1"})


@pytest.mark.parametrize("name", ["contents", "systemInstruction", "tools", "toolConfig", "tool_config"])
def test_what_the_request_says_cannot_be_set_beside_it(name: str) -> None:
    """Tools that are off stay off, whatever the options."""
    with pytest.raises(SpecError, match=f"provider_options must not set {name}"):
        body(ModelRequest(messages=[], provider_options={name: None}))


def test_a_turn_that_is_resumed_stands_last() -> None:
    """Behind it what asks for the rest, where the strategy has such a message."""
    request = ModelRequest(messages=[HELLO], resume=Resume((TextPart("Once "),), "user_turn"))
    expected = [("user", "Hello?"), ("model", "Once "), ("user", CONTINUE_TEXT)]

    assert expected == [(item["role"], item["parts"][0]["text"]) for item in body(request)["contents"]]


def test_the_body_is_strict_json_in_utf8() -> None:
    """Lone surrogates and NaN, in whatever place, do not reach the server."""
    parts = (ToolCall("a", "t", '{"n":"\udc00"}'), kept('{"x":"\udc00"}', "a"), kept('{"y":NaN}'))
    request = ModelRequest(
        messages=[UserMessage("a\ud800b \U0001f600"), AssistantMessage(parts)],
        tools=[ToolDefinition("t\udfff", "", MappingProxyType({"default": float("nan")}))],
    )
    encoded = encode_request(request, profile=Profile())
    sent = json.loads(encoded.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))

    assert [text("a\ufffdb \U0001f600")] == sent["contents"][0]["parts"]
    assert [{"x": "\ufffd", **call("t", {"n": "\ufffd"})}, {"y": None}] == sent["contents"][1]["parts"]
    assert "t\ufffd" == sent["tools"][0]["functionDeclarations"][0]["name"]


TEXTS = st.sampled_from(["", " ", "\n", "a", "b"])
ITEMS = st.sampled_from([
    '{"text":"","thoughtSignature":"S"}',
    '{"text":null,"thoughtSignature":"S"}',
    '{"text":null,"thought":true,"thoughtSignature":"S"}',
    '{"executableCode":{}}',
    "{}",
    "{",
])
SPOKEN = st.one_of(
    TEXTS.map(TextPart),
    TEXTS.map(ReasoningPart),
    ITEMS.map(kept),
    ITEMS.map(lambda data: OpaquePart("openai-chat", data)),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Histories as they are stored: every call answered directly behind its message."""
    messages: list[Message] = []
    number = 0
    for kind in draw(st.lists(st.sampled_from(["user", "said", "calls"]), max_size=6)):
        if kind == "user":
            messages.append(UserMessage(draw(TEXTS)))
            continue
        parts: list[Part] = draw(st.lists(SPOKEN, max_size=4))
        results: list[ToolResult] = []
        for _ in range(draw(st.integers(1, 3)) if kind == "calls" else 0):
            number += 1
            made: list[Part] = [ToolCall(f"c{number}", "t", "{}")]
            if draw(st.booleans()):
                made.append(kept('{"functionCall":{"id":"g"},"thoughtSignature":"S"}', f"c{number}"))
            parts[len(parts) : len(parts)] = [*made, *draw(st.lists(SPOKEN, max_size=2))]
            results.append(ToolResult(f"c{number}", "t", "ok", draw(TEXTS)))
        messages.append(AssistantMessage(tuple(parts)))
        if results:
            messages.append(ToolMessage(tuple(results)))
    return messages


@given(conversations(), st.none() | TEXTS, st.booleans(), st.booleans())
def test_every_history_keeps_the_rules_of_the_format(
    messages: list[Message], tail: str | None, echoes: bool, marks: bool
) -> None:
    """S5: roles alternate, no content is empty, no text is, and the next content has a response for each call."""
    sent = body(
        ModelRequest(messages=messages, tail=tail),
        profile=Profile(echoes_reasoning=echoes),
        marks_unsigned=marks,
    )["contents"]
    roles = [content["role"] for content in sent]
    made = [[part["functionCall"].get("id") for part in content["parts"] if "functionCall" in part] for content in sent]
    answered = [
        [part["functionResponse"].get("id") for part in content["parts"] if "functionResponse" in part]
        for content in [*sent, {"parts": []}][1:]
    ]
    firsts = [next((part for part in content["parts"] if "functionCall" in part), None) for content in sent]

    assert all(before != after for before, after in zip(roles, roles[1:], strict=False))
    assert all(content["parts"] for content in sent)
    assert all(
        part["text"] or "thoughtSignature" in part for content in sent for part in content["parts"] if "text" in part
    )
    assert made == [ids if role == "model" else [] for ids, role in zip(answered, roles, strict=True)]
    assert all("thoughtSignature" in first for first in firsts if first is not None and marks)
