"""A decode in several requests that is cut, or fails, in the middle: nothing that was shown is lost (D3, D4)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Run
from actors.models.scripted import call
from protocol.errors import ContinuationInterrupted, ModelError, RunFailedError
from protocol.events import ContentDelta, HopFinished, RunCancelled, StepFinished
from protocol.model import Profile
from protocol.turns import AssistantMessage, TextPart, Turn, Unfinished
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.costs import Prices, counted
from tests.support.play import Played, event_of, play
from tests.support.scripts import Trickle

from ._cut import USED, agent, cut, done, hops, last, profile, shown

WORDS = profile("user_turn")
BEFORE = "It was the best of times"


def trickle(*replies: Any, known: Profile | None = None, act: Any = None, **options: Any) -> Played:
    """Replies that arrive piece by piece."""
    model = Trickle(replies, profile=known or profile())
    return play(agent(model, known=known, **options), act=act)


def kept(played: Played) -> str:
    """The text of the partial message at the end."""
    message = last(played.messages)
    assert message.partial
    (part,) = message.parts
    assert isinstance(part, TextPart)
    return part.text


async def cancel_later(run: Run) -> None:
    await trio.sleep(1.5)
    run.cancel("enough")


ONE_SECOND_EACH = (["One, ", 1.0, cut("One, ")], ["two, ", 1.0, "three, ", cut("two, three, ")], ["four"])


def test_a_cancel_keeps_the_text_of_all_pieces() -> None:
    """Those that were whole, and what had come of the one in flight; the request has its end."""
    played = trickle(*ONE_SECOND_EACH, act=cancel_later)

    assert "One, two, " == kept(played) == shown(played.events) == played.result.text
    assert [("finished", 0, "length"), ("started", 1, "exact_prefix"), ("finished", 1, "lost")] == hops(played)
    assert isinstance(played.events[-1], RunCancelled)
    assert (2, []) == (played.result.counters.llm_calls, played.all(StepFinished))


def test_the_wall_clock_does_too() -> None:
    """It is that limit's end, with the text so far (B5)."""
    played = trickle(*ONE_SECOND_EACH, wall_clock_seconds=1.5)

    assert ("One, two, ", "One, two, ") == (kept(played), played.result.text)
    assert ("deadline", "wall_clock") == (played.result.finish_reason, played.result.stopped_by)


def test_what_was_held_back_is_shown_at_the_cut() -> None:
    """A beginning that might have been a repetition is text, now that no more comes: shown and kept are one."""
    played = trickle([BEFORE, cut(BEFORE)], ["the best", 1.0, 1.0, "?"], known=WORDS, act=cancel_later)

    assert f"{BEFORE}the best" == kept(played) == shown(played.events)


def test_a_repetition_stays_dropped_at_the_cut() -> None:
    """What was dropped is nowhere."""
    played = trickle([BEFORE, cut(BEFORE)], ["the best of times, it", 2.0], known=WORDS, act=cancel_later)

    assert f"{BEFORE}, it" == kept(played) == shown(played.events)


@pytest.mark.parametrize("streams", [True, False])
def test_a_failure_keeps_the_text_of_all_pieces(streams: bool) -> None:
    """Also what the model says it had of its reply, and never streamed; the run fails with the cause (R3)."""
    error = ModelError("broke off", partial=Turn((TextPart("two, "),), end="lost", usage=USED))

    def fails(_request: Any) -> Any:
        return error if _request.resume is not None else cut("One, ")

    played = trickle(["One, ", cut("One, ")], ["two, ", error]) if streams else play(agent(fails))

    assert isinstance(played.error, RunFailedError)
    assert error is played.error.__cause__
    assert "One, two, " == kept(played) == played.result.text
    assert (2, "lost") == (played.result.counters.llm_calls, played.all(HopFinished)[-1].status)


def test_what_a_failed_piece_repeats_is_dropped() -> None:
    """As if it had come whole."""
    error = ModelError("broke off", partial=Turn((TextPart("the best of times, it was"),), end="lost"))
    played = play(agent([cut(BEFORE), error], known=WORDS))

    assert f"{BEFORE}, it was" == kept(played)


