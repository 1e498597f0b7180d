"""What the final call's reply comes to, whatever it is (F5, F6, F8)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Run
from actors.models.scripted import ScriptedTurn, call, reply
from protocol.errors import ModelError, ModelServerError, ModelTimeout, RunCancelledError, RunFailedError
from protocol.events import ContentDelta, RunFailed, StepFinished, StepStarted, ToolRequested
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, Finish, OpaquePart, ReasoningPart, TextPart, ToolCall, Turn
from tests.support.play import Played, event_of, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent

LIMIT = LimitState("tool_iterations", 1, 1)
FALLBACK = (
    "The limit of 1 rounds of tool calls was reached before an answer was found.\nThe last tool results:\n- t: 42"
)


def final(*replies: ScriptedTurn, bench: Bench | None = None, **options: Any) -> Played:
    """One round, then these replies to the final call and whatever follows it."""
    script = [reply("looking", call("t", {}, id="a")), *replies]
    options = {"max_tool_iterations": 1, "tool_iteration_limit_finalization": "", **options}
    return play(agent(script, (bench or Bench()).tool(value=42), **options))


def assert_fell_back(played: Played, text: str = f"looking\n\n{FALLBACK}") -> None:
    result = played.result

    assert text == result.text
    assert (False, "max_iterations", "tool_iterations", LIMIT, "fallback") == (
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    assert played.error is None


def test_success_is_a_normal_answer_with_the_limit_set() -> None:
    """F6: not an error: `finalized="model"`, `limit` set, finish reason the model's."""
    result = final("the sum").result

    assert ("the sum", True, "stop", "tool_iterations", LIMIT, "model") == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.limit,
        result.finalized,
    )
    assert (2, 1, True) == (result.counters.steps, result.counters.tool_iterations, result.steps[-1].final)


def test_calls_beside_the_text_are_neither_run_nor_stored() -> None:
    """F5: the text is the answer; a call beside it gets no event, no result and no place in the history."""
    bench = Bench()
    opaque = OpaquePart("openai-chat", "{}", call="x")
    kept = (ReasoningPart("thinking"), TextPart("the sum"))
    played = final(Turn((*kept, ToolCall("x", "t", "{}"), opaque), "tool_calls", "tool_calls"), bench=bench)

    assert {"t": 1} == bench.runs
    assert AssistantMessage(kept) == played.messages[-1]
    assert ["a"] == [event.call for event in played.all(ToolRequested)]
    assert ("the sum", True, "stop", "model") == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert () == played.result.steps[-1].calls


@pytest.mark.parametrize(
    "turn",
    [
        reply(""),
        reply(" \n"),
        reply("", call("t", {}, id="x")),
        Turn((ReasoningPart("thinking"),), "stop"),
        reply("", finish="tool_calls"),
    ],
    ids=["nothing", "white", "call", "reasoning", "promised"],
)
def test_no_visible_text_falls_back_to_a_deterministic_one(turn: Turn) -> None:
    """F5: without visible text a text built from the results ends the run; it is the same every time."""
    played = final(turn)

    assert_fell_back(played)
    assert played.result.text == final(turn).result.text
    assert played.messages == played.asked[-1].messages


def test_the_fallback_without_results() -> None:
    """F5: where no tool had given a result the text says so."""
    script = [reply("", call("nowhere", {}, id="a")), reply("")]
    played = play(agent(script, Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=""))

    assert_fell_back(
        played,
        "The limit of 1 rounds of tool calls was reached before an answer was found.\nNo tool had given a result.",
    )


def test_a_long_result_is_shortened_in_the_fallback() -> None:
    """F5: the fallback is short and of one line per result."""
    script = [reply("", call("t", {}, id="a")), reply("")]
    played = play(
        agent(
            script,
            Bench().tool(value="word\n" * 1000),
            max_tool_iterations=1,
            tool_iteration_limit_finalization="",
        )
    )
    last = played.result.text.splitlines()[-1]

    assert last == "- t: " + ("word " * 40) + "..."


def test_retry_allows_one_more_final_call() -> None:
    """F5: with `finalization_retry` a final call without text is made once more, tools off, same instruction."""
    played = final(reply(""), "the sum", finalization_retry=True)

    assert [False, True, True] == [event.final for event in played.all(StepStarted)]
    assert played.asked[1] == played.asked[2]
    assert ("the sum", "model") == (played.result.text, played.result.finalized)


def test_retry_is_once() -> None:
    """F5: a second final call without text is the end."""
    played = final(reply(""), reply(""), "never asked", finalization_retry=True)

    assert 3 == len(played.asked)
    assert_fell_back(played)


def test_no_retry_by_default() -> None:
    """F5: one final call per run."""
    played = final(reply(""), "never asked")

    assert 2 == len(played.asked)
    assert_fell_back(played)


def test_a_retry_needs_a_call_that_the_ledger_grants() -> None:
    """F5, B1: without a call left there is no second final call."""
    played = final(reply(""), "never asked", finalization_retry=True, max_llm_calls=2)

    assert 2 == len(played.asked)
    assert_fell_back(played)


