"""Tokens before anybody has counted them: a quarter of the bytes (B3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.estimate import Estimator, Gauge, tokens_of, turn_tokens
from protocol.model import CONTINUE_TEXT, ModelRequest, Resume, ResumeStrategy, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Turn,
    UserMessage,
)
from protocol.views import View

from .drawn import any_text, conversations


def bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def counted(message: Message) -> int:
    """The bytes of a message, told from the definition."""
    if isinstance(message, UserMessage):
        return bytes_of(message.text)
    if isinstance(message, ToolMessage):
        return sum(bytes_of(result.text) for result in message.results)
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    data = [part.data for part in message.parts if isinstance(part, OpaquePart)]
    calls = [part.name + part.arguments for part in message.parts if isinstance(part, ToolCall)]
    return sum(map(bytes_of, [*texts, *data, *calls]))


class Witness(Sequence[Message]):
    """A conversation that notes which of its messages are read."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, int):
            self.read.append(index)
        else:
            self.read += range(*index.indices(len(self)))
        return self.messages[index]

    def __iter__(self) -> Iterator[Message]:
        for index in range(len(self)):
            yield self[index]


@given(st.lists(conversations, max_size=5))
def test_each_message_is_read_once(pieces: list[list[Message]]) -> None:
    """However often a growing conversation is asked about: the estimate is that of a full count, and nothing is re-read."""
    estimator, witness = Estimator(), Witness()
    for piece in pieces:
        witness.messages += piece
        for _ in range(2):
            assert sum(map(counted, witness.messages)) == estimator.conversation(witness)

    assert list(range(len(witness))) == witness.read


@given(st.lists(conversations, max_size=4), st.none() | any_text, st.none() | any_text)
def test_a_request_is_its_texts(pieces: list[list[Message]], system: str | None, tail: str | None) -> None:
    """Messages, system prompt and tail; the stored conversation or others in its place come to the same."""
    estimator = Estimator()
    stored: list[Message] = []
    for piece in pieces:
        stored += piece
        size = sum(map(counted, stored)) + bytes_of(system or "") + bytes_of(tail or "")
        whole = estimator.request(ModelRequest(messages=View(stored), system=system, tail=tail), View(stored))
        copied = estimator.request(ModelRequest(messages=tuple(stored), system=system, tail=tail), View(stored))

        assert [tokens_of(size)] * 2 == [whole, copied]


def test_messages_that_a_hook_replaced_are_counted_as_sent() -> None:
    """A shorter request is smaller, and the next whole one is not: what is stored has not changed."""
    stored: list[Message] = [UserMessage("a" * 400), UserMessage("b" * 40)]
    estimator = Estimator()
    sizes = [
        estimator.request(ModelRequest(messages=messages), View(stored))
        for messages in (
            View(stored),
            (UserMessage("c" * 8),),
            (UserMessage("c" * 8), UserMessage("d" * 8)),
            View(stored[1:]),
            View(stored),
        )
    ]

    assert [110, 2, 4, 10, 110] == sizes


ADD = ToolDefinition("add", "Add.", {"type": "object"})


def test_definitions_are_counted_once() -> None:
    """Name, description and schema as JSON; while the tools stay the same object, nothing is encoded again."""
    estimator, tools = Estimator(), (ADD, ADD)
    size = len("addAdd.") + len(msgspec.json.encode({"type": "object"}))
    alone = estimator.definitions(tools)
    with_text = estimator.request(ModelRequest(messages=(UserMessage("abcd"),), tools=tools), ())
    other = estimator.request(ModelRequest(messages=(), tools=(ADD,)), ())

    assert (tokens_of(2 * size), tokens_of(2 * size + 4), tokens_of(size)) == (alone, with_text, other)


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_a_token_is_four_bytes(size: int, expected: int) -> None:
    """Rounded up: what is there is never nothing."""
    assert expected == tokens_of(size)


@pytest.mark.parametrize(
    ("text", "expected"), [("abcd", 1), ("größe", 2), ("日本語", 3), ("😀", 1), ("\ud800", 1), ("", 0)]
)
def test_bytes_are_those_of_utf_8(text: str, expected: int) -> None:
    """Not characters: a language that takes more bytes takes more tokens; a lone surrogate does no harm."""
    turn = Turn((TextPart(text),), "stop", "stop")

    assert expected == Estimator().request(ModelRequest(messages=(UserMessage(text),)), ()) == turn_tokens(turn)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), 0),
        ((TextPart("a" * 8),), 2),
        ((ReasoningPart("r" * 12),), 3),
        ((ToolCall("an id", "look", '{"a":1}'),), 3),
        ((OpaquePart("x", "d" * 16),), 4),
        ((TextPart("ab"), TextPart("cd"), ReasoningPart("efgh")), 2),
    ],
)
def test_a_turn_is_all_that_the_model_wrote(parts: Any, expected: int) -> None:
    """Text, calls, and its visible reasoning, which is output too; the pieces are summed before they are rounded."""
    assert expected == turn_tokens(Turn(parts, "stop", "stop"))


def test_results_and_calls_of_a_conversation_count() -> None:
    """A tool's output is input of the next call; reasoning that is kept for people is not sent, and is not counted."""
    call = ToolCall("c1", "look", '{"a":1}')
    messages: list[Message] = [
        AssistantMessage((ReasoningPart("r" * 100), TextPart("t" * 5), call)),
        ToolMessage((ToolResult("c1", "look", "ok", "x" * 400, True),)),
    ]

    assert 5 + 11 + 400 == Estimator().conversation(messages)


@pytest.mark.parametrize("strategy", ["exact_prefix", "resend", "user_turn"])
def test_a_turn_that_goes_on_is_counted(strategy: ResumeStrategy) -> None:
    """It is sent behind the conversation; so is what asks for more of it, where that is said in words."""
    stored: list[Message] = [UserMessage("a" * 40)]
    resume = Resume((TextPart("b" * 400), OpaquePart("x", "c" * 40)), strategy)
    words = len(CONTINUE_TEXT) if strategy == "user_turn" else 0
    request = ModelRequest(messages=View(stored), resume=resume)

    assert tokens_of(480 + words) == Estimator().request(request, View(stored))


def test_a_gauge_learns_what_estimates_are_worth() -> None:
    """From requests that are big enough, and within reason; before that an estimate is what it is."""
    gauge = Gauge()
    before = gauge.adjusted(100)
    gauge.learn(199, 1990)
    small = gauge.adjusted(100)
    gauge.learn(1000, 1501)
    learnt = gauge.adjusted(100), gauge.adjusted(1)
    gauge.learn(1000, 100_000)
    most = gauge.adjusted(100)
    gauge.learn(1000, 0)

    assert (100, 100, (151, 2), 400, 25) == (before, small, learnt, most, gauge.adjusted(100))
