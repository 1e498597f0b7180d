"""Pruning: a conversation is cut between exchanges, never inside one; and the calls that wait at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.scripted import call, reply
from protocol.errors import SpecError
from protocol.history import first_fault, repair
from protocol.prune import prune_messages, unanswered_calls
from protocol.turns import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    calls_of,
)
from protocol.views import View
from tests.support.play import Played, Stage, perform
from tests.support.scripts import Bench
from tests.support.specs import agent

from .drawn import conversations


def asks(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCall(id, "t", "{}") for id in ids))


def answers(*ids: str) -> ToolMessage:
    return ToolMessage(tuple(ToolResult(id, "t", "ok", "1", True) for id in ids))


def says(text: str) -> AssistantMessage:
    return AssistantMessage((TextPart(text),))


GO, MORE = UserMessage("go"), UserMessage("more")
LONG: list[Message] = [GO, asks("a", "b"), answers("a", "b"), says("s1"), MORE, asks("c"), answers("c"), says("s2")]


def blocks_to_messages(blocks: list[int | str]) -> list[Message]:
    """A text is what a user says, 0 an answer, n an exchange of n calls."""
    messages: list[Message] = []
    for number, block in enumerate(blocks):
        if isinstance(block, str):
            messages.append(UserMessage(block))
        elif block == 0:
            messages.append(says(f"answer {number}"))
        else:
            ids = [f"{number}-{index}" for index in range(block)]
            messages += [asks(*ids), answers(*ids)]
    return messages


long_conversations = st.lists(st.integers(0, 3) | st.just("user"), max_size=12).map(blocks_to_messages)
"""Whole exchanges, answers and prompts, in any order: rule R2 holds."""
whole = long_conversations | conversations.map(repair)
counts = st.integers(0, 12)


@pytest.mark.parametrize(
    ("keep_first", "keep_last", "expected"),
    [
        (0, 0, []),
        (0, 1, [4, 7]),  # the answer, and what it answers
        (0, 2, [4, 5, 6, 7]),  # results come with their calls
        (0, 3, [4, 5, 6, 7]),
        (0, 4, [4, 5, 6, 7]),  # a user message needs nothing before it
        (0, 5, [0, 3, 4, 5, 6, 7]),
        (0, 6, [0, 1, 2, 3, 4, 5, 6, 7]),
        (0, 99, [0, 1, 2, 3, 4, 5, 6, 7]),
        (1, 0, [0]),
        (2, 0, [0, 1, 2]),  # calls come with their results
        (1, 1, [0, 4, 7]),
        (2, 1, [0, 1, 2, 4, 7]),
        (5, 1, [0, 1, 2, 3, 4, 7]),  # the prompt is among the first ones already
        (5, 2, [0, 1, 2, 3, 4, 5, 6, 7]),
        (6, 1, [0, 1, 2, 3, 4, 5, 6, 7]),
        (99, 99, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_the_cut_moves_outwards(keep_first: int, keep_last: int, expected: list[int]) -> None:
    """What a cut would part is kept whole, and the end begins with the user message that it works for."""
    kept = prune_messages(LONG, keep_first=keep_first, keep_last=keep_last)

    assert tuple(LONG[place] for place in expected) == kept
    assert kept == prune_messages(View(LONG), keep_first=keep_first, keep_last=keep_last)


def test_a_long_run_of_one_prompt_is_cut_all_the_same() -> None:
    """The prompt is kept, and not all that stands between it and the end."""
    rounds = [message for number in range(50) for message in (asks(f"c{number}"), answers(f"c{number}"))]

    assert (GO, *rounds[-4:]) == prune_messages([GO, *rounds], keep_last=3)


def test_a_conversation_without_a_user_message_begins_as_it_does() -> None:
    """What is not there cannot be kept: the end stands alone."""
    assert (says("b"),) == prune_messages([says("a"), says("b")], keep_last=1)


@given(whole, counts, counts)
def test_a_whole_conversation_stays_whole(messages: list[Message], first: int, last: int) -> None:
    """Where every call has its one result directly after it, that holds for what is kept."""
    kept = prune_messages(messages, keep_first=first, keep_last=last)

    assert first_fault(messages) is None
    assert first_fault(kept) is None


@given(whole, counts, counts)
def test_at_least_the_wish_is_kept_and_hardly_more(messages: list[Message], first: int, last: int) -> None:
    """The first and last messages that were asked for are there; three more at most are."""
    kept = prune_messages(messages, keep_first=first, keep_last=last)

    assert tuple(messages[:first]) == kept[: min(first, len(messages))]
    assert tuple(messages[max(len(messages) - last, 0) :]) == kept[max(len(kept) - last, 0) :]
    assert len(kept) <= first + last + 3


@given(conversations, counts, counts)
def test_no_message_is_made_changed_or_moved(messages: list[Message], first: int, last: int) -> None:
    """What is kept are the messages themselves, each at most once and in their order, however broken they are."""
    kept = prune_messages(messages, keep_first=first, keep_last=last)
    places = iter(messages)

    assert all(any(message is kept_one for message in places) for kept_one in kept)


@given(conversations, counts, counts)
def test_it_never_begins_with_results(messages: list[Message], first: int, last: int) -> None:
    """No server takes a conversation that does, and no input, whole or broken, leads to one."""
    kept = prune_messages(messages, keep_first=first, keep_last=last)

    assert not kept or not isinstance(kept[0], ToolMessage)


@given(whole, st.integers(1, 12))
def test_it_begins_with_a_user_message_where_it_can(messages: list[Message], last: int) -> None:
    """Where the conversation begins with one, what is kept of it does, whatever the cut fell on."""
    kept = prune_messages([GO, *messages], keep_last=last)

    assert isinstance(kept[0], UserMessage)


@given(conversations, counts, counts)
def test_pruning_again_changes_nothing(messages: list[Message], first: int, last: int) -> None:
    """What fits is left as it is."""
    kept = prune_messages(messages, keep_first=first, keep_last=last)

    assert kept == prune_messages(kept, keep_first=first, keep_last=last)


@given(long_conversations, st.integers(1, 3), st.integers(0, 3), st.integers(1, 6))
def test_calls_that_wait_are_kept_with_what_they_have(
    messages: list[Message], asked: int, answered: int, last: int
) -> None:
    """An exchange that is not yet whole is not parted either."""
    ids = [f"open-{index}" for index in range(asked)]
    done = [answers(*ids[:answered])] if answered else []
    open_end: list[Message] = [*messages, asks(*ids), *done]
    kept = prune_messages(open_end, keep_last=last)

    assert ids[answered:] == [one.id for one in unanswered_calls(kept)]
    assert [asks(*ids), *done] == list(kept[-len(done) - 1 :])


@pytest.mark.parametrize("value", [-1, 1.0, "2", None, True], ids=repr)
@pytest.mark.parametrize("name", ["keep_last", "keep_first"])
def test_a_number_that_is_none_is_refused(name: str, value: Any) -> None:
    """The error names the setting, what it was and what it may be."""
    with pytest.raises(SpecError) as caught:
        prune_messages(LONG, **{"keep_last": 1, name: value})

    assert f"prune_messages({name}=) must be an integer >= 0; it is {value!r}" == str(caught.value)


def parted(message: Message) -> list[Message]:
    """A message for each result, as some stores hold them."""
    return [ToolMessage((one,)) for one in message.results] if isinstance(message, ToolMessage) else [message]


@pytest.mark.parametrize("keep_last", range(1, 6))
@pytest.mark.parametrize("apart", [False, True], ids=["one message of results", "a message for each result"])
def test_a_session_that_was_compacted_goes_on(keep_last: int, *, apart: bool) -> None:
    """DNG-07: a cut that falls into a parallel batch keeps or drops the batch whole, and the next run is answered."""
    bench = Bench()
    script = [reply("", call("t", id="A"), call("t", id="B")), "s1", "s2"]

    async def scene(stage: Stage) -> tuple[Played, Played]:
        spec = agent(script, bench.tool())
        before = await stage.play(await stage.spawn(spec), "begin")
        stored = [part for message in before.messages for part in (parted(message) if apart else [message])]
        compacted = prune_messages(stored, keep_last=keep_last)
        return before, await stage.play(await stage.spawn(spec, messages=compacted), "go")

    before, after = perform(scene)
    (request,) = after.asked
    ids = [one.id for sent in request.messages if isinstance(sent, AssistantMessage) for one in calls_of(sent.parts)]
    results = [one.call for sent in request.messages if isinstance(sent, ToolMessage) for one in sent.results]

    assert "s1" == before.result.text
    assert "s2" == after.result.text
    assert ids in ([], ["A", "B"])
    assert ids == results
    assert bool(ids) == (keep_last > 1)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([GO], []),
        ([GO, says("done")], []),
        ([GO, asks("a", "b")], ["a", "b"]),
        ([GO, asks("a", "b"), answers("b")], ["a"]),
        ([GO, asks("a", "b"), answers("b"), answers("a")], []),
        ([GO, asks("a"), answers("a"), asks("b")], ["b"]),
        ([GO, asks("a"), asks("b")], ["a", "b"]),
        ([GO, asks("a"), asks("b"), answers("b")], []),
        ([GO, asks("a"), says("never mind")], []),
        ([GO, asks("a"), MORE], []),
        ([GO, asks("a"), answers("a"), asks("a")], ["a"]),  # an id used again is another call
        ([GO, asks("a", "a"), answers("a")], ["a"]),  # one result answers one call
        ([GO, answers("ghost"), asks("a")], ["a"]),
    ],
)
def test_the_calls_that_wait(messages: Sequence[Message], expected: list[str]) -> None:
    """Those at the end without a result; what the conversation has gone past waits no more."""
    assert expected == [one.id for one in unanswered_calls(messages)]
    assert expected == [one.id for one in unanswered_calls(View(list(messages)))]


@given(whole)
def test_nothing_waits_in_a_whole_conversation(messages: list[Message]) -> None:
    """Where every call is answered, none is left over."""
    assert () == unanswered_calls(messages)


@given(whole, st.integers(1, 4))
def test_results_for_all_that_waits_make_it_whole(messages: list[Message], asked: int) -> None:
    """The calls are given in the order that their results must have."""
    open_end: list[Message] = [*messages, asks(*[f"open-{index}" for index in range(asked)])]
    results = answers(*[one.id for one in unanswered_calls(open_end)])

    assert first_fault(open_end) is not None
    assert first_fault([*open_end, results]) is None
