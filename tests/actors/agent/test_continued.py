"""A text that a token limit cut goes on by itself, as one turn, one message and one step (loop.md D0, D4, D5)."""

from __future__ import annotations

from typing import Any

import pytest

from actors import AgentSpec, CallConfig, StepOverrides
from actors.agent import StepState
from actors.models.scripted import Scripted, call
from protocol.errors import ContextOverflow, SpecError
from protocol.events import ContentDelta, HopFinished, StepFinished, UsageReport
from protocol.turns import AssistantMessage, Hop, ReasoningPart, TextPart, Turn, Unfinished, UserMessage
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.costs import Prices
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.strict import StrictModel

from ._cut import USED, agent, cut, done, hops, last, profile, shown, so_far

FORTY_TWO = [cut("The answer is forty"), cut("-two, and "), done("that is all.")]
WHOLE = "The answer is forty-two, and that is all."
THREE_TIMES = Usage(90, 0, 0, 30, 0, complete=True)


def test_the_pieces_are_one_turn() -> None:
    """Texts joined with nothing between, one answer, one message stored, one step, one message of deltas."""
    played = play(agent(FORTY_TWO))

    assert (WHOLE, True, "stop", None) == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.limit,
    )
    assert (UserMessage("go"), AssistantMessage((TextPart(WHOLE),))) == played.messages
    assert [WHOLE] == [step.text for step in played.result.steps]
    assert 1 == len({event.message for event in played.all(ContentDelta)})
    assert (WHOLE, 1) == (shown(played.events), len(played.all(StepFinished)))


def test_each_request_holds_the_text_so_far() -> None:
    """Behind the same conversation, with the same settings."""
    played = play(agent(FORTY_TWO, system="Be brief.", temperature=0.5))

    assert [None, "The answer is forty", "The answer is forty-two, and "] == [so_far(asked) for asked in played.asked]
    assert {((UserMessage("go"),), None, "Be brief.", 0.5)} == {
        (asked.messages, asked.tail, asked.system, asked.temperature) for asked in played.asked
    }


def test_what_is_done_is_told() -> None:
    """Each request has its end, each that continues its beginning; the books are told where no step says it."""
    played = play(agent(FORTY_TWO))
    told = [type(event).__name__ for event in played.events]

    assert [
        ("finished", 0, "length"),
        ("started", 1, "exact_prefix"),
        ("finished", 1, "length"),
        ("started", 2, "exact_prefix"),
        ("finished", 2, "stop"),
    ] == hops(played)
    assert [
        "RunStarted", "StepStarted", "ContentDelta",
        "HopFinished", "UsageReport", "HopStarted", "ContentDelta",
        "HopFinished", "UsageReport", "HopStarted", "ContentDelta",
        "HopFinished", "StepFinished", "RunFinished",
    ] == told  # fmt: skip
    assert [(40, 30), (80, 30)] == [(event.usage.total_tokens, event.context_tokens) for event in played.all(UsageReport)]  # fmt: skip


def test_usage_is_summed_and_the_context_is_not() -> None:
    """All requests are paid; the size of the context is that of the last one."""
    pieces = [cut("a"), cut("b", usage=Usage(40, 0, 0, 10, 0, True)), done("c", usage=Usage(20, 30, 0, 5, 0, True))]
    played = play(agent(pieces, prices=Prices(call=1.0)))
    (step,) = played.result.steps
    usage = Usage(90, 30, 0, 25, 0, True)

    assert (usage, usage, usage) == (step.usage, played.result.usage, played.only(StepFinished).usage)
    assert (50, 3.0, 3.0) == (played.result.context_tokens, step.cost, played.result.cost)
    assert [
        Hop(None, "length", piece.usage, "exact_prefix") if piece.finish == "length" else Hop(None, "stop", piece.usage, "exact_prefix")
        for piece in pieces
    ] == list(step.hops)  # fmt: skip
    assert 3 == played.result.counters.llm_calls


