"""Answers at the limit: what each one means, and that nothing else is an approval."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cli._answers import Misread, WantsHelp, WantsText, question, read_answer
from actors.cli._style import PLAIN
from protocol.events import ContinuationRequired, PendingCall
from protocol.gate import ContinuationResponse
from protocol.limits import LimitState
from protocol.usage import NO_USAGE

CALLS = tuple(PendingCall(f"c{number}", "read_text", {"path": f"{number}.txt"}) for number in range(1, 4))


def request(*, calls: tuple[PendingCall, ...] = CALLS, **fields: Any) -> ContinuationRequired:
    """A request as the gate makes it."""
    return ContinuationRequired(**{
        "run": "r1",
        "request": "q1",
        "limit": LimitState("tool_iterations", 3, 3),
        "max_iterations": 3,
        "total_iterations": 6,
        "tool_calls": calls,
        "text": "",
        "usage": NO_USAGE,
        "cost": None,
        "elapsed_seconds": 1.0,
        "expires_in_seconds": 600.0,
        "decisions": ("approve", "decline"),
        "max_grant": None,
        "default_grant": 3,
        **fields,
    })


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a", ContinuationResponse("approve")),
        (" Approve ", ContinuationResponse("approve")),
        ("y", ContinuationResponse("approve")),
        ("s skip  tests", ContinuationResponse("approve", message="skip  tests")),
        ("steer x", ContinuationResponse("approve", message="x")),
        ("x", ContinuationResponse("approve", discard_tool_calls=True)),
        ("x 1, 3", ContinuationResponse("approve", discard_tool_calls=frozenset({"c1", "c3"}))),
        ("discard 2", ContinuationResponse("approve", discard_tool_calls=frozenset({"c2"}))),
        ("d", ContinuationResponse("decline")),
        ("no", ContinuationResponse("decline")),
        ("d too expensive", ContinuationResponse("decline", message="too expensive")),
        ("s", WantsText()),
        ("?", WantsHelp()),
    ],
)
def test_answers(line: str, expected: object) -> None:
    """Each answer is read in its short and its long form."""
    assert expected == read_answer(line, CALLS)


@pytest.mark.parametrize(
    "line", ["", "  ", "approved", "a skip tests", "yes please", "x 4", "x 0", "x 1 two", "x ²", "ok"]
)
def test_no_answers(line: str) -> None:
    """What is not clearly an answer is none, and is told what would be one."""
    answer = read_answer(line, CALLS)

    assert isinstance(answer, Misread)
    assert answer.why


@given(st.text())
def test_nothing_typed_by_accident_approves(line: str) -> None:
    """Only the words for it approve."""
    answer = read_answer(line, CALLS)
    approves = isinstance(answer, ContinuationResponse) and answer.decision == "approve"

    assert not approves or line.split(maxsplit=1)[0].lower() in {
        "a",
        "approve",
        "y",
        "yes",
        "s",
        "steer",
        "x",
        "discard",
    }


def test_question_shows_what_is_decided() -> None:
    """The limit, every pending call with its arguments, all answers and the time there is."""
    asked = question(request(), PLAIN)

    assert "3 of 3 tool iterations (6 in all). The model wants 3 more calls:" in asked
    assert '  2  read_text(path="2.txt")' in asked
    assert "approve with steering" in asked
    assert "Without an answer within 600 s it is declined." in asked


def test_question_at_its_edges() -> None:
    """One call is one call; many are counted; no deadline is not mentioned; nothing drives the terminal."""
    nasty = PendingCall("c1", "read_text", {"path": "\x1b[2J\nx"})
    one = question(request(calls=(nasty,), expires_in_seconds=None), PLAIN)
    many = question(request(calls=CALLS * 10), PLAIN)

    assert "wants 1 more call:" in one
    assert "Without an answer" not in one
    assert "\x1b" not in one
    assert "... and 10 more" in many