def test_the_books_hold_what_was_whole() -> None:
    """Requests that came to their end are settled as reported; the failed one with what it told of itself, or unknown."""
    told = ModelError("broke off", partial=Turn((TextPart("b"),), end="lost", usage=Usage(5, 0, 0, 1, 0, True)))
    with_usage = play(agent([cut("a"), told], prices=Prices(token=1.0)))
    without = play(agent([cut("a"), ModelError("broke off")], prices=Prices(token=1.0)))

    assert (USED + Usage(5, 0, 0, 1, 0, True), 46.0) == (with_usage.result.usage, with_usage.result.cost)
    assert (40, False, None) == (without.result.usage.total_tokens, without.result.usage.complete, without.result.cost)


def test_only_its_own_text_is_charged_to_a_piece_that_was_cut() -> None:
    """By estimate, a quarter of its bytes: the text of the pieces before has been paid (B3)."""
    replies = (["x" * 4000, cut("x" * 4000)], ["y" * 40, 1.0, 1.0])
    known = counted(7, continues_text="exact_prefix")
    accounts: list[Any] = []

    async def look(run: Run) -> None:
        accounts.append(run._core.account)
        await cancel_later(run)

    trickle(*replies, known=known, act=look, max_total_tokens=10_000)

    assert 40 + 7 + 10 == accounts[0].books.charged_tokens


def test_a_lost_piece_fails_the_run() -> None:
    """A stream without its end is none; all text is kept (section 3, step 6)."""
    played = play(agent([cut("One, "), cut("two", finish="stop", end="lost"), done("never")]))

    assert ("One, two", "failure") == (kept(played), played.result.stopped_by)


def test_a_turn_that_its_model_did_not_stream_is_kept_too() -> None:
    """While the next piece of it is in flight."""

    class Silent:
        name = "silent"
        profile = profile()

        async def turn(self, request: Any, _emit: Any) -> Turn:
            if request.resume is not None:
                await trio.sleep(5)
            return cut("One, ")

    played = play(agent(Silent()), act=cancel_later)

    assert ("One, ", "One, ") == (kept(played), played.result.text)
    assert [] == played.all(ContentDelta)


def test_a_turn_that_is_made_anew_stands_until_the_new_one_speaks() -> None:
    """Cut before that, its text is kept."""
    known = profile(default_max_tokens=10, max_output_tokens=99)
    half = cut("I write.", call("t", '{"a'))
    silent = trickle(["I write.", half], [2.0], known=known, act=cancel_later)
    speaking = trickle(["I write.", half], [1.0, "Now", 2.0], known=known, act=cancel_later)

    assert ("I write.", "Now") == (kept(silent), kept(speaking))
    assert ("I write.", "Now") == (shown(silent.events), shown(speaking.events))


def test_a_stop_lets_the_turn_become_whole() -> None:
    """The step in hand is finished (M2)."""

    async def stop(run: Run) -> None:
        await event_of(run, HopFinished)
        run.stop()

    played = trickle(["One, ", cut("One, ")], [1.0, "two."], act=stop)

    assert ("One, two.", True) == (played.result.text, played.result.answered)


# ---------------------------------------------------------------- a token that broke off within a call


def interrupted(**options: Any) -> ContinuationInterrupted:
    partial = Turn((TextPart("One, two, "),), end="lost", usage=options.pop("usage", USED + USED))
    return ContinuationInterrupted(
        "it broke off", reason="transport", partial=partial, interaction_id="i1", continuation_ids=("i1", "i2"), hops=2,
        **options,
    )  # fmt: skip


def test_what_a_token_resumes_is_in_the_partial_result() -> None:
    """All text is kept, what was whole is settled, and the token, its owner and ids are there (D3)."""
    error = interrupted(token="t2")
    played = play(agent([error]))

    assert error is (played.error and played.error.__cause__)
    assert "One, two, " == kept(played) == played.result.text
    assert (USED + USED, 1) == (played.result.usage, played.result.counters.llm_calls)
    assert Unfinished("t2", "i1", ("i1", "i2")) == played.result.unfinished


def test_without_a_token_nothing_can_be_resumed() -> None:
    """The text is kept all the same; usage that is not known is not known."""
    played = play(agent([interrupted(token=None, usage=UNKNOWN_USAGE)]))

    assert (None, "One, two, ", False) == (played.result.unfinished, kept(played), played.result.usage.complete)


def test_the_conversation_goes_on_after_it() -> None:
    """The partial message stands in the next request."""
    played = play(agent(["Fine."]), messages=(AssistantMessage((TextPart("One, two, "),), partial=True),))

    assert "Fine." == played.result.text
    assert AssistantMessage((TextPart("One, two, "),), partial=True) == played.asked[0].messages[0]