def test_one_unknown_price_makes_the_cost_of_the_step_unknown() -> None:
    """Unknown is not 0 (B3)."""
    played = play(agent([cut("a", usage=UNKNOWN_USAGE), done("b")], prices=Prices(call=1.0)))

    assert (None, None, False) == (played.result.steps[0].cost, played.result.cost, played.result.usage.complete)


def test_a_plain_call_tells_nothing_of_it() -> None:
    """No event and no hop, whatever the setting."""
    played = play(agent([done("whole")]))

    assert ["run_started", "step_started", "content_delta", "step_finished", "run_finished"] == played.types
    assert ((), 1) == (played.result.steps[0].hops, len(played.asked))


@pytest.mark.parametrize("setting", [None, False])
def test_without_being_asked_to_it_stays_cut(setting: bool | None) -> None:
    """The text is kept as partial, the run is not answered (R3)."""
    played = play(agent([cut("half"), done("never")], automatic_continuation=setting))

    assert ("half", False, "length", 1) == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        len(played.asked),
    )
    assert AssistantMessage((TextPart("half"),), partial=True) == last(played.messages)
    assert [] == hops(played)


@pytest.mark.parametrize("setting", [None, True, False])
def test_the_model_is_told_the_setting(setting: bool | None) -> None:
    """What it does within its call is its own affair; each request says the same."""
    model = Scripted([cut("half"), done(" whole")], profile=profile("none" if setting is None else "exact_prefix"))
    play(AgentSpec(model=model, automatic_continuation=setting))

    assert {setting} == {request.automatic_continuation for request in model.requests}


@pytest.mark.parametrize(("setting", "override", "calls"), [(None, True, 2), (True, False, 1), (True, None, 1)])
def test_a_hook_may_change_it_for_a_step(setting: Any, override: Any, calls: int) -> None:
    """`prepare_step` says so, for that step alone."""

    def prepare(state: StepState) -> StepOverrides | None:
        return StepOverrides(automatic_continuation=override) if state.step_number == 0 else None

    spec = agent([cut("half"), done(" whole")], automatic_continuation=setting, prepare_step=prepare)

    assert calls == len(play(spec).asked)


def test_a_hook_that_says_something_else_is_told_so() -> None:
    """A setting that is none ends the run, and says what would be right (H4)."""
    spec = agent([done("x")], prepare_step=lambda _state: StepOverrides(automatic_continuation="yes"))  # type: ignore[arg-type]

    assert "must be True, False or None; it is 'yes'" in str(play(spec).error and play(spec).error.__cause__)  # type: ignore[union-attr]


def test_hooks_are_asked_once() -> None:
    """Not before what continues a turn: it is the same step (H1)."""
    asked: list[int] = []

    def prepare(config: CallConfig) -> CallConfig:
        asked.append(config.step_number)
        return config.replace(system="hooked")

    played = play(agent(FORTY_TWO, prepare_call=prepare))

    assert ([0], {"hooked"}) == (asked, {request.system for request in played.asked})


def test_the_text_may_go_on_to_a_tool_call() -> None:
    """The whole turn has it: the tool runs, and the exchange is stored as one."""
    bench = Bench()
    script = [cut("Let me "), done("look.", call("t", {}, id="c1")), done("Done.")]
    played = play(agent(script, bench.tool()))

    assert ({"t": 1}, "Done.") == (bench.runs, played.result.text)
    assert ["Let me look.", "Done."] == [step.text for step in played.result.steps]
    assert "Let me look." == played.messages[1].parts[0].text  # type: ignore[union-attr]


# ---------------------------------------------------------------- where it ends


@pytest.mark.parametrize(("most", "calls"), [(1, 2), (3, 4)])
def test_it_goes_on_so_often_and_no_more(most: int, calls: int) -> None:
    """`max_hops` continuations; then the turn is cut, with all its text (D4)."""
    played = play(agent(lambda _request: cut("bla "), max_hops=most))

    assert (calls, "bla " * calls, "length", False) == (
        len(played.asked),
        played.result.text,
        played.result.finish_reason,
        played.result.answered,
    )


