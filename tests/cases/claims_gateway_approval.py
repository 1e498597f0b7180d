"""What must hold of the cases about approvals that are given through the gateway, beyond their checks."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    RunCancelled,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from protocol.wire.replies import Attached, Decided, OpenApproval, Requests

from .came import Came
from .claims import claim, results_in
from .claims_wire_stream import only
from .gateway.person import Person
from .gateway.place import Place
from .program import Case

IN_A_MOMENT = 0.1
"""Seconds in which what has happened is with the clients."""


def place_of(came: Came) -> Place:
    """The gateway of a case."""
    assert came.place is not None
    return came.place


def a_of(came: Came) -> Person:
    """The first client of a case."""
    return place_of(came).people["A"]


def resolutions(person: Person) -> list[tuple[str, str, str | None]]:
    """How requests were closed, as somebody was shown it."""
    return [(event.request, event.outcome, event.by) for event in person.all(ApprovalResolved)]


def played_with(id: str, *actions: Case) -> Came:
    """The case with other actions."""
    return only(id, ("actions", list(actions)))


@claim("APR-01", "the client gets an explicit 'expired' answer for its decision")
def a_late_decision_is_told_of_the_expiry() -> None:
    person = a_of(only("APR-01"))
    refusal = person.said[-1].refusal
    (resolved,) = [item for item in person.received if isinstance(item.event, ApprovalResolved)]

    assert "already_resolved" == refusal.code
    assert {"outcome": "timed_out", "by": None, "seq": resolved.number} == refusal.data["resolution"]
    assert "timed out" in str(refusal).replace("timed_out", "timed out")


@claim("APR-01", "c1 has exactly one result (timed out)")
def an_expired_call_has_one_result() -> None:
    came = only("APR-01")
    (told,) = results_in(came.asked[1].messages)
    (shown,) = a_of(came).all(ToolFinished)

    assert ("c1", "not_run") == (told.call, told.status)
    assert "expired" in told.text
    assert (told.call, told.status, told.text) == (shown.call, shown.status, shown.text)
    assert ["c1"] == [result.call for result in results_in(came.messages)]


@claim("APR-01", "an expired event was sent at t=30 so that the prompt can be closed")
def the_expiry_is_told_when_it_happens() -> None:
    person = a_of(only("APR-01"))
    asked, resolved = person.only(ApprovalRequired), person.only(ApprovalResolved)

    assert (asked.request, "timed_out") == (resolved.request, resolved.outcome)
    assert 30 == pytest.approx(person.time_of(resolved) - person.time_of(asked), abs=IN_A_MOMENT)
    assert person.time_of(resolved) < person.said[-1].time


@claim("APR-03", "exactly one of A and B is told accepted, the other already decided")
def one_decision_is_accepted() -> None:
    for order in range(8):
        came = only("APR-03", order=order)
        answers = [place_of(came).people[name].said[-1].answer for name in ("A", "B")]
        (accepted,) = [answer for answer in answers if isinstance(answer, Decided)]
        (refused,) = [answer for answer in answers if answer is not accepted]

        assert "already_resolved" == refused.code
        assert not accepted.replayed
        assert 1 == came.tool_runs["pay"]


@claim("APR-03", "all clients see one decision event naming the winner")
def all_see_who_has_decided() -> None:
    winners = set[str]()
    for order in range(8):
        people = place_of(only("APR-03", order=order)).people
        (winner,) = [name for name in ("A", "B") if isinstance(people[name].said[-1].answer, Decided)]
        (loser,) = {"A", "B"} - {winner}
        request = people["A"].only(ApprovalRequired).request
        winners.add(winner)

        assert [(request, "approved", people[winner].principal)] == resolutions(people["A"])
        assert resolutions(people["A"]) == resolutions(people["B"])
        assert people[winner].principal == people[loser].said[-1].refusal.data["resolution"]["by"]


@claim(
    "APR-05", "a decision without a request id, or with an unknown one, changes nothing and is answered with an error"
)
def a_decision_about_nothing_changes_nothing() -> None:
    told = {"without a request id": "-32602", "an unknown request": "not_found"}
    for what, code in told.items():
        came = played_with(
            "APR-05",
            {"when": "both prompts open", "do": f"approve {what}"},
            {"when": "t=1", "do": "approve", "request": "the one of c2"},
            {"when": "t=2", "do": "decline", "request": "the one of c1"},
        )
        person = a_of(came)
        start, refused, *decided = person.said

        assert code == refused.refusal.code
        assert ["accepted", "accepted"] == [said.answer.status for said in decided]
        assert decided[0].time <= person.time_of(person.all(ApprovalResolved)[0]) + IN_A_MOMENT
        assert {"pay": 1} == came.tool_runs


@claim("APR-06", "cancel sends a closed event for the open request")
def a_cancel_closes_the_request() -> None:
    person = a_of(only("APR-06"))
    request = person.only(ApprovalRequired).request
    kinds = [type(item.event) for item in person.received]

    assert [(request, "cancelled", None)] == resolutions(person)
    assert kinds.index(ApprovalResolved) < kinds.index(RunCancelled)


@claim("APR-06", "the late approve is answered 'not pending' and has no effect")
def a_late_approval_has_no_effect() -> None:
    came = only("APR-06")
    person = a_of(came)
    (refusal,) = [said.refusal for said in person.said if said.method == "approval.decide"]

    assert ("already_resolved", "cancelled") == (refusal.code, refusal.data["resolution"]["outcome"])
    assert [()] == [said.answer.requests for said in person.said if isinstance(said.answer, Requests)]
    assert (2, "hello", {}) == (len(came.played), came.last.result.text, came.tool_runs)


@claim(
    "APR-08",
    "request ids are unique for the life of the process (not derived from call ids): the old approve is refused",
)
def an_old_approval_is_for_an_old_request() -> None:
    came = only("APR-08")
    person = a_of(came)
    first, second = person.all(ApprovalRequired)
    (refusal,) = [said.refusal for said in person.said if said.method == "approval.decide"]

    assert first.request != second.request
    assert first.call not in first.request
    assert ("already_resolved", "cancelled") == (refusal.code, refusal.data["resolution"]["outcome"])
    assert [1, 2] == [first.arguments["n"], second.arguments["n"]]


@claim("APR-08", "the request of run 2 is still pending")
def the_new_request_waits_on() -> None:
    person = a_of(only("APR-08"))
    _, second = person.all(ApprovalRequired)
    ((still,),) = [said.answer.requests for said in person.said if isinstance(said.answer, Requests)]

    assert isinstance(still, OpenApproval)
    assert (second.request, second.run, second.call) == (still.request, still.run, still.call)
    assert (second.request, "timed_out", None) == resolutions(person)[-1]  # when its own time has come


@claim("APR-09", "decision event: outcome timeout, decided_by empty")
def nobody_has_decided() -> None:
    person = a_of(only("APR-09"))

    assert [(person.only(ApprovalRequired).request, "timed_out", None)] == resolutions(person)


@claim("APR-09", "timeout, decline and cancel are three different values in events and in the text for the model")
def the_ends_of_a_request_are_told_apart() -> None:
    told = {
        "timed_out": only("APR-09"),
        "denied": played_with("APR-09", {"when": "approval_prompt:c1", "do": "decline"}),
        "cancelled": played_with("APR-09", {"when": "approval_prompt:c1", "do": "cancel run"}),
    }
    texts: dict[str, str] = {}
    for outcome, came in told.items():
        (result,) = results_in(came.messages)
        (shown,) = a_of(came).all(ToolFinished)
        texts[outcome] = result.text

        assert [outcome] == [outcome for _, outcome, _ in resolutions(a_of(came))]
        assert shown.text == result.text

    assert 3 == len(set(texts.values()))
    assert [("timed_out", "expired")] == [(name, "expired") for name, text in texts.items() if "expired" in text]
    assert [("denied", "declined")] == [(name, "declined") for name, text in texts.items() if "declined" in text]


@claim("APR-11", "B gets the still open request with the same request id and the remaining time (about 290 s)")
def a_request_outlives_who_was_shown_it() -> None:
    people = place_of(only("APR-11")).people
    asked = people["A"].only(ApprovalRequired)
    attached, decided = people["B"].said
    assert isinstance(attached.answer, Attached)
    (still,) = attached.answer.open_requests
    assert isinstance(still, OpenApproval)

    assert (asked.request, asked.digest, asked.arguments) == (still.request, still.digest, still.arguments)
    assert 300 == asked.expires_in_seconds
    assert 290 == pytest.approx(still.expires_in_seconds, abs=IN_A_MOMENT)
    assert "accepted" == decided.answer.status
    assert people["A"].numbers[-1] + 1 == people["B"].numbers[0]


@claim(
    "APR-13",
    "the second send is answered with the recorded decision (same as the first), not with an error that hides it",
)
def a_decision_is_given_once_and_told_twice() -> None:
    came = only("APR-13")
    person = a_of(came)
    request = person.only(ApprovalRequired).request
    answers: list[Any] = [said.answer for said in person.said if said.method == "approval.decide"]

    # The one that was under way when the connection broke was sent again by the client itself; then by hand.
    assert [Decided(status="accepted", request=request, replayed=True)] * 2 == answers
    assert 2 == person.client.statistics().connections
    assert [(request, "approved", person.principal)] == resolutions(person)
    assert all(said.time > 2 for said in person.said if said.method == "approval.decide")


@claim("APR-14", "the amount shown in the prompt equals the recorded amount (50)")
def what_is_shown_is_what_runs() -> None:
    came = only("APR-14")

    assert {"amount": 50} == a_of(came).only(ApprovalRequired).arguments
    assert [("amount", 50)] == came.tools.written


@claim("APR-14", "if arguments change after the prompt was sent, the approval does not carry over")
def another_view_is_another_approval() -> None:
    """A hook that changes them later changes nothing; an approval of others is of something else."""
    after = ("hooks", {"after_validate": "amount = min(amount, 50); when it has been shown: amount = 100"})
    changed = only("APR-14", after, ("actions", [{"when": "t=1", "do": "approve", "request": "the request for c1"}]))
    other = played_with(
        "APR-14",
        {"when": "approval_prompt:c1", "do": "approve amount = 100"},
        {"when": "t=1", "do": "decline", "request": "the request for c1"},
    )
    _, refused, decided = a_of(other).said

    assert {"amount": 50} == a_of(changed).only(ApprovalRequired).arguments
    assert [("amount", 50)] == changed.tools.written
    assert "stale_view" == refused.refusal.code
    assert "accepted" == decided.answer.status
    assert ([], []) == (other.tools.written, a_of(other).all(ToolStarted))


@claim("APR-16", "the model is asked once, after all three are settled")
def the_model_hears_of_all_at_once() -> None:
    came = only("APR-16")
    person = a_of(came)
    second = person.all(StepStarted)[1]

    assert 2 == len(came.asked)
    assert [("c1", "ok"), ("c2", "denied"), ("c3", "ok")] == [
        (result.call, result.status) for result in results_in(came.asked[1].messages)
    ]
    assert all(
        person.time_of(event) <= person.time_of(second)
        for event in [*person.all(ApprovalResolved), *person.all(ToolFinished)]
    )
    assert ["accepted"] * 3 == [said.answer.status for said in person.said[1:]]
