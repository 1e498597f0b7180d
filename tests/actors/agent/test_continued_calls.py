"""Tool calls that a token limit cut never run; where a cap that nobody set cut them, the turn is made anew (section 3, 6)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.models.scripted import call
from protocol.events import Rollback, StepFinished, ToolCallDelta, ToolFinished, UsageReport
from protocol.model import ModelEmit, ModelRequest, TextDelta
from protocol.turns import Hop, ToolMessage, Turn
from tests.support.costs import counted
from tests.support.play import Played, play
from tests.support.scripts import Bench

from ._cut import USED, agent, cut, done, hops, profile, shown

KNOWN = profile(default_max_tokens=10, max_output_tokens=99)
HALF_A_CALL = call("t", '{"path": "a', id="c1")


def statuses(played: Played) -> list[tuple[str, bool]]:
    return [(event.status, event.started) for event in played.all(ToolFinished)]


@pytest.mark.parametrize("setting", [None, True])
def test_it_is_made_anew_with_a_bigger_cap(setting: bool | None) -> None:
    """In the same step; the whole call runs, the cut one leaves nothing, and is paid."""
    bench = Bench()
    script = [cut("I write.", HALF_A_CALL), done("I write it.", call("t", {}, id="c1")), done("Done.")]
    played = play(agent(script, bench.tool(), known=KNOWN, automatic_continuation=setting))
    first = played.result.steps[0]

    assert ({"t": 1}, "Done.", [("ok", True)]) == (bench.runs, played.result.text, statuses(played))
    assert [None, 99, None] == [asked.max_tokens for asked in played.asked]
    assert {None} == {asked.resume for asked in played.asked}
    assert ("I write it.", USED + USED) == (first.text, first.usage)
    assert (Hop(None, "length", USED, "restart_bigger"), Hop(None, "tool_calls", USED, "restart_bigger")) == first.hops
    assert [("finished", 0, "length"), ("started", 1, "restart_bigger"), ("finished", 1, "tool_calls")] == hops(played)
    assert (2, 3) == (len(played.all(StepFinished)), played.result.counters.llm_calls)
    assert 1 == played.result.counters.tool_iterations


def test_what_was_shown_of_it_is_void_when_the_new_one_speaks() -> None:
    """Text and calls are taken back, and come again."""
    script = [cut("I write.", HALF_A_CALL), done("Now: ", call("t", {}, id="c1")), done("Done.")]
    played = play(agent(script, Bench().tool(), known=KNOWN))
    kinds = [event.type for event in played.events if isinstance(event, (Rollback, ToolCallDelta))]

    assert ["tool_call_delta", "rollback", "tool_call_delta"] == kinds
    assert (0, 0, 0) == (played.only(Rollback).to, played.only(Rollback).reasoning_to, played.only(Rollback).calls_to)
    assert "Now: Done." == shown(played.events)


def test_cut_again_it_is_answered() -> None:
    """Once per turn; then every call is an error, nothing has run, it is a round, and the model may ask anew."""
    bench = Bench()
    script = [cut("", HALF_A_CALL), cut("", HALF_A_CALL), done("Too long, I see.")]
    played = play(agent(script, bench.tool(), known=KNOWN))

    assert ({}, [("error", False)], 1) == (bench.runs, statuses(played), played.result.counters.tool_iterations)
    assert ("Too long, I see.", 3) == (played.result.text, len(played.asked))
    assert isinstance(played.messages[2], ToolMessage)


@pytest.mark.parametrize(("most", "calls"), [(0, 2), (1, 4), (2, 6)])
def test_it_counts_apart_from_what_is_asked_again(most: int, calls: int) -> None:
    """`max_reasks` bounds the turns that were cut, each of which may be made anew once (R5)."""
    played = play(agent(lambda _request: cut("", call("t", '{"a')), Bench().tool(), known=KNOWN, max_reasks=most))

    assert (calls, "length", most + 1) == (
        len(played.asked),
        played.result.finish_reason,
        played.result.counters.tool_iterations,
    )


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"automatic_continuation": False}, KNOWN),
        ({"max_tokens": 10}, KNOWN),
        ({}, profile(default_max_tokens=10)),
        ({}, profile()),
    ],
    ids=["never", "the caller's cap", "no bigger one", "nothing known"],
)
def test_else_it_is_answered_at_once(options: dict[str, Any], known: Any) -> None:
    """Without a cap that is known to be bigger, nothing would change."""
    played = play(agent([cut("", HALF_A_CALL), done("I see.")], Bench().tool(), known=known, **options))

    assert (2, [("error", False)], []) == (len(played.asked), statuses(played), hops(played))


def test_a_call_that_is_cut_under_another_name() -> None:
    """A server may say `tool_calls` although the cap of its own profile cut the arguments (section 3, step 6)."""
    bench = Bench()
    script = [cut("", HALF_A_CALL, finish="tool_calls"), done("", call("t", {}, id="c1")), done("Done.")]
    played = play(agent(script, bench.tool(), known=KNOWN))

    assert ({"t": 1}, 3, [("ok", True)]) == (bench.runs, len(played.asked), statuses(played))
    assert 1 == played.result.counters.tool_iterations


def test_without_a_call_left_its_calls_are_answered() -> None:
    """The run ends as a turn that was cut, with the limit (B1)."""
    played = play(agent([cut("", HALF_A_CALL), done("never")], Bench().tool(), known=KNOWN, max_llm_calls=1))

    assert (1, "length", "llm_calls", [("error", False)]) == (
        len(played.asked),
        played.result.finish_reason,
        played.result.limit and played.result.limit.name,
        statuses(played),
    )


def test_the_last_call_may_end_it_too() -> None:
    """With no ask left either, the limit that kept it from being made anew is told."""
    script = [cut("", HALF_A_CALL), done("never")]
    played = play(agent(script, Bench().tool(), known=KNOWN, max_llm_calls=1, max_reasks=0))

    assert ("length", "llm_calls") == (played.result.finish_reason, played.result.limit and played.result.limit.name)


def test_a_text_may_go_on_to_a_call_that_is_cut() -> None:
    """Only that piece is made anew: the text before it stands, shown and kept."""
    bench = Bench()
    known = profile("exact_prefix", default_max_tokens=10, max_output_tokens=99)
    script = [cut("Let me "), cut("write", HALF_A_CALL), done("see.", call("t", {}, id="c1")), done("Done.")]
    played = play(agent(script, bench.tool(), known=known))

    assert ("Let me see.", {"t": 1}) == (played.result.steps[0].text, bench.runs)
    assert ["exact_prefix", "exact_prefix", "restart_bigger"] == [hop.strategy for hop in played.result.steps[0].hops]
    assert [None, "exact_prefix", "exact_prefix", None] == [a.resume and a.resume.strategy for a in played.asked]
    assert [None, None, 99, None] == [asked.max_tokens for asked in played.asked]
    assert (len("Let me "), "Let me see.Done.") == (played.only(Rollback).to, shown(played.events))
    assert 2 == len(played.all(UsageReport))


def test_what_was_shown_is_void_though_nothing_is_shown_after_it() -> None:
    """A model that does not stream the second time takes back what it streamed the first time."""

    class StreamsOnce:
        name = "once"
        profile = KNOWN

        async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
            if request.max_tokens is None:
                emit(TextDelta("I write."))
                return cut("I write.", HALF_A_CALL)
            return done("Never mind.")

    played = play(agent(StreamsOnce(), Bench().tool()))

    assert ("Never mind.", "") == (played.result.text, shown(played.events))
    assert 0 == played.only(Rollback).to


def test_a_limit_is_told_of_the_turn_that_it_kept_back() -> None:
    """A later turn that was cut, and that nothing refused to continue, has none."""
    known = counted(10, continues_text="exact_prefix", default_max_tokens=10, max_output_tokens=99)
    script = [cut("", HALF_A_CALL), cut("half")]
    played = play(agent(script, Bench().tool(), known=known, automatic_continuation=None, max_total_tokens=130))

    assert ("half", "length", None) == (played.result.text, played.result.finish_reason, played.result.limit)
    assert [[], 2] == [hops(played), len(played.asked)]
