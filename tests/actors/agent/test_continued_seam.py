"""A model that is asked in words repeats itself; what is shown and what is kept is the text without that (D5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import AgentSpec
from protocol.events import ContentDelta, Rollback
from protocol.model import (
    CONTINUE_TEXT,
    HopBegan,
    HopEnded,
    ModelEmit,
    ModelRequest,
    Profile,
    RequestSent,
    TextDelta,
    Undone,
)
from protocol.text import clean
from protocol.turns import AssistantMessage, Hop, TextPart, Turn, UserMessage
from protocol.usage import NO_USAGE
from tests.support.play import Played, play
from tests.support.strict import StrictModel

from ._cut import agent, cut, done, hops, last, profile, shown

WORDS = profile("user_turn")
BEFORE = "It was the best of times, it was the worst"
AGAIN = "times, it was the worst of times."
CODE = "So:\n\n```python\ndef area(width, height):\n    return wid"


class Streams:
    """A model that reports these events, and returns the turn at the end of each reply."""

    name = "streams"

    def __init__(self, *replies: Sequence[Any], known: Profile = WORDS) -> None:
        self._replies = iter(replies)
        self.profile = known
        self.requests: list[ModelRequest] = []

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        self.requests.append(request)
        emit(RequestSent())
        text = ""
        for event in next(self._replies):
            if isinstance(event, Turn):
                return event
            if isinstance(event, Undone):
                text = text[: event.text]
            elif isinstance(event, str):
                text += event
            emit(TextDelta(event) if isinstance(event, str) else event)
        return done(text)


def stream(*replies: Sequence[Any], **options: Any) -> Played:
    return play(AgentSpec(model=StrictModel(Streams(*replies)), automatic_continuation=True, **options))


def test_the_request_asks_in_words() -> None:
    """The text so far is the model's own turn, and behind it stands what to do; neither is stored."""
    played = play(agent([cut("half"), done(" whole")], known=WORDS))
    resume = played.asked[1].resume
    assert resume is not None

    assert [UserMessage("go"), AssistantMessage(resume.parts), UserMessage(CONTINUE_TEXT)] == ModelRequest(
        messages=played.asked[1].messages, resume=resume
    ).conversation()
    assert (UserMessage("go"), AssistantMessage((TextPart("half whole"),))) == played.messages
    assert [("finished", 0, "length"), ("started", 1, "user_turn"), ("finished", 1, "stop")] == hops(played)


