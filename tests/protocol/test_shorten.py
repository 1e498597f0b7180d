"""Shortening: whole exchanges go, oldest first; what the run was asked for, what was said last and what just came stay."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.estimate import message_size
from protocol.history import first_fault
from protocol.shorten import clear_results, cut_results, going, kept_faults, transcript_of
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage

from .test_prune import GO, LONG, MORE, answers, asks, says


def size(messages: Sequence[Message]) -> int:
    return sum(map(message_size, messages))


def kept(messages: Sequence[Message], *, most: int, prompt: str = "", keep_last: int = 0) -> list[Message]:
    gone = going(messages, size, prompt=prompt, keep_last=keep_last, most=most)
    return [message for index, message in enumerate(messages) if index not in gone]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations as they may be before a model call: in order, with texts of any length."""
    texts = st.integers(0, 400).map(lambda number: "x" * number or "y")
    messages: list[Message] = [UserMessage(draw(texts))]
    for number in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(["user", "answer", "exchange"])):
            case "user":
                messages.append(UserMessage(draw(texts)))
            case "answer":
                messages += [says(draw(texts)), UserMessage(draw(texts))]
            case _:
                ids = [f"c{number}-{index}" for index in range(draw(st.integers(1, 3)))]
                messages.append(asks(*ids))
                messages.append(ToolMessage(tuple(ToolResult(id, "t", "ok", draw(texts)) for id in ids)))
    return messages


@pytest.mark.parametrize(
    ("most", "keep_last", "prompt", "left"),
    [
        (10**6, 0, "", LONG),
        (0, 0, "", [MORE, says("s2")]),
        (0, 0, "go", [GO, MORE, says("s2")]),
        (0, 2, "", [MORE, asks("c"), answers("c"), says("s2")]),
        (0, 5, "", [GO, *LONG[3:]]),
        (size(LONG) - 1, 0, "", LONG[4:]),
    ],
)
def test_the_oldest_go_until_it_fits(most: int, keep_last: int, prompt: str, left: list[Message]) -> None:
    """Not more than it takes; the last messages stay with the question that they answer."""
    assert left == kept(LONG, most=most, keep_last=keep_last, prompt=prompt)


def test_what_the_run_was_asked_for_outlives_its_rounds() -> None:
    """In a long run the rounds between the prompt and the end go, not the prompt; the newest of two that read the same."""
    rounds: list[Message] = [m for id in "abcd" for m in (asks(id), answers(id))]
    messages = [GO, says("s0"), GO, *rounds[:4], MORE, *rounds[4:]]

    assert [GO, MORE, *rounds[-2:]] == kept(messages, most=0, prompt="go")
    assert 7 not in going(messages, size, prompt="go", keep_last=0, most=0)
    assert {0, 1, 3, 4, 5, 6, 8, 9} == going(messages, size, prompt="go", keep_last=0, most=0)


@given(histories(), st.integers(0, 3000), st.integers(0, 8), st.booleans())
def test_what_is_left_of_any_conversation(
    messages: list[Message], most: int, keep_last: int, prompt_is_first: bool
) -> None:
    """It can be sent: pairs are whole, it begins with the user, keeps what it must, and fits or holds nothing that may go."""
    said = [message.text for message in messages if isinstance(message, UserMessage)]
    prompt = said[0] if prompt_is_first else said[-1]
    left = kept(messages, most=most, keep_last=keep_last, prompt=prompt)

    assert first_fault(left) is None
    assert kept_faults(messages, left, prompt=prompt) is None
    assert (
        messages[len(messages) - min(keep_last, len(messages)) :] == left[len(left) - min(keep_last, len(messages)) :]
    )
    assert size(left) <= size(messages)
    assert left == kept(left, most=most, keep_last=keep_last, prompt=prompt), "again it changes nothing"
    if keep_last == 0 and size(left) > most:
        assert len(left) <= 4, "the prompt, what was said last, and the last exchange"


