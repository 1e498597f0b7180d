"""May this call run, with exactly these arguments? What may be answered, and what it comes to (T8)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

import pytest

from protocol.approval import (
    ApprovalDecision,
    ApprovalRequest,
    ApprovalResponse,
    approval_resolution,
    approve,
    deny,
    edit,
)
from protocol.codec import decode_event, encode_event
from protocol.errors import InvalidDecision
from protocol.events import ApprovalOutcome, ApprovalRequired, ApprovalResolved
from protocol.gate import ContinuationResponse
from protocol.requests import APPROVAL_TRANSITIONS, DecisionReply, RequestTable, resolution_of

from .questions import approval_question, question


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"decision": "maybe"}, "decision must be approve, deny or timeout; it is 'maybe'"),
        ({"decision": "decline"}, "decision must be approve, deny or timeout; it is 'decline'"),
        ({"decision": True}, "decision must be approve, deny or timeout; it is True"),
        ({"reason": 3}, "reason must be a string or None; it is int"),
        ({"arguments": "a=1"}, "arguments must be a JSON object or None; it is 'a=1'"),
        ({"arguments": [1]}, "arguments must be a JSON object or None; it is [1]"),
        ({"decision": "deny", "arguments": {}}, "arguments go with an approval alone: a call that is not run has none"),
        (
            {"decision": "timeout", "arguments": {}},
            "arguments go with an approval alone: a call that is not run has none",
        ),
    ],
)
def test_a_response_of_the_wrong_kind_is_refused(options: dict[str, Any], told: str) -> None:
    """The one who answers is told which field, what it was and what would be right."""
    with pytest.raises(InvalidDecision) as caught:
        ApprovalResponse(**({"decision": "approve"} | options))

    assert told == str(caught.value)


@pytest.mark.parametrize(
    ("short", "response"),
    [
        (approve(), ApprovalResponse("approve")),
        (deny(), ApprovalResponse("deny")),
        (deny("no"), ApprovalResponse("deny", reason="no")),
        (edit({"a": 2}), ApprovalResponse("approve", arguments={"a": 2})),
        (edit({}), ApprovalResponse("approve", arguments={})),
    ],
)
def test_the_short_forms(short: ApprovalResponse, response: ApprovalResponse) -> None:
    """Three words for what a provider says every day."""
    assert response == short


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (approve(), {"outcome": "approved"}),
        (deny(), {"outcome": "denied"}),
        (deny("not today"), {"outcome": "denied", "reason": "not today"}),
        (edit({"a": 2}), {"outcome": "edited", "arguments": {"a": 2}}),
        (edit({}), {"outcome": "edited", "arguments": {}}),
        (edit(MappingProxyType({"a": 2})), {"outcome": "edited", "arguments": {"a": 2}}),
        (ApprovalResponse("timeout"), {"outcome": "timed_out", "by": None}),
        (ApprovalResponse("timeout", reason="gone"), {"outcome": "timed_out", "by": None, "reason": "gone"}),
    ],
)
def test_what_a_response_comes_to(response: ApprovalResponse, expected: dict[str, Any]) -> None:
    """An edit is told apart from an approval, however small; expiry is nobody's decision; run, call and path are the request's."""
    fields: dict[str, Any] = {
        "run": "r1",
        "agent_path": ("child",),
        "request": "q1",
        "call": "c1",
        "by": "me",
    } | expected

    assert ApprovalResolved(**fields) == approval_resolution(approval_question(agent_path=("child",)), response, "me")


def test_an_approval_binds_what_was_said_then() -> None:
    """Whoever edited may go on using the object: what they do with it later is not what runs."""
    arguments: dict[str, Any] = {"paths": ["a"], "more": {"deep": [1]}, "pair": ("x", "y")}
    resolved = approval_resolution(approval_question(), edit(arguments), "me")
    arguments["paths"].append("/")
    arguments["more"]["deep"][0] = 2
    arguments["new"] = True

    assert {"paths": ["a"], "more": {"deep": [1]}, "pair": ["x", "y"]} == resolved.arguments


@pytest.mark.parametrize("value", [(word for word in "ab"), {"a": MappingProxyType({})}], ids=["generator", "proxy"])
def test_an_edit_that_cannot_be_copied_is_refused(value: object) -> None:
    """Arguments are JSON values: whoever edited is told, and nothing is decided."""
    with pytest.raises(InvalidDecision, match="arguments must be JSON values: TypeError"):
        approval_resolution(approval_question(), edit({"a": value}), "me")


def test_texts_of_a_decision_encode() -> None:
    """Lone surrogates in what a person wrote reach neither the model nor the tool (R3)."""
    denied = approval_resolution(approval_question(), deny("\ud800"), "me")
    edited = approval_resolution(approval_question(), edit({"\ud800": ["\udfff", {"ü": "ü"}, 1, None]}), "me")

    assert "\ufffd" == denied.reason
    assert {"\ufffd": ["\ufffd", {"ü": "ü"}, 1, None]} == edited.arguments
    assert edited == decode_event(encode_event(edited))


def test_the_table_of_states_is_complete() -> None:
    """Out of `pending` once, to every outcome there is, and nowhere after."""
    outcomes = set(get_args(ApprovalOutcome))

    assert outcomes | {"pending"} == set(APPROVAL_TRANSITIONS)
    assert outcomes == APPROVAL_TRANSITIONS["pending"]
    assert {frozenset()} == {APPROVAL_TRANSITIONS[outcome] for outcome in outcomes}


def test_every_decision_comes_to_an_outcome_of_the_table() -> None:
    """No answer leads to a state that is in no table."""
    outcomes = [
        approval_resolution(approval_question(), ApprovalResponse(decision), "me").outcome
        for decision in get_args(ApprovalDecision)
    ]

    assert ["approved", "denied", "timed_out"] == outcomes
    assert set(outcomes) <= APPROVAL_TRANSITIONS["pending"]


class Asked:
    """A table with one open approval, whose tool takes nothing but `{"a": number}`."""

    def __init__(self) -> None:
        self.closed: list[ApprovalResolved] = []
        self.checked: list[Mapping[str, Any]] = []
        self.table = RequestTable(clock=lambda: 0.0)
        self.table.open(approval_question(), None, self.closed.append, check_arguments=self.check)

    def check(self, arguments: Mapping[str, Any]) -> None:
        self.checked.append(arguments)
        if not isinstance(arguments.get("a"), int):
            raise InvalidDecision("a must be a number")

    @property
    def is_open(self) -> bool:
        return [approval_question()] == [request for request, _ in self.table.pending()]


def test_an_edit_that_the_tool_would_not_take_leaves_the_request_open() -> None:
    """Whoever edited is told, and may try again; nothing has been decided in between."""
    asked = Asked()
    with pytest.raises(InvalidDecision, match="a must be a number"):
        asked.table.decide("q1", edit({"a": "x"}), "me")
    was_open, closed = asked.is_open, list(asked.closed)
    reply = asked.table.decide("q1", edit({"a": 3}), "me")

    assert (True, []) == (was_open, closed)
    assert "accepted" == reply.status
    assert [({"a": 3}, "edited")] == [(resolved.arguments, resolved.outcome) for resolved in asked.closed]


def test_what_is_checked_is_what_runs() -> None:
    """The tool looks at the very arguments that the resolution holds."""
    asked = Asked()
    asked.table.decide("q1", edit({"a": 3}), "me")

    assert asked.checked[0] is asked.closed[0].arguments


def test_a_providers_edit_is_checked_too() -> None:
    """A function that edits badly has failed; the request stays open until it is closed as such."""
    asked = Asked()
    with pytest.raises(InvalidDecision, match="a must be a number"):
        asked.table.close(resolution_of(approval_question(), edit({"a": None}), "provider"))
    was_open = asked.is_open
    asked.table.end("q1", "failed")

    assert was_open
    assert ["failed"] == [resolved.outcome for resolved in asked.closed]


@pytest.mark.parametrize("response", [approve(), deny("no")])
def test_only_an_edit_is_checked(response: ApprovalResponse) -> None:
    """The model's own arguments have been validated before anybody was asked."""
    asked = Asked()
    asked.table.decide("q1", response, "me")

    assert [] == asked.checked
    assert 1 == len(asked.closed)


