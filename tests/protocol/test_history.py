"""The history: grows by whole exchanges, and is checked from where it was checked last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.history import History, first_fault
from protocol.turns import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from .drawn import conversations

ASK = AssistantMessage((TextPart("hm"), ToolCall("a", "add", "{}"), ToolCall("b", "add", "{}")))
RESULTS = (ToolResult("a", "add", "ok", "1", True), ToolResult("b", "add", "error", "no"))


def full_history() -> History:
    history = History()
    history.append(UserMessage("go"))
    history.append_exchange(ASK, RESULTS, "go on")
    history.append(AssistantMessage((TextPart("done"),)))
    return history


def test_an_exchange_is_stored_whole() -> None:
    """Turn, results and the decision's message stand together, in this order."""
    expected = [
        UserMessage("go"),
        ASK,
        ToolMessage(RESULTS),
        UserMessage("go on"),
        AssistantMessage((TextPart("done"),)),
    ]

    assert expected == list(full_history().view())
    assert len(expected) == len(full_history())


@pytest.mark.parametrize(
    "results",
    [(), RESULTS[:1], RESULTS[::-1], (*RESULTS, RESULTS[0]), (RESULTS[0], RESULTS[0])],
    ids=["none", "too few", "wrong order", "too many", "twice"],
)
def test_results_that_do_not_answer_are_refused(results: tuple[ToolResult, ...]) -> None:
    """An exchange is appended whole or not at all (R3)."""
    history = History()
    with pytest.raises(ValueError, match="do not answer"):
        history.append_exchange(ASK, results)

    assert 0 == len(history)
    assert not history.knows_call("a")


def test_a_turn_with_calls_needs_its_results() -> None:
    """There is no way to store a call alone."""
    with pytest.raises(ValueError, match="append_exchange"):
        History().append(ASK)


def test_a_turn_without_calls_is_no_exchange() -> None:
    """Results without calls have no place."""
    with pytest.raises(ValueError, match="do not answer"):
        History().append_exchange(AssistantMessage((TextPart("x"),)), ())


def test_it_knows_its_calls() -> None:
    """Ids that were used are known, so that new ones can be new (R2)."""
    history = full_history()

    assert [True, True, False] == [history.knows_call(call) for call in ("a", "b", "c")]


def test_a_view_does_not_grow() -> None:
    """What was handed out stays what it was."""
    history = full_history()
    view = history.view()
    history.append(UserMessage("more"))

    assert 5 == len(view)
    assert UserMessage("more") not in view
    assert 6 == len(history.view())


def test_the_check_names_the_fault() -> None:
    """A history that was spoilt from outside is refused, with the place and the ids."""
    history = full_history()
    history._messages[2] = ToolMessage(RESULTS[:1])
    with pytest.raises(ValueError, match=r"message 1 has the calls \['a', 'b'\], answered are \['a'\]"):
        history.check()


def test_the_check_does_not_look_back() -> None:
    """What was right is not checked again: that would make a long run quadratic."""
    history = full_history()
    history.check()
    history._messages[2] = ToolMessage(())
    history.append_exchange(ASK, RESULTS)
    history.check()
    history.append(UserMessage("more"))
    history._messages[-1] = ToolMessage(())

    with pytest.raises(ValueError, match="message 7 holds results"):
        history.check()


@pytest.mark.parametrize("ids", [("a", "a"), ("",), ("a", "")])
def test_ids_that_are_not_ids_are_a_fault(ids: tuple[str, ...]) -> None:
    """Two calls with one id, or one without, cannot be told apart, however well they are answered."""
    asked = AssistantMessage(tuple(ToolCall(id, "add", "{}") for id in ids))
    answered = ToolMessage(tuple(ToolResult(id, "add", "ok", "1", True) for id in ids))

    assert "message 0 has empty or repeated call ids" == first_fault([asked, answered])


@given(conversations)
def test_checking_from_the_start_is_the_oracle(messages: list[Message]) -> None:
    """The first fault is where a plain reading finds it, and nowhere if all calls are answered."""
    assert plain_fault(messages) == (first_fault(messages) is not None)


@given(conversations, st.data())
def test_checking_piece_by_piece_finds_what_checking_all_does(messages: list[Message], data: st.DataObject) -> None:
    """A check that goes on from the last good place comes to the same verdict as one over everything."""
    cut = data.draw(st.integers(0, len(messages)))
    whole = first_fault(messages)
    if first_fault(messages[:cut]) is None:
        assert whole == first_fault(messages, cut)


def plain_fault(messages: list[Message]) -> bool:
    for index, message in enumerate(messages):
        after = messages[index + 1] if index + 1 < len(messages) else None
        before = messages[index - 1] if index else None
        if isinstance(message, AssistantMessage):
            calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            answered = [result.call for result in after.results] if isinstance(after, ToolMessage) else []
            if calls and (answered != calls or len(set(calls)) < len(calls) or "" in calls):
                return True
        if isinstance(message, ToolMessage):
            if not isinstance(before, AssistantMessage):
                return True
            if not any(isinstance(part, ToolCall) for part in before.parts):
                return True
    return False


HALF = AssistantMessage((TextPart("half"),), partial=True)


def test_a_partial_answer_is_taken_back_in_hand() -> None:
    """It may be appended again, longer; whoever looked at the history before goes on to see what was there."""
    history = History.load([UserMessage("go"), HALF])
    before = history.view()
    partial = history.partial
    history.take_partial()
    history.append(AssistantMessage((TextPart("half and half"),)))

    assert HALF == partial
    assert [UserMessage("go"), HALF] == list(before)
    assert [UserMessage("go"), AssistantMessage((TextPart("half and half"),))] == list(history.view())
    assert None is history.partial


@pytest.mark.parametrize(
    "messages", [[], [UserMessage("go")], [HALF, UserMessage("go")], [AssistantMessage((TextPart("whole"),))]]
)
def test_nothing_else_is_taken_back(messages: list[Message]) -> None:
    """A history goes back by no other message."""
    history = History.load(messages)
    history.take_partial()

    assert (messages, None) == (list(history.view()), history.partial)


def test_what_comes_in_its_place_is_checked() -> None:
    """The check goes on where the message was taken from, not behind it (R2)."""
    history = History.load([UserMessage("go"), HALF])
    history.check()
    history.take_partial()
    history._messages.append(ToolMessage(RESULTS))

    with pytest.raises(ValueError, match="message 1 holds results"):
        history.check()


def test_a_compaction_replaces_all_of_it() -> None:
    """Views made before go on to show what was there; what came instead is checked, and its calls are known as well."""
    history = full_history()
    before = list(history.view())
    view = history.view()
    other = AssistantMessage((ToolCall("new", "add", "{}"),))
    shorter: list[Message] = [UserMessage("go"), other, ToolMessage((ToolResult("new", "add", "ok", "1", True),))]
    history.replace(shorter)
    history.check()
    history.append(UserMessage("more"))

    assert before == list(view)
    assert [*shorter, UserMessage("more")] == list(history.view())
    assert (1, True, True) == (history.rewrites, history.knows_call("new"), history.knows_call("a"))


def test_a_broken_one_replaces_nothing() -> None:
    """R2 holds for what would be stored, or nothing is."""
    history = full_history()
    before = list(history.view())

    with pytest.raises(ValueError, match="message 0 has the calls"):
        history.replace([ASK])
    assert (before, 0) == (list(history.view()), history.rewrites)
