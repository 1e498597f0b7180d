"""The canonical conversation: parts in order, and what is read from them."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from protocol.codec import decode, encode
from protocol.turns import (
    AssistantMessage,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    Turn,
    UserMessage,
    calls_of,
    text_of,
)

from .drawn import messages, texts_in, turns

CALL = ToolCall("a", "add", "{}")
MESSAGES = UserMessage | AssistantMessage | ToolMessage


def test_text_is_joined_with_nothing_between() -> None:
    """The pieces of one turn are one text, whatever stands between them (loop.md 1)."""
    turn = Turn((TextPart("a"), ReasoningPart("thought"), TextPart("b"), CALL, TextPart("c")))

    assert "abc" == turn.text
    assert (CALL,) == turn.calls


def test_white_space_alone_is_no_text() -> None:
    """A turn of white space has no visible text."""
    assert "" == text_of((TextPart(" \n"), TextPart("\t")))


@given(turns)
def test_nothing_is_lost_or_reordered(turn: Turn) -> None:
    """Calls come out as they went in, in order."""
    assert [part for part in turn.parts if isinstance(part, ToolCall)] == list(calls_of(turn.parts))


@given(messages.filter(lambda message: all(text.isascii() for text in texts_in(_plain(message)))))
def test_every_message_survives_the_wire(message: Any) -> None:
    """A message decodes, by its role and its parts' types, to what it was."""
    assert message == decode(encode(message), MESSAGES)  # type: ignore[arg-type]


def test_defaults_take_no_room() -> None:
    """What is not set is not written: histories are long."""
    message = AssistantMessage((CALL, OpaquePart("x", "{}")))

    assert (
        b'{"role":"assistant","parts":[{"type":"call","id":"a","name":"add","arguments":"{}"},'
        b'{"type":"opaque","format":"x","data":"{}"}]}'
    ) == encode(message)


def _plain(message: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(message)
