"""What is kept of a reply that was cut, blocked, lost or cancelled (R3, section 7)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import AgentSpec, Run
from actors.models.scripted import call, reply
from protocol.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelReplyError,
    ModelServerError,
    ModelUnreachable,
    RunCancelledError,
    RunFailedError,
)
from protocol.events import ContentDelta, RunFailed, ToolRequested
from protocol.turns import AssistantMessage, ReasoningPart, TextPart, ToolCall, ToolMessage, Turn, UserMessage
from protocol.usage import Usage
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent
from tests.support.strict import StrictModel

HALF = AssistantMessage((TextPart("half"),), partial=True)


def run_of(*script: Any, bench: Bench | None = None, **options: Any) -> Played:
    return play(agent(script, (bench or Bench()).tool(), **options))


@pytest.mark.parametrize(
    ("turn", "word"),
    [
        (reply("half", finish="length"), "length"),
        (reply("half", finish="content_filter"), "content_filter"),
    ],
)
def test_a_cut_or_blocked_text_is_kept_and_is_no_answer(turn: Turn, word: str) -> None:
    """Section 7, R3: finish reason `length` or `content_filter`, not answered; the text is stored as partial."""
    played = run_of(turn, "never asked")
    result = played.result

    assert (word, "model", False, "half", None) == (
        result.finish_reason,
        result.stopped_by,
        result.answered,
        result.text,
        result.limit,
    )
    assert (UserMessage("go"), HALF) == played.messages
    assert 1 == len(played.asked)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_cut_or_blocked_turn_without_text_stores_nothing(finish: Any) -> None:
    """R3: nothing empty is stored; the run ends as that turn."""
    played = run_of(Turn((ReasoningPart("hm"),), finish, finish.upper()), "never asked")

    assert (UserMessage("go"),) == played.messages
    assert (finish, False, "") == (played.result.finish_reason, played.result.answered, played.result.text)


def test_why_a_reply_was_blocked_is_kept_verbatim() -> None:
    """Section 7: the vendor's own word for the block stands in `stop_reason`."""
    result = run_of(Turn((), "content_filter", "SAFETY")).result

    assert ("content_filter", "SAFETY") == (result.finish_reason, result.stop_reason)


def test_a_failed_call_is_settled_with_what_it_reported() -> None:
    """B1: the usage that a failed call had reported counts; it is a call."""
    usage = Usage(10, 0, 0, 5, 0, complete=True)
    script = [
        reply("", call("t", {}, id="a"), usage=usage),
        ModelError("reset", partial=Turn((), usage=usage, end="lost")),
    ]
    result = run_of(*script).result

    assert (usage + usage, 2) == (result.usage, result.counters.llm_calls)


def test_the_texts_of_all_turns_stand_in_a_result_that_is_no_answer() -> None:
    """Section 7: `text` is the visible texts of all turns, in order, parted by a blank line."""
    script = [reply("one", call("t", {}, id="a")), reply("", call("t", {}, id="b")), reply("two", finish="length")]

    assert "one\n\ntwo" == run_of(*script).result.text


def test_an_unknown_reason_with_nothing_is_a_failure_and_not_asked_again() -> None:
    """Step 6: an unknown reason with neither text nor call is `failed`, kept verbatim, not `empty`."""
    played = run_of(Turn((), "other", "OVERLOADED"), "never asked")

    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, ModelReplyError)
    assert "OVERLOADED" in str(played.error)
    assert "failure" == played.error.partial.stopped_by
    assert 1 == len(played.asked)


def test_a_reply_that_broke_off_fails_the_run_and_its_calls_are_not_stored() -> None:
    """R3, step 6: lost: the text is kept as partial, calls and unsigned reasoning go, nothing is run or asked again."""
    bench = Bench()
    parts = (ReasoningPart("hm"), TextPart("half"), ToolCall("x", "t", "{}"))
    played = run_of(Turn(parts, None, end="lost"), "never asked", bench=bench)

    assert isinstance(played.error, RunFailedError)
    assert (UserMessage("go"), HALF) == played.messages
    assert ({}, []) == (bench.runs, played.all(ToolRequested))
    assert ("half", False, 1) == (played.error.partial.text, played.error.partial.answered, len(played.asked))


def test_the_step_of_a_lost_turn_has_no_calls() -> None:
    """R3: calls of a lost turn are not stored, and so stand in no step either."""
    played = run_of(Turn((TextPart("half"), ToolCall("x", "t", "{}")), None, end="lost"))

    assert [] == [step.calls for step in played.result.steps if step.calls]


def lossy(*pieces: Any) -> AgentSpec:
    return agent(Trickle([pieces]), Bench().tool())


