"""The errors: one tree, drawn in the module's docstring, and the words that say whose fault it was."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pytest

from protocol import errors
from protocol.errors import (
    ContextOverflow,
    ContinuationInterrupted,
    FailRun,
    ModelError,
    ModelRefused,
    ModelServerError,
    OnwardError,
    StopRun,
    SubmissionRefused,
    ToolError,
)
from protocol.turns import TextPart, Turn

CLASSES = [getattr(errors, name) for name in errors.__all__]


def drawn_tree() -> dict[str, str]:
    """Each class of the docstring's drawing, and the one it stands under."""
    tree: dict[str, str] = {}
    line_of: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"( *)([A-Z]\w+)(?: |$)", line)
        if found and (found[2] in errors.__all__):
            depth = len(found[1])
            line_of[depth] = found[2]
            above = [line_of[d] for d in sorted(line_of) if d < depth]
            tree[found[2]] = above[-1] if above else "Exception"
            line_of = {d: name for d, name in line_of.items() if d <= depth}
    return tree


def test_the_drawing_is_the_tree() -> None:
    """Every error stands in the drawing, under the class it is a kind of."""
    assert {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES} == drawn_tree()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_says_whose_fault_it_is(kind: type[OnwardError]) -> None:
    """A class has words of its own: what happened and what to do."""
    assert kind.__doc__
    assert issubclass(kind, OnwardError)
    assert kind.__doc__ not in {base.__doc__ for base in kind.__bases__}


def test_what_had_arrived_is_kept() -> None:
    """The partial turn of a lost reply is not lost with the error (R3)."""
    partial = Turn((TextPart("half"),))
    error = ModelServerError("down", status=503, partial=partial, retryable=True)

    assert ("down", 503, partial, True) == (str(error), error.status, error.partial, error.retryable)
    assert (None, False) == (ModelError("x").partial, ModelError("x").retryable)
    assert issubclass(ContextOverflow, ModelRefused)


def test_a_tool_that_ends_the_run_may_say_something() -> None:
    """The text is there as text, also where a tool gave something else (T6)."""
    number: Any = 5

    assert ("", "done", "5") == (StopRun().text, StopRun("done").text, StopRun(number).text)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("cause", [ValueError("bad"), Mute(), ExceptionGroup("g", [KeyError("k")])])
def test_a_tool_that_fails_the_run_says_why(cause: Exception) -> None:
    """The cause is the very exception, in the attribute and for a traceback, whatever its text does (T6)."""
    error = FailRun(cause)

    assert (cause, cause) == (error.cause, error.__cause__)


def test_a_run_may_be_failed_with_a_text() -> None:
    """A text becomes an exception whose text it is, and the error is told by it."""
    error = FailRun("no disk")

    assert (ToolError, "no disk", "no disk") == (type(error.cause), str(error.cause), str(error))
    assert error.cause is error.__cause__


def test_a_refused_submission_is_a_wrong_value() -> None:
    """Who checks what comes from outside catches it as a `ValueError`."""
    assert issubclass(SubmissionRefused, ValueError)


def test_an_interruption_can_be_pickled_and_written_down() -> None:
    """What resumes a decode outlives the process: nothing of it is lost on the way."""
    error = ContinuationInterrupted(
        "the connection broke",
        reason="transport",
        token="tk2",
        interaction_id="i2",
        continuation_ids=("i1", "i2"),
        interaction={"id": "i2", "steps": []},
        usage={"total_tokens": 7},
        hops=1,
        partial=Turn((TextPart("half"),)),
        retryable=True,
    )

    copy = pickle.loads(pickle.dumps(error))

    assert error.as_dict() == copy.as_dict() == json.loads(json.dumps(error.as_dict()))
    assert (error.partial, True) == (copy.partial, copy.retryable)
    assert {"continuation_token": "tk2", "previous_interaction_id": "i2"} == copy.resume_kwargs()
