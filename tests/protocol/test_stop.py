"""Stop conditions: what they look at, what they say, and what is no condition."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from protocol.errors import SpecError
from protocol.result import StepResult
from protocol.stop import (
    DEFAULT_MAX_STEPS,
    StopCondition,
    StopState,
    has_tool_call,
    has_tool_result,
    is_loop_finished,
    is_step_count,
    max_steps,
    reason_of,
)
from protocol.turns import ToolResult, ToolStatus
from protocol.usage import NO_USAGE


def after(steps: int, *results: ToolResult) -> StopState:
    made = [StepResult(n, "", "", (), results, "tool_calls", NO_USAGE, 0.0) for n in range(steps)]
    return StopState(steps=made, messages=[], usage=NO_USAGE, step_number=steps - 1, elapsed_seconds=0.0)


def result(name: str, status: Any = "ok") -> ToolResult:
    return ToolResult("c", name, status, "")


@pytest.mark.parametrize(
    ("condition", "fires"),
    [
        (is_step_count(2), {2}),
        (max_steps(2), {2, 3, 4}),
        (is_loop_finished(), set()),
    ],
    ids=["is_step_count", "max_steps", "is_loop_finished"],
)
def test_counting_steps(condition: StopCondition, fires: set[int]) -> None:
    """Exactly n, n or more, and never (S3)."""
    assert fires == {steps for steps in range(1, 5) if condition(after(steps))}


@pytest.mark.parametrize("condition", [is_step_count(3), max_steps(3)])
def test_the_reason_of_a_count(condition: StopCondition) -> None:
    """S4, word for word."""
    assert "maximum number of steps (3) reached" == condition(after(3))


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None])
@pytest.mark.parametrize("make", [is_step_count, max_steps])
def test_a_count_is_at_least_one(make: Any, n: Any) -> None:
    """A condition that could never be met as meant is refused where it is made."""
    with pytest.raises(SpecError) as caught:
        make(n)

    assert f"{make.__name__}(n): n must be an integer >= 1; it is {n!r}" == str(caught.value)


@pytest.mark.parametrize("status", ["ok", "error", "timed_out", "interrupted", "denied", "not_run"])
def test_a_tool_was_called_whatever_became_of_it(status: str) -> None:
    """The model's wish counts, not its success (S3)."""
    condition = has_tool_call("look", "read")

    assert "tool 'read' was called" == condition(after(1, result("add"), result("read", status)))


def test_a_discarded_call_is_not_seen() -> None:
    """A call that a person took away does not end the run (S2)."""
    assert None is has_tool_call("read")(after(1, result("read", "discarded")))


def test_only_the_last_step_is_looked_at() -> None:
    """A call of an earlier step has had its chance."""
    state = after(1, result("read"))
    later = StopState(
        steps=[*state.steps, *after(1).steps], messages=[], usage=NO_USAGE, step_number=1, elapsed_seconds=0.0
    )

    assert None is has_tool_call("read")(later)
    assert None is has_tool_call("write")(state)


@pytest.mark.parametrize("status", get_args(ToolStatus))
def test_only_a_success_is_a_result(status: str) -> None:
    """`has_tool_result` wants the tool to have done what it was called for (S3)."""
    expected = "tool 'read' returned a result" if status == "ok" else None

    assert expected == has_tool_result("look", "read")(after(1, result("add"), result("read", status)))


def test_one_success_among_failures_is_enough() -> None:
    """The last step may call a tool twice."""
    state = after(1, result("read", "error"), result("read"))

    assert "tool 'read' returned a result" == has_tool_result("read")(state)


def test_a_result_of_an_earlier_step_has_had_its_chance() -> None:
    """Only the last step is looked at, and only for these tools."""
    before = after(1, result("read"))
    later = StopState(
        steps=[*before.steps, *after(1).steps], messages=[], usage=NO_USAGE, step_number=1, elapsed_seconds=0.0
    )

    assert None is has_tool_result("read")(later)
    assert None is has_tool_result("write")(before)


@pytest.mark.parametrize("make", [has_tool_call, has_tool_result])
def test_before_the_first_step_no_tool_was_called(make: Any) -> None:
    """Whoever drives the loop by hand may ask at any time."""
    assert None is make("read")(after(0))


@pytest.mark.parametrize("make", [has_tool_call, has_tool_result])
def test_a_condition_on_no_tool_is_an_error(make: Any) -> None:
    """It could never fire: the text says what is missing."""
    with pytest.raises(SpecError) as caught:
        make()

    assert f"{make.__name__}() needs at least one tool name, such as {make.__name__}('search')" == str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", None, 3, True, ["read"], print])
@pytest.mark.parametrize("make", [has_tool_call, has_tool_result])
def test_a_tool_is_given_by_its_name(make: Any, name: Any) -> None:
    """A list of names, or a function, could never match: the text shows what was given."""
    with pytest.raises(SpecError) as caught:
        make("look", name)

    assert f"{make.__name__}(*names): each name must be a tool's name, such as 'search'; one is {name!r}" == str(
        caught.value
    )


def my_condition(_state: StopState) -> bool:
    return True


class Called:
    def __call__(self, _state: StopState) -> bool:
        return True


@pytest.mark.parametrize(
    ("condition", "verdict", "expected"),
    [
        (my_condition, None, None),
        (my_condition, "", None),
        (my_condition, False, None),
        (my_condition, "because", "because"),
        (my_condition, True, "my_condition"),
        (Called(), True, "Called"),
    ],
)
def test_what_a_verdict_means(condition: StopCondition, verdict: Any, expected: str | None) -> None:
    """Nothing, a text, or yes for the condition's own name (S1)."""
    assert expected == reason_of(condition, verdict)


@pytest.mark.parametrize("verdict", [0, 1, [], b"x", object()])
def test_anything_else_is_no_verdict(verdict: Any) -> None:
    """A condition that answers something else is broken, and is told what it may answer."""
    with pytest.raises(TypeError, match="a str, a bool or None, not " + type(verdict).__name__):
        reason_of(my_condition, verdict)


def test_what_a_condition_may_look_at() -> None:
    """The fields of S1, and no way to change them."""
    state = after(1)

    assert {"steps", "messages", "usage", "step_number", "elapsed_seconds", "cost", "context"} == set(
        state.__struct_fields__
    )
    with pytest.raises(AttributeError):
        state.step_number = 5  # type: ignore[misc]


def test_the_default_bound() -> None:
    """S5."""
    assert 20 == DEFAULT_MAX_STEPS
