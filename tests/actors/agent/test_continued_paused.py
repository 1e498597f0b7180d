"""A turn that the server itself paused is sent back until it is whole (loop.md D5: `resend`)."""

from __future__ import annotations

import pytest

from protocol.model import Resume
from protocol.turns import OpaquePart, TextPart, Turn
from tests.support.play import play

from ._cut import USED, agent, done, hops, last, profile

SEARCH = OpaquePart("strict", '{"search": "x"}')


@pytest.mark.parametrize("setting", [None, True])
def test_a_turn_that_the_server_paused_is_sent_back(setting: bool | None) -> None:
    """As it is, until it is whole; nobody needs to ask for it (D5)."""
    pause = Turn((TextPart("Searching."), SEARCH), "paused", "pause_turn", USED)
    script = [pause, Turn((TextPart(" Found."),), "stop", "end_turn", USED)]
    played = play(agent(script, known=profile("none"), automatic_continuation=setting))
    parts = (TextPart("Searching."), SEARCH, TextPart(" Found."))

    assert ("Searching. Found.", True) == (played.result.text, played.result.answered)
    assert [None, Resume(parts[:2], "resend")] == [asked.resume for asked in played.asked]
    assert parts == last(played.messages).parts
    assert [("finished", 0, "pause_turn"), ("started", 1, "resend"), ("finished", 1, "end_turn")] == hops(played)


def test_a_pause_needs_no_text() -> None:
    """What the server did so far is enough; two that bring nothing at all end it."""
    pause = Turn((SEARCH,), "paused", "pause_turn", USED)
    idle = Turn((), "paused", "pause_turn", USED)
    played = play(agent([pause, pause, done("Found.")], automatic_continuation=None))
    stuck = play(agent([pause, idle, idle, done("never")], automatic_continuation=None))

    assert "Found." == played.result.text
    assert (3, "length", "the server paused its work before any visible text") == (
        len(stuck.asked),
        stuck.result.finish_reason,
        stuck.result.stop_reason,
    )


def test_a_pause_may_be_left() -> None:
    """Never is never."""
    pause = Turn((TextPart("Searching."), SEARCH), "paused", "pause_turn", USED)
    played = play(agent([pause, done("never")], automatic_continuation=False))

    assert ("Searching.", "length", 1) == (played.result.text, played.result.finish_reason, len(played.asked))
