"""What becomes of a turn that is neither an answer nor a clean request for tools (step 6, R5)."""

from __future__ import annotations

from typing import Any

import pytest

from actors import Run
from actors.models.scripted import call, reply
from protocol.errors import ModelReplyError, RunFailedError
from protocol.events import ContentDelta, RunFailed, StepFinished, ToolFinished, ToolRequested, ToolStarted
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, Finish, ReasoningPart, TextPart, ToolMessage, Turn, UserMessage
from protocol.usage import Usage
from tests.support.play import Played, event_of, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent

EMPTY = reply("")
MALFORMED = reply("", finish="malformed")
PROMISED = reply("", finish="tool_calls")
CUT = reply("", call("t", {}, id="cut"), finish="length")


def run_of(*script: Any, bench: Bench | None = None, **options: Any) -> Played:
    return play(agent(script, (bench or Bench()).tool(), **options))


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (reply("yes"), "yes"),
        (Turn((TextPart("y"), TextPart("es")), "stop"), "yes"),
        (Turn((ReasoningPart("hm"), TextPart("yes")), "stop"), "yes"),
        (Turn((TextPart("yes"),), None), "yes"),
        (Turn((TextPart("yes"),), "other", "eos_token"), "yes"),
    ],
)
def test_text_with_an_end_is_an_answer(turn: Turn, text: str) -> None:
    """Step 6: visible text and a positive end signal is the answer, whatever the word for the reason."""
    result = run_of(turn).result

    assert (text, True, "stop", "model", None) == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
    )


@pytest.mark.parametrize("finish", ["stop", "content_filter", "malformed", None])
def test_calls_decide_not_the_finish_reason(finish: Finish | None) -> None:
    """Step 6: calls that are present are run whatever the reason says, unless the turn was cut."""
    bench = Bench()
    played = run_of(Turn((*reply("", call("t", {}, id="a")).parts,), finish), "done", bench=bench)

    assert ({"t": 1}, "done") == (bench.runs, played.result.text)


@pytest.mark.parametrize("turn", [EMPTY, reply(" \n\t"), Turn((ReasoningPart("hm"),), "stop"), PROMISED, MALFORMED])
def test_a_turn_without_progress_is_asked_again(turn: Turn) -> None:
    """R5: it is asked again with one transient user message; nothing of it is stored; it is a step and a call."""
    played = run_of(turn, "yes")
    again = played.asked[1]

    assert ("yes", True, "stop") == (played.result.text, played.result.answered, played.result.finish_reason)
    assert again.tail
    assert (UserMessage("go"),) == again.messages
    assert (UserMessage("go"), AssistantMessage((TextPart("yes"),))) == played.messages
    assert (2, 2, 0) == (
        played.result.counters.steps,
        played.result.counters.llm_calls,
        played.result.counters.tool_iterations,
    )
    assert again.tools_on


def test_the_message_of_a_re_ask_says_what_was_missing_and_is_sent_once() -> None:
    """R5: empty and malformed turns are told apart; the message is in that request alone."""
    played = run_of(EMPTY, reply("", call("t", {}, id="a")), MALFORMED, "yes")

    assert ["empty" in (asked.tail or "") for asked in played.asked] == [False, True, False, False]
    assert ["could not be read" in (asked.tail or "") for asked in played.asked] == [False, False, False, True]


@pytest.mark.parametrize("max_reasks", [0, 1, 3])
@pytest.mark.parametrize("turn", [EMPTY, PROMISED], ids=["empty", "promised"])
def test_empty_turns_are_bounded(turn: Turn, max_reasks: int) -> None:
    """R5: `max_reasks` in a row, 0 is none; then the run ends `empty`, by the model, not answered."""
    played = run_of(*[turn] * 10, max_reasks=max_reasks)
    result = played.result

    assert 1 + max_reasks == len(played.asked)
    assert ("empty", "model", False, "", None) == (
        result.finish_reason,
        result.stopped_by,
        result.answered,
        result.text,
        result.limit,
    )
    assert "run_finished" == played.types[-1]
    assert (UserMessage("go"),) == played.messages


@pytest.mark.parametrize("max_reasks", [0, 2])
def test_malformed_turns_are_bounded_and_fail(max_reasks: int) -> None:
    """R5: used up, a malformed turn is `run_failed` naming the reason."""
    turn = Turn((), "malformed", "MALFORMED_FUNCTION_CALL")
    played = run_of(*[turn] * 10, max_reasks=max_reasks)

    assert 1 + max_reasks == len(played.asked)
    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, ModelReplyError)
    assert "MALFORMED_FUNCTION_CALL" in str(played.error)
    assert "MALFORMED_FUNCTION_CALL" in played.only(RunFailed).error.message


def test_the_bound_is_for_turns_in_a_row() -> None:
    """R5: a turn with progress in between starts the count anew; without the reset the last turn would end the run."""
    script = [EMPTY, reply("", call("t", {}, id="a")), MALFORMED, reply("", call("t", {}, id="b")), EMPTY, "yes"]
    played = run_of(*script)

    assert ("yes", 6) == (played.result.text, len(played.asked))