def test_old_results_are_cleared() -> None:
    """The call stays with the word that its result was long; short ones, and those of the last exchange, stay."""
    old, new = [ToolMessage((ToolResult(id, "t", "ok", id * 300, True),)) for id in "ac"]
    short = ToolMessage((ToolResult("b", "t", "error", "b" * 100),))
    messages: list[Message] = [GO, asks("a"), old, asks("b"), short, asks("c"), new]
    cleared = clear_results(messages, max_chars=150, keep_last=0)
    (told,) = [m.results[0] for m in cleared[2:3] if isinstance(m, ToolMessage)]

    assert ("a", "t", "ok", True) == (told.call, told.name, told.status, told.entered)
    assert told.text.startswith("[A result of 300 characters was removed")
    assert [*messages[:2], *messages[3:]] == [*cleared[:2], *cleared[3:]]
    assert tuple(messages) == clear_results(messages, max_chars=150, keep_last=5)
    assert cleared == clear_results(cleared, max_chars=1, keep_last=0), "a word is not cleared again"


@given(histories(), st.integers(1, 400), st.integers(0, 3000))
def test_neither_way_lengthens(messages: list[Message], max_chars: int, most: int) -> None:
    """Whatever the numbers, no result gets longer, and calls keep theirs."""
    for changed in (
        clear_results(messages, max_chars=max_chars, keep_last=0),
        cut_results(messages, size, most=most),
    ):
        assert first_fault(changed) is None
        assert all(message_size(a) <= message_size(b) for a, b in zip(changed, messages, strict=True))


def test_results_are_cut_until_they_fit() -> None:
    """All to one length, in the middle; where nothing is too long, nothing is cut."""
    messages: list[Message] = [
        GO,
        asks("a", "b"),
        ToolMessage((ToolResult("a", "t", "ok", "a" * 9000), ToolResult("b", "t", "ok", "b"))),
    ]
    cut = cut_results(messages, size, most=2000)

    assert size(cut) <= 2000 < size(messages)
    assert isinstance(cut[2], ToolMessage)
    assert ["a" * 563 + "\n[... cut", "b"] == [result.text[: 563 + 9] for result in cut[2].results]
    assert tuple(messages) == cut_results(messages, size, most=size(messages))


def test_a_transcript() -> None:
    """Plain text, with what was called and what came of it; nothing in it is a tool block."""
    turn = AssistantMessage((TextPart("I look."), ToolCall("a", "look", '{"at": "x"}')))
    told = ToolMessage((ToolResult("a", "look", "error", "no " * 100),))
    text = transcript_of([GO, turn, told, says("done")], max_result_chars=20)

    assert 'USER: go\n\nASSISTANT: I look.\n\nCALL look {"at": "x"}' in text
    assert "RESULT of look (error): no no no n" in text
    assert "cut: 300 characters in full" in text
    assert text.endswith("ASSISTANT: done")


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        ([GO, MORE], None),
        ([UserMessage("In short."), GO, MORE], None),
        ([says("s"), GO, MORE], "it must begin with a user message"),
        ([GO, MORE, says("s")], "it must not end with the assistant: the model is to answer it"),
        ([MORE], "what the run was asked for is gone"),
        ([GO], "the user's last message is gone"),
        ([GO, MORE, asks("a"), answers("a"), asks("a"), answers("a")], "two of its calls have the same id"),
    ],
)
def test_what_must_be_left(after: list[Message], fault: str | None) -> None:
    """What a hook of anybody's gives back is held to the same."""
    assert fault == kept_faults([GO, says("s"), MORE], after, prompt="go")


def test_a_conversation_that_began_otherwise() -> None:
    """What it began and ended with before is no fault of who shortens it."""
    assert kept_faults([says("Hi!"), GO, says("s")], [says("Hi!"), GO, says("s")], prompt="") is None
