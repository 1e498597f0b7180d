"""What may be answered where a call needs approval, and that nothing else approves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cli._answers import Misread, WantsHelp
from actors.cli._approval_answers import approval_question, read_approval
from actors.cli._style import PLAIN
from protocol.approval import ApprovalResponse

from ._attached import approval


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a", ApprovalResponse("approve")),
        (" Yes ", ApprovalResponse("approve")),
        ('e {"path": "b"}', ApprovalResponse("approve", arguments={"path": "b"})),
        ("edit {}", ApprovalResponse("approve", arguments={})),
        ("d", ApprovalResponse("deny")),
        ("deny not that one", ApprovalResponse("deny", reason="not that one")),
        ("?", WantsHelp()),
    ],
)
def test_answers_to_approvals(line: str, expected: object) -> None:
    """Each answer is read in its short and its long form."""
    assert expected == read_approval(line)


@pytest.mark.parametrize("line", ["", " ", "ok", "a b", "e", "e x", "e [1]", "e {", "approved"])
def test_what_is_no_answer_to_an_approval(line: str) -> None:
    """What is not clearly an answer is none, and is told what would be one."""
    answer = read_approval(line)

    assert isinstance(answer, Misread)
    assert answer.why


@given(st.text())
def test_nothing_typed_by_accident_approves_a_call(line: str) -> None:
    """Only the words for it approve."""
    answer = read_approval(line)
    approves = isinstance(answer, ApprovalResponse) and answer.decision == "approve"

    assert not approves or line.split(maxsplit=1)[0].lower() in {"a", "approve", "y", "yes", "e", "edit"}


def test_an_approval_shows_all_that_would_run() -> None:
    """The name and every argument, on lines of their own; nothing drives the terminal; what is cut is said to be."""
    asked = approval_question(approval(arguments={"path": "a\x1b[2J", "n": [1]}), PLAIN)
    long = approval_question(approval(arguments={"text": "x" * 9_000}, expires_in_seconds=None), PLAIN)

    assert asked.startswith('May this call run? delete\n  {\n    "path": "a')
    assert "\x1b" not in asked
    assert "Without an answer within 60 s it is denied." in asked
    assert "... cut: 9,0" in long
    assert "Without an answer" not in long
