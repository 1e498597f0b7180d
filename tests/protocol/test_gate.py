"""Decisions: what may be said, and what it comes to."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from protocol.errors import InvalidDecision
from protocol.events import ContinuationResolved
from protocol.gate import ContinuationResponse
from protocol.limits import LimitName, LimitState
from protocol.requests import CONTINUATION_TRANSITIONS, DecisionReply, RequestTable, resolution_of

from .questions import question

APPROVE = ContinuationResponse("approve")
DECLINE = ContinuationResponse("decline")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"decision": "maybe"}, "decision must be approve, decline or timeout; it is 'maybe'"),
        ({"decision": None}, "decision must be approve, decline or timeout; it is None"),
        ({"message": 3}, "message must be a string or None; it is int"),
        ({"tool_message": b"x"}, "tool_message must be a string or None; it is bytes"),
        ({"grant": 0}, "grant must be a number above 0 or None; it is 0"),
        ({"grant": -0.5}, "grant must be a number above 0 or None; it is -0.5"),
        ({"grant": True}, "grant must be a number above 0 or None; it is True"),
        ({"grant": "3"}, "grant must be a number above 0 or None; it is '3'"),
        ({"grant": math.nan}, "grant must be a number above 0 or None; it is nan"),
        ({"grant": math.inf}, "grant must be a number above 0 or None; it is inf"),
        (
            {"discard_tool_calls": "a"},
            "discard_tool_calls must be True, False or a collection of call ids; it is 'a'",
        ),
        ({"discard_tool_calls": 1}, "discard_tool_calls must be True, False or a collection of call ids; it is 1"),
    ],
)
def test_a_response_of_the_wrong_kind_is_refused(options: dict[str, Any], told: str) -> None:
    """The one who answers is told which field, what it was and what would be right."""
    with pytest.raises(InvalidDecision) as caught:
        ContinuationResponse(**({"decision": "approve"} | options))

    assert told == str(caught.value)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (APPROVE, {"outcome": "approved", "granted": 2}),
        (ContinuationResponse("approve", grant=7), {"outcome": "approved", "granted": 7}),
        (ContinuationResponse("approve", message="on"), {"outcome": "approved", "granted": 2, "message": "on"}),
        (
            ContinuationResponse("approve", discard_tool_calls=True, tool_message="no"),
            {"outcome": "approved", "granted": 2, "discarded": ("a", "b"), "tool_message": "no"},
        ),
        (
            ContinuationResponse("approve", discard_tool_calls={"b", "a"}),
            {"outcome": "approved", "granted": 2, "discarded": ("a", "b")},
        ),
        (
            ContinuationResponse("approve", discard_tool_calls=["b"]),
            {"outcome": "approved", "granted": 2, "discarded": ("b",)},
        ),
        (ContinuationResponse("approve", discard_tool_calls=[]), {"outcome": "approved", "granted": 2}),
        (DECLINE, {"outcome": "declined"}),
        (
            ContinuationResponse("decline", discard_tool_calls=True, grant=9, message="enough"),
            {"outcome": "declined", "message": "enough"},
        ),
        (ContinuationResponse("timeout"), {"outcome": "timed_out", "by": None}),
        (
            ContinuationResponse("timeout", discard_tool_calls=True, grant=9),
            {"outcome": "timed_out", "by": None},
        ),
    ],
)
def test_what_a_response_comes_to(response: ContinuationResponse, expected: dict[str, Any]) -> None:
    """G3: grants and discards count only with approve; ids come in call order; expiry is nobody's decision."""
    fields: dict[str, Any] = {"run": "r1", "request": "q1", "by": "me"} | expected

    assert ContinuationResolved(**fields) == resolution_of(question("q1", "a", "b"), response, "me")


def test_a_function_that_lets_time_run_out_is_an_expiry() -> None:
    """G8: `timeout` does what the question says an expiry does, whoever noticed that the time is over."""
    asked = question(on_timeout="approve")
    table = RequestTable(clock=lambda: 0.0)
    table.open(asked, None, lambda _: None)
    table.expire("q1")
    resolved = resolution_of(asked, ContinuationResponse("timeout"), "provider")

    assert ("timed_out", "approved", 2, None, True) == (
        resolved.outcome,
        resolved.effect,
        resolved.granted,
        resolved.by,
        resolved.goes_on,
    )
    assert table.resolution("q1") == resolved