def test_the_text_of_a_call_that_failed_in_mid_stream_is_kept() -> None:
    """R3: what was shown before a model error is stored as partial and stands in the partial result."""
    error = ModelError("connection reset")
    played = play(lossy("ha", "lf", error))

    assert isinstance(played.error, RunFailedError)
    assert error is played.error.__cause__
    assert (UserMessage("go"), HALF) == played.messages
    assert "half" == played.error.partial.text
    assert (0, 1) == (played.error.partial.counters.steps, played.error.partial.counters.llm_calls)


def test_text_that_arrived_and_was_not_shown_is_kept_too() -> None:
    """R3: the text in a model error's `partial` is that of the lost turn, shown as deltas or not."""
    played = run_of(ModelError("connection reset", partial=Turn((TextPart("half"),), end="lost")))

    assert (UserMessage("go"), HALF) == played.messages
    assert "half" == played.result.text


def test_white_space_alone_is_not_kept() -> None:
    """R3: nothing empty is stored."""
    played = play(lossy(" ", "\n", ModelError("connection reset")))

    assert (UserMessage("go"),) == played.messages


def test_the_text_of_a_cancelled_call_is_kept() -> None:
    """R3: a cancel in mid-stream keeps the visible text, marked `partial`."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta, nth=2)
        run.cancel()

    played = play(lossy("ha", "lf", 60.0, "never"), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert (UserMessage("go"), HALF) == played.messages
    assert ("half", "cancelled", "cancel") == (
        played.error.partial.text,
        played.error.partial.finish_reason,
        played.error.partial.stopped_by,
    )
    assert 0.0 == played.seconds


def test_after_a_partial_answer_the_conversation_goes_on() -> None:
    """R2, R3: the next run sends the partial text as what the assistant said."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(agent(Trickle([["ha", "lf", ModelError("reset")], ["whole"]])))
        await stage.play(one, "first")
        return await stage.play(one, "second")

    played = perform(scene)

    assert (UserMessage("first"), HALF, UserMessage("second")) == played.asked[-1].messages
    assert "whole" == played.result.text


def test_cancel_in_a_tool_stores_the_exchange() -> None:
    """R3, R4: entered and cancelled is `interrupted`; waiting for its turn is `not_run`; both are stored."""
    bench = Bench()
    turn = reply("hm", call("slow", {}, id="a"), call("slow", {}, id="b"))

    async def act(run: Run) -> None:
        await trio.sleep(5)
        run.cancel()

    spec = agent([turn], bench.tool("slow", seconds=60), max_parallel_tools=1)
    played = play(spec, act=act)
    exchange = played.messages[-1]

    assert isinstance(played.error, RunCancelledError)
    assert isinstance(exchange, ToolMessage)
    assert [("a", "interrupted", True), ("b", "not_run", False)] == [
        (result.call, result.status, result.entered) for result in exchange.results
    ]
    assert ({"slow": 1}, 5.0) == (bench.runs, played.seconds)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelUnreachable("nobody listens at 127.0.0.1:1"), "model_unreachable"),
        (ModelAuthError("the key is wrong", status=401), "model_auth_error"),
        (ModelRateLimited("slow down", status=429), "model_rate_limited"),
        (ModelServerError("down", status=500), "model_server_error"),
        (ContextOverflow("too long", status=400), "context_overflow"),
        (ModelReplyError("this is HTML"), "model_reply_error"),
    ],
)
def test_a_model_error_fails_the_run_with_its_words(error: ModelError, code: str) -> None:
    """Section 7: `run_failed`, the code is the error's name, the text is its own; nothing is asked again here."""
    played = run_of(error, "never asked")

    assert isinstance(played.error, RunFailedError)
    assert (code, str(error)) == (played.only(RunFailed).error.code, played.only(RunFailed).error.message)
    assert str(error) == str(played.error)
    assert 1 == len(played.asked) == played.error.partial.counters.llm_calls


def test_a_foreign_error_keeps_its_text_to_itself() -> None:
    """Events show the type of what a model raised, not its text: that stays in the cause."""
    played = run_of(RuntimeError("key sk-123"))

    assert isinstance(played.error, RunFailedError)
    assert "sk-123" not in repr(played.events)
    assert "RuntimeError" in played.only(RunFailed).error.message
    assert isinstance(played.error.__cause__, RuntimeError)


def test_a_script_that_is_used_up_fails_with_a_clear_word() -> None:
    """A scripted model without further turns says so."""
    played = play(AgentSpec(model=StrictModel([])))

    assert "the script has no further turn" == str(played.error)