@pytest.mark.parametrize(
    ("before", "reply", "whole"),
    [
        (BEFORE, AGAIN, "It was the best of times, it was the worst of times."),
        (CODE, "```python\n    return width * height\n```", f"{CODE}th * height\n```"),
        ("The answer is forty", "-two.", "The answer is forty-two."),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_is_repeated_is_neither_shown_nor_kept(before: str, reply: str, whole: str, size: int) -> None:
    """However the reply arrives: no delta is taken back, and the deltas are the text."""
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
    played = stream([before, cut(before)], pieces)

    assert whole == played.result.text == shown(played.events) == last(played.messages).parts[0].text  # type: ignore[union-attr]
    assert [] == played.all(Rollback)


def test_it_is_shown_as_soon_as_it_is_known_to_be_new() -> None:
    """Only what may be a repetition waits."""
    played = stream([BEFORE, cut(BEFORE)], ["times, it", " was the", " worst", " of ", "times."])

    assert [BEFORE, " of ", "times."] == [event.text for event in played.all(ContentDelta)]


def test_a_server_that_goes_on_by_itself_repeats_nothing() -> None:
    """What it says twice, it says twice."""
    played = play(agent([cut(BEFORE), done(AGAIN)], known=profile("exact_prefix")))

    assert BEFORE + AGAIN == played.result.text


def test_a_structure_is_never_put_together() -> None:
    """JSON that was cut stays cut where it cannot be made anew: nothing is joined inside it."""
    options = {"response_format": {"type": "json_object"}}
    played = play(agent([cut('{"a": "x'), done('{"a": "xy"}')], known=WORDS, provider_options=options))

    assert (1, '{"a": "x', "length") == (len(played.asked), played.result.text, played.result.finish_reason)


def test_a_structure_is_made_anew_under_a_bigger_cap() -> None:
    """What was shown of the first is void from when the second begins (D5)."""
    known = attrs.evolve(WORDS, default_max_tokens=10, max_output_tokens=99)
    options = {"response_format": {"type": "json_object"}}
    played = play(agent([cut('{"a": "x'), done('{"a": "xy"}')], known=known, provider_options=options))

    assert ('{"a": "xy"}', True) == (played.result.text, played.result.answered)
    assert '{"a": "xy"}' == shown(played.events)
    assert ([None, 99], [None, None]) == ([a.max_tokens for a in played.asked], [a.resume for a in played.asked])
    assert 0 == played.only(Rollback).to


# ---------------------------------------------------------------- a model that retries, or makes several requests itself


def test_marks_of_a_piece_are_those_of_the_message() -> None:
    """A model takes back a part of its own reply; the text before it stands."""
    replies = ["Hello", cut("Hello")], [" wor", Undone(text=1), "there, ", "Ann", Undone(text=8), "Bob"]
    played = stream(*replies)

    assert "Hello there, Bob" == played.result.text == shown(played.events)
    assert [6, 13] == [event.to for event in played.all(Rollback)]


def test_what_is_taken_back_may_have_been_held_back() -> None:
    """Of a repetition nothing was shown: nothing is to be taken back, and what comes again is looked at again."""
    replies = [BEFORE, cut(BEFORE)], ["times, it was", Undone(), AGAIN]
    dropped = [BEFORE, cut(BEFORE)], [AGAIN, Undone(text=5), ", it was the worst of all."]

    assert f"{BEFORE} of times." == stream(*replies).result.text
    assert f"{BEFORE} of all." == stream(*dropped).result.text


def test_hops_of_the_model_are_numbered_on() -> None:
    """Those that it makes within its call stand between those of the run, and are told once."""
    first = [
        HopBegan(0),
        "a",
        HopEnded(0, "i0", "more", NO_USAGE),
        HopBegan(1),
        "b",
        HopEnded(1, "i1", "max", NO_USAGE),
    ]
    second = [
        HopBegan(0),
        "c",
        HopEnded(0, "i2", "more", NO_USAGE),
        HopBegan(1),
        "d",
        HopEnded(1, "i3", "done", NO_USAGE),
    ]
    inner = Turn((TextPart("ab"),), "length", "max", hops=(Hop("i0", "more", NO_USAGE), Hop("i1", "max", NO_USAGE)))
    outer = Turn((TextPart("cd"),), "stop", "done", hops=(Hop("i2", "more", NO_USAGE), Hop("i3", "done", NO_USAGE)))
    played = stream([*first, inner], [*second, outer])

    assert "abcd" == played.result.text
    assert [
        ("started", 0, "token"),
        ("finished", 0, "more"),
        ("started", 1, "token"),
        ("finished", 1, "max"),
        ("started", 2, "user_turn"),
        ("finished", 2, "more"),
        ("started", 3, "token"),
        ("finished", 3, "done"),
    ] == hops(played)
    assert [("i0", "token"), ("i1", "token"), ("i2", "user_turn"), ("i3", "token")] == [
        (hop.interaction, hop.strategy) for hop in played.result.steps[0].hops
    ]


# ---------------------------------------------------------------- whatever arrives

words = st.sampled_from(["a", "bc", " ", "\n", "```python\n", "```\n", BEFORE, AGAIN, CODE, "wid", "    return wid", "\ud83d"])  # fmt: skip
texts = st.lists(words, max_size=4).map("".join)


@st.composite
def replies(draw: st.DrawFn) -> list[list[str]]:
    """Pieces of one decode, each in deltas; many begin with the end of the one before."""
    made: list[list[str]] = []
    before = ""
    for _ in range(draw(st.integers(2, 4))):
        again = before[-draw(st.integers(1, 40)) :] if draw(st.booleans()) else ""
        text = again + draw(texts)
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
        made.append([text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if b > a])
        before = text
    return made


@given(replies())
def test_the_deltas_are_the_text(pieces: list[list[str]]) -> None:
    """Joined, they are what the result says; none is ever taken back."""
    made = [[*deltas, cut("".join(deltas))] for deltas in pieces[:-1]] + [pieces[-1]]
    played = stream(*made)
    text = clean(shown(played.events))

    assert [] == played.all(Rollback)
    assert (text if text.strip() else "") == played.result.steps[0].text == played.result.text