@pytest.mark.parametrize("error", [ModelServerError("down", status=503), ModelTimeout("silent"), ValueError("bug")])
def test_a_final_call_that_fails_fails_the_run(error: Exception) -> None:
    """F8: `run_failed` with the partial result; no fallback, no second try."""
    played = final(error, "never asked", finalization_retry=True)

    assert isinstance(played.error, RunFailedError)
    assert error is played.error.__cause__
    assert 2 == len(played.asked)
    partial = played.error.partial
    assert ("looking", False, None, LIMIT, "failure") == (
        partial.text,
        partial.answered,
        partial.finalized,
        partial.limit,
        partial.stopped_by,
    )
    assert "run_failed" == played.types[-1]


def test_a_final_call_that_breaks_off_fails_the_run_and_keeps_its_text() -> None:
    """F8, R3: a lost final call: the text so far is stored as partial and stands in the partial result."""
    replies: list[list[Any]] = [
        [reply("", call("t", {}, id="a"))],
        ["half of ", "the sum", ModelError("connection lost")],
    ]
    played = play(agent(Trickle(replies), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=""))

    assert isinstance(played.error, RunFailedError)
    assert AssistantMessage((TextPart("half of the sum"),), partial=True) == played.messages[-1]
    assert "half of the sum" == played.error.partial.text
    assert ["half of ", "the sum"] == [event.text for event in played.all(ContentDelta)]
    assert "model_error" == played.only(RunFailed).error.code


def test_a_final_reply_without_its_end_is_no_answer() -> None:
    """F8: a reply that the model reports as lost fails the run, with text or without."""
    played = final(Turn((TextPart("half"),), None, end="lost"))

    assert isinstance(played.error, RunFailedError)
    assert ("looking\n\nhalf", False) == (played.error.partial.text, played.error.partial.answered)
    assert AssistantMessage((TextPart("half"),), partial=True) == played.messages[-1]


@pytest.mark.parametrize(("finish", "word"), [("length", "length"), ("content_filter", "content_filter")])
def test_a_final_reply_that_was_cut_is_not_answered(finish: Finish, word: str) -> None:
    """F8: cut by the caller's own cap: finish reason `length`, not answered; the text is kept as partial."""
    played = final(reply("half of the", finish=finish), "never asked", max_tokens=5)
    result = played.result

    assert ("looking\n\nhalf of the", False, word, LIMIT) == (
        result.text,
        result.answered,
        result.finish_reason,
        result.limit,
    )
    assert AssistantMessage((TextPart("half of the"),), partial=True) == played.messages[-1]
    assert 2 == len(played.asked)


def test_a_cut_final_reply_with_a_call_beside_its_text() -> None:
    """F5, F8: cut with a call beside the text: the call is dropped, the text is partial and no answer."""
    bench = Bench()
    played = final(reply("half", call("t", '{"a": ', id="x"), finish="length"), bench=bench)

    assert {"t": 1} == bench.runs
    assert AssistantMessage((TextPart("half"),), partial=True) == played.messages[-1]
    assert (False, "length") == (played.result.answered, played.result.finish_reason)


def test_an_unknown_finish_reason_is_kept_verbatim() -> None:
    """F6, step 6: a reason that the profile does not know, with text, is an answer, and kept as it came."""
    played = final(Turn((TextPart("the sum"),), "other", "because_i_say_so"))

    assert ("the sum", True, "because_i_say_so", "model") == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.finalized,
    )


def test_nothing_goes_on_after_it() -> None:
    """F5: no condition is asked and no steering is taken after the final call; what waits is undelivered."""
    asked: list[int] = []

    def condition(state: Any) -> bool:
        asked.append(state.step_number)
        return False

    replies: list[list[Any]] = [[reply("", call("t", {}, id="a"))], ["the ", 5.0, "sum"]]
    spec = agent(
        Trickle(replies),
        Bench().tool(),
        max_tool_iterations=1,
        tool_iteration_limit_finalization="",
        stop_when=[condition],
    )

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("one more thing")

    played = play(spec, act=act)

    assert [0] == asked
    assert ("the sum", ("one more thing",)) == (played.result.text, played.result.undelivered)
    assert ["message_queued", "content_delta", "step_finished", "message_dropped", "run_finished"] == played.types[-5:]


def test_cancel_during_the_final_call() -> None:
    """R3, R4: a cancel in mid-stream keeps the text as partial; the run is cancelled."""
    replies: list[list[Any]] = [[reply("", call("t", {}, id="a"))], ["the ", 5.0, "sum"]]
    spec = agent(Trickle(replies), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization="")

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        await trio.sleep(1)
        run.cancel("no time")

    played = play(spec, act=act)

    assert isinstance(played.error, RunCancelledError)
    assert AssistantMessage((TextPart("the "),), partial=True) == played.messages[-1]
    assert 1 == len(played.all(StepFinished))
    assert ("the ", 1.0) == (played.error.partial.text, played.seconds)
