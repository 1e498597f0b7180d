"""What the command says of usage, limits, ends and failures; and exit statuses."""

from __future__ import annotations

from typing import Any

import pytest

from actors.cli._status import status_of
from actors.cli._style import PLAIN, Style, harmless, one_line, style_for
from actors.cli._words import call_line, closing_text, end_line, hint_for, summary_line, token_words
from protocol.errors import ModelTimeout, ModelUnreachable, RunCancelledError, RunFailedError
from protocol.limits import Counters, LimitState
from protocol.result import RunResult
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

LIMIT = LimitState("tool_iterations", 3, 3)


def result(**fields: Any) -> RunResult:
    """A result: an answer, unless it is said otherwise."""
    return RunResult(**{
        "run": "r1",
        "text": "yes",
        "answered": True,
        "finish_reason": "stop",
        "stopped_by": "model",
        "stop_reason": None,
        "limit": None,
        "finalized": None,
        "steps": (),
        "messages": (),
        "usage": NO_USAGE,
        "context_tokens": None,
        "cost": None,
        "counters": Counters(2, 2, 1, 1, 1),
        "undelivered": (),
        "elapsed_seconds": 1.0,
        **fields,
    })


UNANSWERED: dict[str, Any] = {"answered": False, "text": ""}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (result(), 0),
        (result(stopped_by="tool_iterations", limit=LIMIT, finalized="model"), 0),
        (result(**UNANSWERED, stopped_by="tool_iterations", limit=LIMIT), 3),
        (result(**UNANSWERED, stopped_by="llm_calls", limit=LIMIT), 3),
        (result(**UNANSWERED, stopped_by="tool_iterations", limit=LIMIT, finalized="fallback"), 3),
        (result(**UNANSWERED, stopped_by="stop_condition", stop_reason="enough"), 3),
        (result(**UNANSWERED, stopped_by="tool"), 3),
        (result(**UNANSWERED, finish_reason="length"), 1),
        (result(**UNANSWERED, finish_reason="content_filter"), 1),
        (result(**UNANSWERED, finish_reason="empty"), 1),
        (result(**UNANSWERED, stopped_by="caller"), 130),
        (RunFailedError("no", partial=result(**UNANSWERED, stopped_by="failure")), 1),
        (RunCancelledError("no", partial=result(**UNANSWERED, stopped_by="cancel")), 130),
    ],
)
def test_status(end: Any, status: int) -> None:
    """Every end of a run has its exit status."""
    assert status == status_of(end)


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (NO_USAGE, "0 tokens in, 0 out"),
        (UNKNOWN_USAGE, "tokens unknown"),
        (Usage(1000, 200, 0, 34, 0, complete=True), "1,200 tokens in, 34 out"),
        (Usage(10, None, None, 5, None), "at least 10 tokens in, 5 out (some unknown)"),
    ],
)
def test_tokens(usage: Usage, said: str) -> None:
    """What was not reported is called unknown, never 0."""
    assert said == token_words(usage)


def test_summary() -> None:
    """The summary names calls, iterations, tokens, cost and time; an unknown cost is called unknown."""
    line = summary_line(result())

    assert line == "2 model calls | 1 tool iteration | 1 tool call | 0 tokens in, 0 out | cost unknown | 1.00 s"
    assert "$0.0123" in summary_line(result(cost=0.01234))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"limit": LIMIT}, "Answered at the limit: 3 of 3 tool iterations."),
        ({**UNANSWERED, "limit": LIMIT}, "3 of 3 tool iterations used"),
        ({**UNANSWERED, "stopped_by": "caller", "stop_reason": "because"}, "Stopped: because."),
        ({**UNANSWERED, "stopped_by": "stop_condition", "stop_reason": "enough"}, "Stopped by a condition: enough."),
        ({**UNANSWERED, "finish_reason": "length"}, "ended with 'length'"),
    ],
)
def test_ends(fields: dict[str, Any], said: str) -> None:
    """An end that the answer does not show is said in words."""
    assert said in end_line(result(**fields))
    assert bool(said) == bool(end_line(result(**fields)))


def test_closing_text() -> None:
    """Of a text that was shown as it came only the runtime's own end is left to show."""
    texts = ("one", "", "two")

    assert closing_text(result(text="two"), texts) == ""
    assert closing_text(result(answered=False, text="one\n\ntwo"), texts) == ""
    assert closing_text(result(answered=False, text="one\n\ntwo\n\nfallback"), texts) == "fallback"
    assert closing_text(result(answered=False, text="fallback"), ()) == "fallback"


def test_hints() -> None:
    """A failure of the server says what to try; other failures have no hint."""
    assert "--base-url" in hint_for(ModelUnreachable("x"))
    assert "silent" in hint_for(ModelTimeout("x"))
    assert hint_for(ValueError("x")) == ""
    assert hint_for(None) == ""


def test_nothing_drives_the_terminal() -> None:
    """Escape sequences and what turns text around become visible; lines and tabs stay."""
    assert harmless("a\x1b[31m\tb\n\u202ec\x9b") == "a\\x1b[31m\tb\n\ufffdc\\x9b"
    assert one_line("a\n b\x07", 10) == "a b\\x07"
    assert one_line("x" * 20, 10) == "x" * 9 + "\u2026"
    assert call_line("t", {"a": "\x1b"}) == 't(a="\\u001b")'


@pytest.mark.parametrize(
    ("terminal", "env", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colours(terminal: bool, env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are for terminals that take them, and never against NO_COLOR."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for key, value in env.items():
        monkeypatch.setenv(key, value)

    assert Style(coloured) == style_for(is_terminal=terminal)


def test_styles_wrap_only_where_there_are_colours() -> None:
    """Without colours, and around nothing, there are no escape sequences."""
    colours = Style(colours=True)

    assert [colours.red("x"), colours.red("")] == ["\x1b[31mx\x1b[0m", ""]
    assert [PLAIN.dim("x"), PLAIN.bold("x"), PLAIN.green("x"), PLAIN.yellow("x")] == ["x"] * 4