WHOLE: list[LimitName] = ["tool_iterations", "llm_calls", "tool_calls", "total_tokens", "history_bytes"]


@pytest.mark.parametrize("name", get_args(LimitName))
@pytest.mark.parametrize("grant", [3, 3.0, 2.5])
def test_a_grant_is_in_the_limits_unit(name: LimitName, grant: float) -> None:
    """Half a dollar or half a second may be granted, half a call may not: the one who answers is told."""
    asked = question(limit=LimitState(name, 2, 2))
    response = ContinuationResponse("approve", grant=grant)
    if name in WHOLE and grant == 2.5:
        with pytest.raises(InvalidDecision, match=f"grant must be an integer >= 1 for {name}; it is 2.5"):
            resolution_of(asked, response, "me")
        return

    assert grant == resolution_of(asked, response, "me").granted


@pytest.mark.parametrize(
    ("grant", "most", "expected"),
    [(None, 3, 2), (1, 3, 1), (3, 3, 3), (4, 3, 3), (10**30, 3, 3), (10**30, None, 10**30), (0.5, 0.25, 0.25)],
)
def test_a_client_may_not_grant_more_than_the_request_says(
    grant: float | None, most: float | None, expected: float
) -> None:
    """A decision from outside is cut to `max_grant`, and the resolution says what was really granted (G3)."""
    table = RequestTable(clock=lambda: 0.0)
    table.open(question(limit=LimitState("cost", 2, 2), max_grant=most), None, lambda _: None)
    reply = table.decide("q1", ContinuationResponse("approve", grant=grant), "me")

    assert isinstance(reply.resolution, ContinuationResolved)
    assert expected == reply.resolution.granted


def test_a_provider_may_grant_more_than_a_client() -> None:
    """`max_grant` is for clients: a function of the developer's own is not cut to it."""
    table = RequestTable(clock=lambda: 0.0)
    closed: list[ContinuationResolved] = []
    table.open(question(max_grant=3), None, closed.append)
    table.close(resolution_of(question(max_grant=3), ContinuationResponse("approve", grant=9), "provider"))

    assert [9] == [resolved.granted for resolved in closed]


def test_an_id_that_is_not_pending_is_an_error() -> None:
    """The text names the id and those that are pending."""
    with pytest.raises(InvalidDecision, match="not pending: x, z; pending are a, b"):
        resolution_of(
            question("q1", "a", "b"), ContinuationResponse("approve", discard_tool_calls=["z", "x", "a"]), "me"
        )


def test_a_sub_agents_path_is_kept() -> None:
    """The resolution speaks where the question spoke (G9)."""
    assert ("child",) == resolution_of(question(agent_path=("child",)), APPROVE, "me").agent_path


def test_texts_of_a_decision_encode() -> None:
    """A lone surrogate in what a person wrote does not reach the history."""
    response = ContinuationResponse("approve", message="\ud800", tool_message="\udfff")
    resolved = resolution_of(question(), response, "me")

    assert ("\ufffd", "\ufffd") == (resolved.message, resolved.tool_message)


@pytest.mark.parametrize(
    ("outcome", "effect", "goes_on"),
    [
        ("approved", None, True),
        ("timed_out", "approved", True),
        ("timed_out", None, False),
        ("declined", None, False),
        ("cancelled", None, False),
        ("failed", None, False),
        ("agent_ended", None, False),
    ],
)
def test_only_approval_goes_on(outcome: Any, effect: Any, goes_on: bool) -> None:
    """A run goes on for an approval, or an expiry that counts as one, and for nothing else."""
    resolved = ContinuationResolved(run="r1", request="q1", outcome=outcome, by=None, effect=effect)

    assert goes_on is resolved.goes_on


def test_the_table_of_states_is_complete() -> None:
    """Out of `pending` once, to every outcome there is, and nowhere after."""
    outcomes = {"approved", "declined", "timed_out", "cancelled", "failed", "agent_ended"}

    assert outcomes | {"pending"} == set(CONTINUATION_TRANSITIONS)
    assert outcomes == CONTINUATION_TRANSITIONS["pending"]
    assert {frozenset()} == {CONTINUATION_TRANSITIONS[outcome] for outcome in outcomes}


