"""Messages requests: the conversation as a strict server takes it, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.anthropic._messages_request import encode_request
from protocol.model import CONTINUE_TEXT, ModelRequest, Profile, Resume, ResumeStrategy
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
from tests.actors.models._anthropic_cases import FOUND, SEARCH, opaque

GO_ON = {"role": "user", "content": [{"type": "text", "text": "Continue."}]}
SIGNED = ReasoningPart("hm", "anthropic-messages:EqQB")


def body(request: ModelRequest, **profile: Any) -> dict[str, Any]:
    encoded = encode_request(request, model="m", profile=Profile(default_max_tokens=100, **profile))
    sent: dict[str, Any] = json.loads(encoded)
    return sent


def messages(*conversation: Message, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body(ModelRequest(messages=conversation, **fields))["messages"]
    return found


def content(*parts: Part, **profile: Any) -> list[dict[str, Any]]:
    """The blocks of an assistant message in the middle of a conversation."""
    said: list[Message] = [UserMessage("a"), AssistantMessage(parts), UserMessage("b")]
    found = body(ModelRequest(messages=said), **profile)["messages"]
    return [block for message in found if message["role"] == "assistant" for block in message["content"]]


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_a_whole_conversation() -> None:
    """Results lead the next user message, with the words behind them in it; neighbours of one role are one message."""
    sent = messages(
        UserMessage("Hello?"),
        UserMessage("Are you there?"),
        AssistantMessage((
            SIGNED,
            TextPart("Let me look."),
            ToolCall("a", "t", '{"q":"x"}', vendor_id="v"),
            ToolCall("b", "t", "{}", malformed="{"),
        )),
        ToolMessage((ToolResult("a", "t", "ok", "1"), ToolResult("b", "t", "error", "bad"))),
        UserMessage("And now?"),
        AssistantMessage((TextPart("Wait"),), partial=True),
        tail="Answer.",
    )
    expected = [
        {"role": "user", "content": [text("Hello?"), text("Are you there?")]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                text("Let me look."),
                {"type": "tool_use", "id": "a", "name": "t", "input": {"q": "x"}},
                {"type": "tool_use", "id": "b", "name": "t", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "bad", "is_error": True},
                text("And now?"),
            ],
        },
        {"role": "assistant", "content": [text("Wait")]},
        {"role": "user", "content": [text("Answer.")]},
    ]

    assert expected == sent


@pytest.mark.parametrize(
    ("result", "block"),
    [
        (ToolResult("a", "t", "ok", ""), {}),
        (ToolResult("a", "t", "ok", " \n"), {}),
        (ToolResult("a", "t", "timed_out", ""), {"content": "timed_out", "is_error": True}),
        (ToolResult("a", "t", "denied", "Not run."), {"content": "Not run.", "is_error": True}),
    ],
)
def test_results(result: ToolResult, block: dict[str, Any]) -> None:
    """All but `ok` are errors, and an error says something: servers refuse an empty one."""
    sent = messages(UserMessage("a"), AssistantMessage((ToolCall("a", "t", "{}"),)), ToolMessage((result,)))

    assert [{"type": "tool_result", "tool_use_id": "a", **block}] == sent[-1]["content"]


@pytest.mark.parametrize(
    ("conversation", "expected"),
    [
        ([], []),
        ([AssistantMessage((TextPart("x"),))], [GO_ON, {"role": "assistant", "content": [text("x")]}, GO_ON]),
        ([UserMessage("a"), AssistantMessage(()), UserMessage("b")], [{"role": "user", "content": [text("a"), text("b")]}]),
        ([UserMessage("a"), UserMessage(" ")], [{"role": "user", "content": [text("a")]}]),
        ([UserMessage("a"), AssistantMessage((TextPart(" \n"), SIGNED))], [{"role": "user", "content": [text("a")]}]),
    ],
)  # fmt: skip
def test_what_would_be_empty_is_left_out(conversation: list[Message], expected: object) -> None:
    """No empty message, no empty text; the first and the last message are the user's all the same."""
    assert expected == messages(*conversation)


@pytest.mark.parametrize(
    ("part", "blocks"),
    [
        (ReasoningPart("hm"), []),
        (ReasoningPart("hm", "EqQB"), []),
        (ReasoningPart("hm", "elsewhere:EqQB"), []),
        (OpaquePart("openai-chat", '{"type":"redacted_thinking","data":"x"}'), []),
        (OpaquePart("anthropic-messages", "{"), []),
        (OpaquePart("anthropic-messages", '{"data":"x"}'), []),
        (OpaquePart("anthropic-messages", '{"type":"text","citations":[{}]}'), []),
        (SIGNED, [{"type": "thinking", "thinking": "hm", "signature": "EqQB"}]),
        (ReasoningPart("", "anthropic-messages:s"), [{"type": "thinking", "thinking": "", "signature": "s"}]),
        (opaque({"type": "redacted_thinking", "data": "x"}), [{"type": "redacted_thinking", "data": "x"}]),
        (opaque({"type": "brand_new", "n": 1.0}), [{"type": "brand_new", "n": 1.0}]),
    ],
)
def test_only_what_this_format_made_is_sent_back(part: Part, blocks: list[Any]) -> None:
    """Another format's items and unsigned thinking stay here; its own go back as they came, before what followed."""
    assert [*blocks, text("x")] == content(part, TextPart("x"))


