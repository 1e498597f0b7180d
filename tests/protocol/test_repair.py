"""Mending a conversation that was loaded: whatever it was, every call in it has its one result."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given

from protocol.history import INTERRUPTED_TEXT, History, first_fault, repair
from protocol.turns import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    calls_of,
    text_of,
)

from .drawn import conversations, is_clean, texts_in


def asking(*ids: str, text: str = "") -> AssistantMessage:
    return AssistantMessage((*((TextPart(text),) if text else ()), *(ToolCall(id, "add", "{}") for id in ids)))


def answering(*results: ToolResult) -> ToolMessage:
    return ToolMessage(results)


def ok(call: str, text: str = "1") -> ToolResult:
    return ToolResult(call, "add", "ok", text, True)


def interrupted(call: str) -> ToolResult:
    return ToolResult(call, "add", "interrupted", INTERRUPTED_TEXT, True)


@given(conversations)
def test_any_conversation_becomes_valid(messages: list[Message]) -> None:
    """Rule R2 holds of whatever comes out, and it can be sent: nothing empty, no lone surrogate (R3)."""
    mended = repair(messages)
    ids = [call.id for message in mended if isinstance(message, AssistantMessage) for call in calls_of(message.parts)]

    assert first_fault(mended) is None
    assert len(set(ids)) == len(ids)
    assert [] == [text for text in texts_in(_plain(mended)) if not is_clean(text)]
    for message in mended:
        if isinstance(message, AssistantMessage):
            assert calls_of(message.parts) or text_of(message.parts)
        elif isinstance(message, UserMessage):
            assert message.text


@given(conversations)
def test_repairing_twice_is_repairing_once(messages: list[Message]) -> None:
    """A conversation that was mended is left alone."""
    mended = repair(messages)

    assert mended == repair(mended)


@given(conversations)
def test_no_call_and_no_text_is_lost(messages: list[Message]) -> None:
    """All calls stay, and all that a person could read, in order."""
    mended = repair(messages)

    assert [name for name, _ in _calls(messages)] == [name for name, _ in _calls(mended)]
    assert [text for text in _user_texts(messages) if text] == _user_texts(mended)


@given(conversations)
def test_a_loaded_history_passes_its_check(messages: list[Message]) -> None:
    """What `History.load` makes can be sent and goes on from there."""
    history = History.load(messages)
    history.check()

    assert repair(messages)[: len(history)] == list(history.view()) or len(history) == len(repair(messages))
    for _, id in _calls(list(history.view())):
        assert history.knows_call(id)


def test_a_good_conversation_is_not_touched() -> None:
    """What is right stays exactly as it is."""
    good: list[Message] = [
        UserMessage("go"),
        asking("a", "b"),
        answering(ok("a"), ok("b")),
        AssistantMessage((TextPart("done"),)),
    ]

    assert good == repair(good)


def test_a_missing_result_is_interrupted() -> None:
    """A call without a result may have had an effect: the model is told so, in the call's place."""
    mended = repair([asking("a", "b", "c"), answering(ok("b"))])

    assert [asking("a", "b", "c"), answering(interrupted("a"), ok("b"), interrupted("c"))] == mended


def test_what_was_said_in_between_comes_behind_the_results() -> None:
    """A result that stands behind a message is moved to its call: what a tool did is not forgotten."""
    said, later = UserMessage("mail arrived"), UserMessage("more")
    mended = repair([asking("a", "b"), answering(ok("a", "1")), said, answering(ok("b", "2")), later])

    assert [asking("a", "b"), answering(ok("a", "1"), ok("b", "2")), said, later] == mended


def test_a_result_behind_the_next_turn_is_an_orphan() -> None:
    """A result belongs to the turn before it, whatever its id says."""
    mended = repair([asking("a"), asking("b"), answering(ok("a", "1"), ok("b", "2"))])

    assert ["interrupted", "ok"] == [
        result.status for message in mended if isinstance(message, ToolMessage) for result in message.results
    ]


def test_results_are_put_in_call_order() -> None:
    """The order of the calls is the order of the results, also where they came in several messages."""
    mended = repair([asking("a", "b"), answering(ok("b", "2")), answering(ok("a", "1"))])

    assert [asking("a", "b"), answering(ok("a", "1"), ok("b", "2"))] == mended


def test_orphans_and_duplicates_are_dropped() -> None:
    """A result without its call goes, and so does the second answer to one call: the first one was what happened."""
    mended = repair([
        answering(ok("z")),
        UserMessage("go"),
        asking("a"),
        answering(ok("a", "first"), ok("a", "second"), ok("z")),
        UserMessage("on"),
        answering(ok("a", "late")),
    ])

    assert [UserMessage("go"), asking("a"), answering(ok("a", "first")), UserMessage("on")] == mended


def test_ids_that_were_used_are_made_anew() -> None:
    """Two calls with one id become two, each with its own result; the vendor's id is remembered."""
    mended = repair([asking("a"), answering(ok("a", "1")), asking("a", "a"), answering(ok("a", "2"), ok("a", "3"))])
    (first, _), (second, _), (third, _) = [
        (call, None) for message in mended if isinstance(message, AssistantMessage) for call in calls_of(message.parts)
    ]
    answers = [result for message in mended if isinstance(message, ToolMessage) for result in message.results]

    assert "a" == first.id
    assert {"a"} == {second.vendor_id, third.vendor_id}
    assert 3 == len({first.id, second.id, third.id})
    assert ["1", "2", "3"] == [result.text for result in answers]
    assert [first.id, second.id, third.id] == [result.call for result in answers]


def test_what_holds_nothing_is_dropped() -> None:
    """Nothing empty is stored: no turn of white space, no empty prompt."""
    empty: list[Any] = [UserMessage(""), AssistantMessage(()), AssistantMessage((TextPart(" "),)), ToolMessage(())]

    assert [] == repair(empty)


def test_a_partial_message_stays_partial() -> None:
    """A text that was cut is not taken for a whole one after a restart."""
    partial = AssistantMessage((TextPart("half a"),), partial=True)

    assert [partial] == repair([partial])


def _plain(messages: list[Message]) -> Any:
    opaque_data_is_the_vendors = [
        msgspec.structs.replace(message, parts=tuple(part for part in message.parts if not hasattr(part, "data")))
        if isinstance(message, AssistantMessage)
        else message
        for message in messages
    ]
    return msgspec.to_builtins(opaque_data_is_the_vendors)


def _calls(messages: list[Message]) -> list[tuple[str, str]]:
    return [
        (_mended(call.name), call.id)
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in calls_of(message.parts)
    ]


def _user_texts(messages: list[Message]) -> list[str]:
    return [_mended(message.text) for message in messages if isinstance(message, UserMessage)]


def _mended(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
