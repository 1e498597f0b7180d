"""What must hold of the cases about cut turns, finish reasons and stop conditions, beyond their checks."""

from __future__ import annotations

from protocol.events import StepFinished, ToolStarted
from protocol.turns import AssistantMessage, ToolMessage, UserMessage

from .claims import answered, called, claim, results_in, said
from .runner import run_case


@claim("TRU-01", "only call b reaches the tool")
def half_a_file_is_not_written() -> None:
    (came,) = run_case("TRU-01")

    assert ["b"] == [event.call for event in came.last.all(ToolStarted)]
    assert [("R.md", "# Title")] == came.tools.written
    assert [("a", "error"), ("b", "ok")] == answered(came.messages)


@claim("TRU-01", "the model is told that its output was cut by the token limit")
def the_model_is_told_of_the_cut() -> None:
    (came,) = run_case("TRU-01")
    (told,) = results_in(came.asked[1].messages)

    assert "your output was cut by the token limit" in told.text


@claim(
    "TRU-04",
    "the feedback before request 2 names the output/token limit as the cause and does not ask for 'the missing field text'",
)
def the_cut_is_the_cause() -> None:
    (came,) = run_case("TRU-04")
    (told,) = results_in(came.asked[1].messages)
    words = [told.text, *came.asked[1].texts[1:]]

    assert "cut by the token limit" in told.text
    assert [] == [text for text in words if "missing" in text or "JSON" in text or "field" in text]
    assert came.asked[1].tools_on


@claim("FIN-01", "outcome empty (not answer); no empty user or assistant message is added to history")
def promised_calls_that_never_came() -> None:
    (came,) = run_case("FIN-01")

    assert ("empty", "empty", False) == (came.outcome, came.last.result.finish_reason, came.last.result.answered)
    assert (UserMessage("go"),) == came.messages
    assert all(text.strip() for asked in came.asked for text in asked.texts)


@claim("FIN-02", "same result with finish null, 'other' and 'unknown' (complete, valid arguments)")
def calls_decide_whatever_the_reason_says() -> None:
    variants = [run_case("FIN-02", "remote", ("turns.0.finish", word))[0] for word in (None, "other", "unknown")]

    for came in [*run_case("FIN-02"), *variants]:
        assert (2, {"t": 2}, "done") == (len(came.asked), came.tool_runs, came.last.result.text)
        assert [("a", "ok"), ("b", "ok")] == answered(came.messages)
        assert () == came.faults
    assert [None, "other", "unknown"] == [came.last.all(StepFinished)[0].finish_reason for came in variants]


@claim("FIN-03", "no retry of the identical request")
def what_was_blocked_is_not_sent_again() -> None:
    (came,) = run_case("FIN-03")

    assert 1 == len(came.asked)
    assert ("content_filter", False, "") == (
        came.last.result.finish_reason,
        came.last.result.answered,
        came.last.result.text,
    )
    assert (UserMessage("go"),) == came.messages


@claim("FIN-11", "with empty_retry_max 0: outcome empty with a visible reason, never an empty success")
def an_empty_turn_is_no_success() -> None:
    (came,) = run_case("FIN-11", "remote", ("config.empty_retry_max", 0))
    (end,) = came.ends

    assert ("empty", "empty", False) == (came.outcome, end.summary.finish_reason, end.summary.answered)
    assert "the reply held no text and no tool calls" == end.summary.stop_reason
    assert 2 == len(came.asked)


@claim("FIN-13", "at most one message per model call is added to history")
def emptiness_is_not_stored() -> None:
    (came,) = run_case("FIN-13")

    assert [UserMessage, AssistantMessage, ToolMessage] == [type(message) for message in came.messages]
    assert ["go"] == said(came.messages)
    assert len(came.asked) >= len([message for message in came.messages if isinstance(message, AssistantMessage)])
    assert "empty" == came.outcome


@claim("PRE-03", "the stop condition sees the result of a")
def the_condition_sees_the_result() -> None:
    (came,) = run_case("PRE-03")

    assert [[("a", "ok", "STOP")]] == [[(r.call, r.status, r.text) for r in results] for results in came.seen]
    assert "stop_condition" == came.last.result.stopped_by


@claim("PRE-03", "history has a answered")
def the_history_is_whole() -> None:
    (came,) = run_case("PRE-03")

    assert (["a"], [("a", "ok")]) == (called(came.messages), answered(came.messages))
    assert isinstance(came.messages[-1], ToolMessage)
