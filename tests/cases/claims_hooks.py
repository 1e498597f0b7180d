"""What must hold of the cases about hooks, beyond their checks."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.errors import AnswerRejected, RunFailedError
from protocol.events import RunFailed, ToolStarted

from .checks import check
from .claims import answered, claim, results_in, said
from .program import CASES
from .runner import run_case


@claim(
    "LIM-09",
    "the unchecked text is never returned as a valid result: outcome is error (check failed) or a re-ask that stays inside the call budget",
)
def a_final_answer_must_pass_too() -> None:
    (came,) = run_case("LIM-09")
    (passes,) = run_case("LIM-09", "remote", ("model", CASES["LIM-09"]["input"]["model"].replace("not json", "{}")))

    assert ("error", False, 2) == (came.outcome, came.last.result.answered, len(came.asked))
    with pytest.raises(AnswerRejected, match="It is no JSON"):
        raise came.last.error or AssertionError
    assert "answer_rejected" == came.last.only(RunFailed).error.code
    assert ("answer", "{}") == (passes.outcome, passes.last.result.text)


@claim("LIM-09", "the check function was called on the finalization text")
def the_final_text_was_checked() -> None:
    (came,) = run_case("LIM-09")

    assert ["not json"] == came.kept.checked
    assert not came.asked[-1].tools_on


@claim("PRE-01", "b is answered with a 'tool not available' error result")
def a_hidden_tool_cannot_run() -> None:
    (came,) = run_case("PRE-01")
    first, second = results_in(came.asked[2].messages)

    assert [("t",), (), ()] == [asked.tools if asked.tools_on else () for asked in came.asked]
    assert [("a", "ok"), ("b", "error")] == [(result.call, result.status) for result in (first, second)]
    assert "tool t is not available" in second.text
    assert ["a"] == [event.call for event in came.last.all(ToolStarted)]


@claim("TEX-17", "holds for both variants of the hook")
def no_hook_swallows_a_cancel() -> None:
    hook = CASES["TEX-17"]["input"]["hooks"]["around_tool_variant"]
    (variant,) = run_case("TEX-17", "remote", ("hooks.around_tool", hook))
    expected: dict[str, Any] = CASES["TEX-17"]["expected"]["check"]

    assert dict.fromkeys(expected, True) == {word: check(variant, word, value) for word, value in expected.items()}
    for came in (variant, *run_case("TEX-17")):
        assert ["run_cancelled"] == [end.type for end in came.ends]
        assert [("a", "interrupted")] == answered(came.messages)
        assert came.times["tool_started:a"] == came.times["run_ended"]


@claim("HTP-11", "automatic continuation never follows a failed run of a non-retryable kind")
def nothing_continues_a_failed_run() -> None:
    (came,) = run_case("HTP-11")
    goes_on = "call t with a fresh id until the request holds 0 results of t, then text 'half'"
    (answers,) = run_case("HTP-11", "remote", ("model", goes_on))

    assert ([], 1) == (came.kept.asked_to_continue, len(came.asked))
    assert isinstance(came.last.error, RunFailedError)
    assert ["run_failed"] == [end.type for end in came.ends]
    # Where the model answers, the hook is asked, and even so it has a bound.
    assert (3, 4) == (len(answers.kept.asked_to_continue), len(answers.asked))
    assert ["go", "continue", "continue", "continue"] == said(answers.messages)


@claim("HTP-11", "history grows by at most one user message per accepted request")
def a_failed_run_adds_no_messages() -> None:
    (came,) = run_case("HTP-11")

    assert ["go"] == said(came.messages)
    assert 1 == len(came.messages)