@pytest.mark.parametrize(
    ("request_", "response", "told"),
    [
        (question(), approve(), "q1 asks whether the run may go on: answer with a ContinuationResponse"),
        (question(), deny(), "q1 asks whether the run may go on: answer with a ContinuationResponse"),
        (
            approval_question(),
            ContinuationResponse("approve"),
            "q1 asks for the approval of a call: answer with an ApprovalResponse",
        ),
        (
            approval_question(),
            ContinuationResponse("decline"),
            "q1 asks for the approval of a call: answer with an ApprovalResponse",
        ),
    ],
)
def test_an_answer_to_the_other_question_is_none(request_: Any, response: Any, told: str) -> None:
    """To say "go on" is not to say "run this": such an answer is refused, and the request stays open."""
    table = RequestTable(clock=lambda: 0.0)
    closed: list[Any] = []
    table.open(request_, None, closed.append)
    with pytest.raises(InvalidDecision) as caught:
        table.decide("q1", response, "me")

    assert told == str(caught.value)
    assert ([request_], []) == ([request for request, _ in table.pending()], closed)


def test_a_client_may_not_let_an_approval_expire() -> None:
    """`timeout` is for functions; what is on offer is named."""
    asked = Asked()
    with pytest.raises(InvalidDecision, match="timeout is not on offer for q1: approve, deny"):
        asked.table.decide("q1", ApprovalResponse("timeout"), "me")

    assert asked.is_open


def test_an_approval_that_nobody_gave_is_none() -> None:
    """Expiry never runs a call: there is no other choice for an approval (G8)."""
    asked = Asked()
    expired = [asked.table.expire("q1"), asked.table.expire("q1")]
    late = asked.table.decide("q1", approve(), "me")

    assert [True, False] == expired
    assert [("timed_out", None, None)] == [(one.outcome, one.by, one.arguments) for one in asked.closed]
    assert DecisionReply("already_resolved", "q1", asked.closed[0]) == late


@pytest.mark.parametrize("outcome", ["cancelled", "failed", "agent_ended"])
def test_an_approval_that_nobody_decides_any_more(outcome: Any) -> None:
    """It is closed as what happened, by nobody, once; the call and the path are those of the request."""
    table = RequestTable(clock=lambda: 0.0)
    closed: list[ApprovalResolved] = []
    table.open(approval_question(agent_path=("child",)), None, closed.append)
    ended = [table.end("q1", outcome), table.end("q1", outcome)]
    expected = ApprovalResolved(run="r1", agent_path=("child",), request="q1", call="c1", outcome=outcome, by=None)

    assert [expected, None] == ended
    assert [expected] == closed


def test_a_question_is_its_event() -> None:
    """What a provider is asked is what clients see: one object."""
    assert ApprovalRequired is ApprovalRequest
