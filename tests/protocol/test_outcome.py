"""What became of a turn: total over every combination, and generous to nobody."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.outcome import Outcome, OutcomeKind, outcome_of
from protocol.turns import Ending, Finish, Hop, Part, ReasoningPart, TextPart, ToolCall, Turn
from protocol.usage import Usage

from .drawn import turns

GOOD = ToolCall("a", "add", "{}")
CUT = ToolCall("a", "add", "{}", '{"a": 1')
BLANK = TextPart("  ")
TEXT = TextPart("hello")
CONTENTS: dict[str, tuple[Part, ...]] = {
    "nothing": (),
    "blank": (BLANK,),
    "text": (TEXT,),
    "call": (GOOD,),
    "text and call": (TEXT, GOOD),
    "bad call": (CUT,),
}
FINISHES: tuple[Finish | None, ...] = (*get_args(Finish), None)


def became(turn: Turn, max_tokens: int | None = None) -> Outcome:
    return outcome_of(turn, max_tokens)


def rule(end: Ending, finish: Finish | None, contents: str, *, cap_hit: bool) -> tuple[OutcomeKind, bool]:
    """The mapping of loop.md section 3, step 6, said once more."""
    has_call = "call" in contents
    has_text = "text" in contents
    if end == "lost":
        return "failed", False
    if has_call:
        return "calls", finish in {"length", "paused"} or (cap_hit and contents == "bad call")
    if finish in {"length", "paused"}:
        return "truncated", True
    if finish == "content_filter":
        return "blocked", False
    if finish == "malformed":
        return "malformed", False
    if finish == "tool_calls":
        return "empty", False
    if finish == "other" and not has_text:
        return "failed", False
    return ("answer", False) if has_text else ("empty", False)


@pytest.mark.parametrize(
    ("end", "finish", "contents", "cap_hit"),
    list(itertools.product(get_args(Ending), FINISHES, CONTENTS, (False, True))),
)
def test_every_combination_has_one_outcome(end: Ending, finish: Finish | None, contents: str, cap_hit: bool) -> None:
    """Ending, finish reason, calls, text and cap decide, and nothing else."""
    turn = Turn(CONTENTS[contents], finish, "raw", Usage(1, 0, 0, 10, 0, True), end)
    outcome = became(turn, 10 if cap_hit else 11)

    assert rule(end, finish, contents, cap_hit=cap_hit) == (outcome.kind, outcome.cut)


@given(turns, st.none() | st.integers(1, 100))
def test_an_answer_is_whole_and_visible(turn: Turn, max_tokens: int | None) -> None:
    """A cut, lost, blocked, empty or malformed turn never passes for an answer."""
    outcome = became(turn, max_tokens)

    if outcome.kind == "answer":
        assert turn.text.strip()
        assert not turn.calls
        assert "complete" == turn.end
        assert turn.finish in {"stop", "other", None}
        assert Outcome("answer") == outcome


@pytest.mark.parametrize("finish", ["tool_calls", "content_filter", "malformed", "other"])
@pytest.mark.parametrize("contents", ["nothing", "blank"])
def test_what_is_no_answer_says_why(finish: Finish, contents: str) -> None:
    """The detail says what was wrong, in words for a person."""
    outcome = became(Turn(CONTENTS[contents], finish, "why_it_ended"))

    assert "" != outcome.detail


def test_an_unknown_reason_is_kept_verbatim() -> None:
    """A reply with nothing in it, ended for a reason nobody knows, is failed and names the reason."""
    outcome = became(Turn((), "other", "tea_break"))

    assert "failed" == outcome.kind
    assert "'tea_break'" in outcome.detail


@pytest.mark.parametrize("output", [None, 9])
def test_a_cap_that_was_not_reached_cut_nothing(output: int | None) -> None:
    """Bad JSON is the model's own fault where the output ended before the cap, or nobody knows."""
    turn = Turn((CUT,), "tool_calls", usage=Usage(1, 0, 0, output, 0, True))

    assert Outcome("calls") == became(turn, 10)


def test_arguments_that_never_were_json_are_not_cut() -> None:
    """A call whose arguments do not even begin as an object is malformed, not cut off, although the cap was hit."""
    turn = Turn((ToolCall("a", "add", "{}", "please"),), "tool_calls", usage=Usage(1, 0, 0, 10, 0, True))

    assert not became(turn, 10).cut


def test_a_cap_holds_for_each_request() -> None:
    """What several of them put out together says nothing about the last one."""
    call = ToolCall("c", "write", "{}", '{"path": "a')
    usage, last = Usage(1, 0, 0, 20, 0, True), Usage(1, 0, 0, 8, 0, True)
    turn = Turn((call,), "tool_calls", "tool_calls", usage, hops=(Hop(None, "length", last), Hop(None, "stop", last)))

    assert (False, True) == (became(turn, 10).cut, became(turn, 8).cut)


@pytest.mark.parametrize(
    ("turn", "cap", "told"),
    [
        (Turn((TextPart("half"),), "length"), 10, ""),
        (Turn((), "length"), 10, "the reply used up the cap on output tokens (10) before any visible text"),
        (Turn((TextPart(" "),), "length"), None, "the reply used up the cap on output tokens before any visible text"),
        (Turn((ReasoningPart("hm"),), "length"), 10, "reasoning used up the cap on output tokens (10) before any visible text"),
        (Turn((), "length", usage=Usage(1, 0, 0, 9, 9, True)), None, "reasoning used up the cap on output tokens before any visible text"),
        (Turn((), "paused"), 10, "the server paused its work before any visible text"),
    ],
)  # fmt: skip
def test_a_cut_turn_without_text_says_why(turn: Turn, cap: int | None, told: str) -> None:
    """What used up the cap, and how big it was; where there is text, its finish reason says it all."""
    assert ("truncated", told) == (became(turn, cap).kind, became(turn, cap).detail)