def test_a_server_that_wants_its_reasoning_back_gets_it() -> None:
    """Unsigned reasoning is sent where the profile says so; what another format signed is not."""
    parts = (ReasoningPart("hm"), ReasoningPart("no", "elsewhere:x"), ReasoningPart(" "), TextPart("x"))

    assert [{"type": "thinking", "thinking": "hm", "signature": ""}, text("x")] == content(
        *parts, echoes_reasoning=True
    )


def test_what_stands_behind_a_part_belongs_to_its_block() -> None:
    """Citations go back with their text, and who called with the call; without their part they are dropped."""
    cited, caller = {"type": "text", "citations": [{"n": 1}]}, {"type": "tool_use", "caller": {"type": "x"}}
    said = AssistantMessage((
        TextPart("a"),
        TextPart(" "),
        opaque(cited),
        TextPart("b"),
        opaque(cited),
        ToolCall("c", "t", "{}"),
        opaque(caller, "c"),
        opaque(cited),
    ))
    sent = messages(UserMessage("?"), said, ToolMessage((ToolResult("c", "t", "ok", "1"),)))

    assert [
        text("a"),
        {**text("b"), "citations": [{"n": 1}]},
        {"type": "tool_use", "id": "c", "name": "t", "input": {}, "caller": {"type": "x"}},
    ] == sent[1]["content"]


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ((opaque(SEARCH), opaque(FOUND), TextPart("x")), ["server_tool_use", "web_search_tool_result", "text"]),
        ((opaque(SEARCH), TextPart("x")), ["text"]),
        ((opaque(FOUND), TextPart("x")), ["text"]),
        ((SIGNED, opaque(SEARCH)), []),
        ((TextPart("x"), SIGNED, opaque({"type": "redacted_thinking", "data": "x"})), ["text"]),
    ],
)
def test_what_a_server_would_refuse_for_ever_is_left_out(parts: tuple[Part, ...], kept: list[str]) -> None:
    """A search without its result, a result without its search, thinking at the end of a message."""
    assert kept == [block["type"] for block in content(*parts)]


def test_code_at_the_provider_may_wait_for_our_tool() -> None:
    """Its result comes in a later turn: until then the open call stays, and so does the late result."""
    calls = AssistantMessage((opaque(SEARCH), ToolCall("a", "t", "{}")))
    results = ToolMessage((ToolResult("a", "t", "ok", "1"),))
    later = AssistantMessage((opaque(FOUND), TextPart("x")))
    sent = messages(UserMessage("?"), calls, results, later, UserMessage("!"))

    assert ["server_tool_use", "tool_use"] == [block["type"] for block in messages(UserMessage("?"), calls, results)[1]["content"]]  # fmt: skip
    assert ["web_search_tool_result", "text"] == [block["type"] for block in sent[3]["content"]]


@pytest.mark.parametrize(
    ("strategy", "parts", "sent"),
    [
        ("exact_prefix", (TextPart("It is"), TextPart(" \n")), [text("It is")]),
        ("exact_prefix", (TextPart("It is \n"),), [text("It is")]),
        ("resend", (SIGNED, TextPart("Wait."), opaque(SEARCH)), [{"type": "thinking", "thinking": "hm", "signature": "EqQB"}, text("Wait."), SEARCH]),
        ("resend", (TextPart("a "), SIGNED), [text("a "), {"type": "thinking", "thinking": "hm", "signature": "EqQB"}]),
    ],
)  # fmt: skip
def test_a_turn_that_goes_on_stands_last(
    strategy: ResumeStrategy, parts: tuple[Part, ...], sent: list[dict[str, Any]]
) -> None:
    """A prefix ends in no white space; a paused turn is sent back as it is, its open search included."""
    made = messages(UserMessage("?"), resume=Resume(parts, strategy))

    assert {"role": "assistant", "content": sent} == made[-1]
    assert ["user", "assistant"] == [message["role"] for message in made]


def test_a_turn_that_goes_on_by_a_user_message() -> None:
    """It is an assistant message like any other, and the request comes behind it."""
    made = messages(UserMessage("?"), resume=Resume((TextPart("It is "), opaque(SEARCH)), "user_turn"))

    assert [text("It is ")] == made[1]["content"]
    assert {"role": "user", "content": [text(CONTINUE_TEXT)]} == made[2]


@pytest.mark.parametrize("strategy", ["exact_prefix", "resend"])
def test_nothing_to_go_on_with(strategy: ResumeStrategy) -> None:
    """A turn of which nothing can be sent is not replaced by an older one."""
    made = messages(UserMessage("?"), AssistantMessage((TextPart("x"),)), resume=Resume((TextPart(" "),), strategy))

    assert GO_ON == made[-1]