def test_an_answer_is_progress_too() -> None:
    """R5: an answer that a waiting message follows up starts the count anew."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("and then?")

    replies: list[list[Any]] = [[EMPTY], ["yes", 1.0], [EMPTY], ["no"]]
    played = play(agent(Trickle(replies)), act=act)

    assert ("no", 4) == (played.result.text, len(played.asked))


def test_edges_of_different_kinds_share_the_bound() -> None:
    """R5: empty after malformed is two in a row."""
    played = run_of(MALFORMED, EMPTY, "never asked")

    assert (2, "empty") == (len(played.asked), played.result.finish_reason)


def test_a_model_that_promises_calls_for_ever_ends_by_itself() -> None:
    """R5: "tool calls" as the reason and never a call does not loop."""
    played = run_of(*[PROMISED] * 50, max_reasks=1)

    assert (2, "empty") == (len(played.asked), played.result.finish_reason)
    assert "empty" not in [m.text for m in played.messages if isinstance(m, UserMessage)]


@pytest.mark.parametrize(("turn", "word"), [(EMPTY, "empty"), (PROMISED, "empty"), (CUT, "length")])
def test_a_re_ask_that_the_ledger_refuses_ends_as_that_turn(turn: Turn, word: str) -> None:
    """B1: a re-ask is a call of its own; refused, the run ends as that turn with the limit `llm_calls`."""
    played = run_of(turn, "never asked", max_llm_calls=1)
    result = played.result

    assert 1 == len(played.asked)
    assert (word, False, LimitState("llm_calls", 1, 1)) == (result.finish_reason, result.answered, result.limit)
    assert ["limit_reached", "run_finished"] == played.types[-2:]


def test_a_malformed_turn_whose_re_ask_is_refused_fails() -> None:
    """B1, R5: refused, a malformed turn ends the run as malformed turns do: `run_failed`."""
    played = run_of(MALFORMED, "never asked", max_llm_calls=1)

    assert isinstance(played.error, RunFailedError)
    assert 1 == len(played.asked)


def test_cut_calls_are_answered_and_not_run() -> None:
    """Step 6: cut by a token limit, none of the calls runs, whole ones neither; each is an `error`; it is a round."""
    bench = Bench()
    turn = reply("hm", call("t", {}, id="whole"), call("t", '{"a": ', id="part"), finish="length")
    played = run_of(turn, "done", bench=bench)
    exchange = played.messages[2]

    assert {} == bench.runs
    assert [] == played.all(ToolStarted)
    assert isinstance(exchange, ToolMessage)
    assert [("whole", "error", False), ("part", "error", False)] == [
        (result.call, result.status, result.entered) for result in exchange.results
    ]
    assert all("cut by the token limit" in result.text for result in exchange.results)
    assert ["whole", "part"] == [event.call for event in played.all(ToolRequested)]
    assert ("done", 1, 0) == (
        played.result.text,
        played.result.counters.tool_iterations,
        played.result.counters.tool_calls,
    )


def test_a_cap_that_cut_a_call_is_seen_whatever_the_reason_says() -> None:
    """Step 6: unterminated JSON with the output at the cap is a cut turn, though the server says `tool_calls`."""
    bench = Bench()
    usage = Usage(10, 0, 0, 64, 0, complete=True)
    turn = reply("", call("t", {}, id="whole"), call("t", '{"a": "b', id="part"), usage=usage)
    played = run_of(turn, "done", bench=bench, max_tokens=64)

    assert {} == bench.runs
    assert ["error", "error"] == [event.status for event in played.all(ToolFinished)]


def test_bad_arguments_below_the_cap_are_the_models_mistake() -> None:
    """Step 6, T3: with output to spare the turn was not cut: the whole call runs, the bad one gets an error."""
    bench = Bench()
    usage = Usage(10, 0, 0, 63, 0, complete=True)
    turn = reply("", call("t", {}, id="whole"), call("t", '{"a": "b', id="part"), usage=usage)
    played = run_of(turn, "done", bench=bench, max_tokens=64)

    assert {"t": 1} == bench.runs
    assert {"whole": "ok", "part": "error"} == {event.call: event.status for event in played.all(ToolFinished)}


@pytest.mark.parametrize("max_reasks", [0, 1, 2])
def test_cut_calls_are_bounded(max_reasks: int) -> None:
    """R5: used up, the calls are answered `error` all the same and the run ends `length`."""
    script = [reply("", call("t", {}, id=f"c{n}"), finish="length") for n in range(10)]
    played = run_of(*script, max_reasks=max_reasks)
    result = played.result

    assert 1 + max_reasks == len(played.asked)
    assert ("length", "model", False) == (result.finish_reason, result.stopped_by, result.answered)
    assert ["error"] * (1 + max_reasks) == [event.status for event in played.all(ToolFinished)]
    assert 1 + max_reasks == result.counters.tool_iterations


def test_every_step_that_finished_says_how() -> None:
    """R4: one `step_finished` for each turn, with the reason in common words, or verbatim where it is unknown."""
    script = [EMPTY, CUT, reply("", call("t", {}, id="a")), Turn((TextPart("yes"),), "other", "eos")]
    played = run_of(*script, max_reasks=5)

    assert ["stop", "length", "tool_calls", "eos"] == [event.finish_reason for event in played.all(StepFinished)]
    assert ["stop", "length", "tool_calls", "eos"] == [step.finish_reason for step in played.result.steps]