def test_unless_said_otherwise_it_ends_after_32() -> None:
    """It is finite by itself."""
    assert 33 == len(play(agent(lambda _request: cut("bla "))).asked)


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_it_ends_where_nothing_comes(nothing: str) -> None:
    """Two in a row without anything to see; one that brings something begins the count anew (D4)."""
    script = [cut("a"), cut(nothing), cut("b"), cut(nothing), cut(nothing), done("never")]
    played = play(agent(script))

    assert (5, "length") == (len(played.asked), played.result.finish_reason)
    assert "ab" == "".join(played.result.text.split())


def test_a_piece_that_says_that_was_all_is_believed() -> None:
    """An empty one with a plain end makes the text whole."""
    played = play(agent([cut("It is 5."), done("")]))

    assert ("It is 5.", True) == (played.result.text, played.result.answered)


def test_reasoning_alone_is_not_continued() -> None:
    """It would be lost again and again: the run ends, and says that reasoning used up the cap; nothing is stored."""
    thought = Turn((ReasoningPart("hmm " * 1000),), "length", "length", USED)
    played = play(agent([thought, done("never")], max_tokens=1000))

    assert (1, "length", "", False) == (
        len(played.asked),
        played.result.finish_reason,
        played.result.text,
        played.result.answered,
    )
    assert "reasoning used up the cap on output tokens (1000) before any visible text" == played.result.stop_reason
    assert (UserMessage("go"),) == played.messages


def test_a_text_that_was_cut_gives_no_reason() -> None:
    """The finish reason says it all."""
    assert None is play(agent([cut("half")], automatic_continuation=False)).result.stop_reason


def test_nothing_goes_on_in_a_full_window() -> None:
    """Known by its size, here; the usage says how full it is (D4)."""
    assert 1 == len(play(agent([cut("a"), done("b")], known=profile(context_window=40))).asked)
    assert 2 == len(play(agent([cut("a"), done("b")], known=profile(context_window=41))).asked)


def test_a_server_that_finds_its_window_full_ends_it() -> None:
    """The turn stays what it was, cut: what is there is not lost for it; the call is counted, its usage unknown."""
    script = [cut("half"), ContextOverflow("too long", status=400), done("never")]
    played = play(agent(script, on_context_overflow=lambda messages: messages))

    assert ("half", "length", None, 2) == (
        played.result.text,
        played.result.finish_reason,
        played.error,
        played.result.counters.llm_calls,
    )
    assert ["length", "lost"] == [hop.status for hop in played.result.steps[0].hops]
    assert (40, False) == (played.result.usage.total_tokens, played.result.usage.complete)
    assert [0, 1] == [event.hop for event in played.all(HopFinished)]


def test_a_token_that_was_not_presented_is_in_the_result() -> None:
    """What it takes to go on by hand: the token, its owner, all ids (D0)."""
    left = Unfinished("token-1", "i1", ("i1",))
    played = play(agent([cut("half", unfinished=left)], automatic_continuation=False))

    assert (left, "length", 1) == (played.result.unfinished, played.result.finish_reason, len(played.asked))


def test_a_later_turn_leaves_nothing_unfinished() -> None:
    """It is of the last turn."""
    script = [cut("half", call("t", {}), unfinished=Unfinished("token-1")), done("whole")]
    played = play(agent(script, Bench().tool(), automatic_continuation=False))

    assert (None, "whole") == (played.result.unfinished, "whole")


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"automatic_continuation": 1}, "automatic_continuation must be True, False or None; it is 1"),
        ({"automatic_continuation": "yes"}, "automatic_continuation must be True, False or None; it is 'yes'"),
        ({"max_hops": 0}, "max_hops must be an integer >= 1; it is 0"),
        ({"max_hops": None}, "max_hops must be an integer >= 1; it is None"),
    ],
)
def test_a_setting_that_cannot_be(options: dict[str, Any], told: str) -> None:
    """The error says what would be right."""
    with pytest.raises(SpecError, match=told):
        AgentSpec(model=StrictModel([]), **options)
