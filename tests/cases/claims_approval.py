"""What must hold of the cases about approvals, beyond their checks."""

from __future__ import annotations

from protocol.events import ApprovalRequired, ApprovalResolved, ToolStarted
from protocol.turns import ToolResult

from .came import Came
from .claims import called, claim, results_in
from .program import CALL_SECONDS, Gate
from .runner import run_case


def only_result(came: Came) -> ToolResult:
    """The one result that the model is told of in the second request; the event says the same."""
    (told,) = results_in(came.asked[1].messages)
    (end,) = came.results[told.call]
    assert (told.status, told.text) == (end.status, end.text)
    return told


def outcomes(came: Came) -> list[str]:
    """How the approval requests were closed, in order."""
    return [event.outcome for event in came.last.all(ApprovalResolved)]


@claim("APR-02", "the result is delivered at t=300, not minutes later")
def an_expired_request_holds_nothing_up(gate: Gate) -> None:
    (came,) = run_case("APR-02", gate)

    assert 300 == came.times["tool_finished:c1"] - came.times["approval_prompt:c1"]
    assert came.times["tool_finished:c1"] == came.times["request:2 in flight"]
    assert 300 == came.last.only(ApprovalRequired).expires_in_seconds
    assert 300 + 2 * CALL_SECONDS == came.last.seconds


@claim("APR-02", "its text says expired and not run; it does not say pending")
def an_expired_request_says_so(gate: Gate) -> None:
    (came,) = run_case("APR-02", gate)
    text = only_result(came).text.lower()

    assert "expired" in text
    assert "not run" in text
    assert "pending" not in text
    assert "declined" not in text
    assert ["timed_out"] == outcomes(came)


@claim(
    "APR-18", "the result text states that the tool was not run because it was declined, and adds 'no' as the reason"
)
def a_bare_word_is_the_reason_alone(gate: Gate) -> None:
    (came,) = run_case("APR-18", gate)

    assert "Not run: declined. no" == only_result(came).text
    assert "no" == came.last.only(ApprovalResolved).reason


@claim("DNG-09", "c1 has exactly one result and it says it was declined")
def a_declined_call_is_answered_as_such(gate: Gate) -> None:
    (came,) = run_case("DNG-09", gate)
    result = only_result(came)

    assert ("c1", "denied") == (result.call, result.status)
    assert "declined" in result.text
    assert ["c1"] == called(came.messages) == [found.call for found in results_in(came.messages)]
    assert ([], []) == (came.tools.written, came.last.all(ToolStarted))
    assert ["denied"] == outcomes(came)


@claim("PRE-04", "the result of the run is 'sent' or carries it")
def the_condition_is_met_after_a_wait_too(gate: Gate) -> None:
    (came,) = run_case("PRE-04", gate)
    (declined,) = run_case("PRE-04", gate, ("actions.0.do", "decline"), ("turns.1.text", "not sent, then"))

    assert ("stop_condition", "tool 'send' returned a result") == (
        came.last.result.stopped_by,
        came.last.result.stop_reason,
    )
    assert ["sent"] == [result.text for result in came.last.result.steps[-1].results]
    # A call that did not run is not what the condition is about.
    assert ("model", "not sent, then", 2) == (
        declined.last.result.stopped_by,
        declined.last.result.text,
        len(declined.asked),
    )