def test_a_decision_that_is_not_offered_leaves_the_request_open() -> None:
    """`timeout` is for functions; whoever decides from outside may only say what is offered (G8)."""
    table = RequestTable(clock=lambda: 0.0)
    closed: list[ContinuationResolved] = []
    table.open(question("q1", "a"), None, closed.append)
    with pytest.raises(InvalidDecision, match="timeout is not on offer for q1: approve, decline"):
        table.decide("q1", ContinuationResponse("timeout"), "me")
    with pytest.raises(InvalidDecision, match="not pending: z"):
        table.decide("q1", ContinuationResponse("approve", discard_tool_calls=["z"]), "me")

    assert [] == closed
    assert 1 == len(table.pending())
    assert "accepted" == table.decide("q1", APPROVE, "me").status


def test_only_so_many_closed_requests_are_remembered() -> None:
    """The oldest closed ones go, and are not found after; open ones stay whatever their number."""
    table = RequestTable(clock=lambda: 0.0, keep=2)
    for number in range(4):
        table.open(question(f"q{number}"), None, lambda _: None)
    table.open(question("open"), None, lambda _: None)
    for number in range(4):
        table.decide(f"q{number}", DECLINE, "me")
    statuses = [table.decide(f"q{number}", APPROVE, "me").status for number in range(4)]

    assert ["not_found", "not_found", "already_resolved", "already_resolved"] == statuses
    assert ["open"] == [request.request for request, _ in table.pending()]


def test_time_left_is_as_of_now() -> None:
    """Whoever asks later has less time; never less than none."""
    now = [100.0]
    table = RequestTable(clock=lambda: now[0])
    table.open(question("q1"), 103.0, lambda _: None)
    table.open(question("q2"), None, lambda _: None)
    seen = []
    for time in (100.0, 102.5, 110.0):
        now[0] = time
        seen.append([left for _, left in table.pending()])

    assert [[3.0, None], [0.5, None], [0.0, None]] == seen


@pytest.mark.parametrize("on_timeout", ["decline", "approve"])
def test_expiry_is_timed_out_whatever_it_does(on_timeout: Any) -> None:
    """The outcome says what happened, the effect what came of it (G8)."""
    table = RequestTable(clock=lambda: 0.0)
    closed: list[ContinuationResolved] = []
    table.open(question("q1", on_timeout=on_timeout), 1.0, closed.append)
    approved = on_timeout == "approve"

    assert [True, False] == [table.expire("q1"), table.expire("q1")]
    assert [("timed_out", None, "approved" if approved else None, 2 if approved else None)] == [
        (resolved.outcome, resolved.by, resolved.effect, resolved.granted) for resolved in closed
    ]


def test_what_is_set_free_waits_for_the_commit() -> None:
    """The decision stands at once; whoever waits hears of it when it is durable, and later ones are told of it."""
    held: list[Any] = []
    heard: list[ContinuationResolved] = []
    table = RequestTable(clock=lambda: 0.0, commit=lambda resolution, release: held.append((resolution, release)))
    table.open(question("q1"), None, heard.append)
    first = table.decide("q1", APPROVE, "me")
    second = table.decide("q1", DECLINE, "you")
    before = list(heard)
    for _, release in held:
        release()

    assert [] == before
    assert ["accepted", "already_resolved"] == [first.status, second.status]
    assert first.resolution == second.resolution == heard[0]
    assert 1 == len(heard)


def test_an_outcome_that_is_none_is_refused() -> None:
    """A request cannot be closed into `pending`, or into a word that nobody knows."""
    table = RequestTable(clock=lambda: 0.0)
    table.open(question("q1"), None, lambda _: None)
    with pytest.raises(InvalidDecision, match="'pending' is no end"):
        table.end("q1", "pending")  # type: ignore[arg-type]

    assert DecisionReply("not_found", "q2") == table.decide("q2", APPROVE, "me")
    assert 1 == len(table.pending())


def test_the_number_of_a_resolution() -> None:
    """It is known once its event is out, and goes with the resolution when that is forgotten."""
    table = RequestTable(clock=lambda: 0.0, keep=1)
    numbers = []
    for name in ("q1", "q2"):
        table.open(question(name), None, lambda _resolution: None)
        table.note_number(name, 6)  # it is open still: there is none
        table.end(name, "cancelled")
        numbers.append(table.number(name))
        table.note_number(name, 7)
        numbers.append(table.number(name))

    assert [None, 7, None, 7] == numbers
    assert [None, 7] == [table.number(name) for name in ("q1", "q2")]
