"""Stop conditions on calls that lead nowhere: repeated ones, and failures in a row."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import SpecError
from protocol.result import StepResult
from protocol.stop import (
    StopCondition,
    consecutive_errors,
    cost_budget,
    has_tool_call,
    has_tool_result,
    is_loop_finished,
    is_step_count,
    max_steps,
    no_progress,
    time_budget,
    token_budget,
)
from protocol.turns import ToolCall, ToolStatus
from protocol.views import View

from .stopping import Made, Watched, state_of, step

FAILURES = {"error", "timed_out"}
NO_OUTCOME = {"interrupted", "denied", "discarded", "not_run"}


def call(name: str = "read", arguments: str = '{"a": 1}', malformed: str | None = None) -> ToolCall:
    return ToolCall("", name, arguments, malformed)


def made(status: ToolStatus = "ok", arguments: str = '{"a": 1}', name: str = "read") -> Made:
    return call(name, arguments), status


def same_after(*calls: ToolCall) -> bool:
    """Whether `no_progress` takes these calls, one per step, for one and the same."""
    return bool(no_progress(len(calls))(state_of([step((each, "ok")) for each in calls])))


@pytest.mark.parametrize(("times", "fires"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_no_progress_is_k_identical_calls(times: int, fires: bool) -> None:
    """It fires when the last k calls are identical, over steps and within one."""
    reason = "no progress: the last 3 calls of tool 'read' are identical" if fires else None

    assert reason == no_progress(3)(state_of([step(made())] * times))
    assert reason == no_progress(3)(state_of([step(*[made()] * times)]))
    assert reason == no_progress(3)(state_of([step(made(arguments="{}"))] + [step(made())] * times))


def test_another_call_between_is_progress() -> None:
    """In a row means in a row: in the order the model made them, also within a step."""
    other = made(name="look")

    assert None is no_progress(2)(state_of([step(made()), step(other), step(made())]))
    assert None is no_progress(2)(state_of([step(made()), step(made(), other)]))
    assert None is no_progress(2)(state_of([step(made()), step(other, made())]))
    assert no_progress(2)(state_of([step(other, made()), step(made(), other)])) is None
    assert no_progress(2)(state_of([step(other, made()), step(made())]))


@pytest.mark.parametrize("status", get_args(ToolStatus))
def test_only_a_discarded_call_is_not_seen(status: ToolStatus) -> None:
    """S2: a call that a person took away is as if it had not been made; every other counts, whatever came of it."""
    seen = status != "discarded"

    assert seen == bool(no_progress(2)(state_of([step(made()), step(made(status))])))
    assert seen == bool(no_progress(2)(state_of([step(made(status)), step(made())])))


def test_a_discarded_call_does_not_part_a_row() -> None:
    """The calls before and after it are neighbours."""
    between = step(made("discarded", name="look"))

    assert no_progress(2)(state_of([step(made()), between, step(made())]))


def test_steps_without_calls_do_not_part_a_row() -> None:
    """An empty turn between two identical calls is no progress."""
    assert no_progress(2)(state_of([step(made()), step(), step(), step(made())]))


@pytest.mark.parametrize("last", [step(), step(made("discarded"))], ids=["no call", "discarded"])
def test_a_row_is_judged_when_it_grows(last: StepResult) -> None:
    """A step without a call that is seen makes no row longer."""
    assert None is no_progress(2)(state_of([step(made()), step(made()), last]))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('{"a": 1}', '{"a":1}'),
        ('{"a": 1, "b": [2, {"c": null}]}', '{"b":[2,{"c":null}],"a":1}'),
        ('{"a": 1}', '{"a": 1.0}'),
        ('{"a": 100}', '{"a": 1e2}'),
        ('{"a": "\\u00e4"}', '{"a": "ä"}'),
        ("{}", " "),
    ],
)
def test_the_same_json_value_is_the_same_call(left: str, right: str) -> None:
    """White space, order of keys and spelling are not the value."""
    assert same_after(call(arguments=left), call(arguments=right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"b": 1}'),
        ('{"a": 1}', '{"a": 1, "b": 1}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 0}', '{"a": false}'),
        ('{"a": [1]}', '{"a": [true]}'),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ('{"a": [1]}', '{"a": [1, 2]}'),
        ('{"a": {"b": 0}}', '{"a": {"b": false}}'),
        ('{"a": "1"}', '{"a": 1}'),
        ('{"a": null}', '{"a": false}'),
        ('{"a": {}}', '{"a": []}'),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}'),
        ("{", "{ "),
    ],
)
def test_another_json_value_is_another_call(left: str, right: str) -> None:
    """A number is not `true`, a list has an order, and what is no JSON is the same only letter by letter."""
    assert not same_after(call(arguments=left), call(arguments=right))


def test_another_tool_is_another_call() -> None:
    """With the same arguments too."""
    assert not same_after(call("read"), call("look"))


def test_malformed_arguments_are_compared_as_they_came() -> None:
    """Their decoded form is `{}` for all of them; what the model sent is in `malformed`."""
    assert same_after(call(arguments="{}", malformed="[1"), call(arguments="{}", malformed="[1"))
    assert not same_after(call(arguments="{}", malformed="[1"), call(arguments="{}", malformed="[2"))
    assert not same_after(call(arguments="{}"), call(arguments="{}", malformed="[1"))


plain_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
objects = st.dictionaries(st.sampled_from("ab"), plain_json, max_size=2)


@given(objects, objects)
def test_arguments_are_equal_as_their_canonical_texts_are(left: dict[str, Any], right: dict[str, Any]) -> None:
    """With sorted keys and one spelling, two values are the same if and only if their texts are."""
    expected = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)

    assert expected == same_after(call(arguments=json.dumps(left)), call(arguments=json.dumps(right, indent=1)))


drawn_steps = st.lists(
    st.lists(
        st.tuples(st.sampled_from([call(), call(arguments="{}"), call("look")]), st.sampled_from(get_args(ToolStatus))),
        max_size=3,
    ).map(lambda calls: step(*calls)),
    max_size=8,
)


@given(st.integers(2, 4), drawn_steps)
def test_no_progress_is_the_tail_of_all_calls(k: int, steps: list[StepResult]) -> None:
    """It fires if and only if the last step has a call that is seen, and the last k seen are one and the same."""
    seen = [
        [(each.name, each.arguments) for each, result in zip(one.calls, one.results) if result.status != "discarded"]
        for one in steps
    ]
    tail = [each for calls in seen for each in calls][-k:]
    expected = bool(seen and seen[-1]) and len(tail) == k and len(set(tail)) == 1

    assert expected == bool(no_progress(k)(state_of(View(steps))))


@pytest.mark.parametrize(("times", "fires"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_consecutive_errors_are_k_failures(times: int, fires: bool) -> None:
    """It fires when the last k results are failures, over steps and within one, of whatever tools."""
    reason = "the last 3 tool calls failed" if fires else None
    row: list[Made] = [made("error"), made("timed_out", name="look"), made("error", "{}"), made("error")]

    assert reason == consecutive_errors(3)(state_of([step(each) for each in row[:times]]))
    assert reason == consecutive_errors(3)(state_of([step(*row[:times])]))
    assert reason == consecutive_errors(3)(state_of([step(made()), *[step(each) for each in row[:times]]]))


def test_one_error_may_be_enough() -> None:
    """The least k is 1."""
    assert "the last tool call failed" == consecutive_errors(1)(state_of([step(made("error"))]))


@pytest.mark.parametrize("status", get_args(ToolStatus))
def test_what_counts_as_a_failure(status: ToolStatus) -> None:
    """`error` and `timed_out`; nothing else makes a row longer."""
    assert (status in FAILURES) == bool(consecutive_errors(2)(state_of([step(made("error")), step(made(status))])))


@pytest.mark.parametrize("status", get_args(ToolStatus))
def test_what_breaks_a_row_of_failures(status: ToolStatus) -> None:
    """A success alone: what was kept from an outcome says nothing of the tools."""
    state = state_of([step(made("error"), made(status), made("error"))])

    assert (status != "ok") == bool(consecutive_errors(2)(state))
    assert (status in FAILURES) == bool(consecutive_errors(3)(state))


def test_a_success_after_failures_breaks_the_row() -> None:
    """In call order, also where one step holds them all."""
    assert None is consecutive_errors(2)(state_of([step(made("error"), made("error"), made())]))
    assert consecutive_errors(2)(state_of([step(made(), made("error"), made("error"))]))


@given(st.integers(1, 4), drawn_steps)
def test_consecutive_errors_are_the_tail_of_all_results(k: int, steps: list[StepResult]) -> None:
    """It fires if and only if the last step came to an outcome, and the last k outcomes are failures."""
    outcomes = [[each.status for each in one.results if each.status not in NO_OUTCOME] for one in steps]
    tail = [each for statuses in outcomes for each in statuses][-k:]
    expected = bool(outcomes and outcomes[-1]) and len(tail) == k and set(tail) <= FAILURES

    assert expected == bool(consecutive_errors(k)(state_of(View(steps))))


@pytest.mark.parametrize("k", [1, 0, -1, 2.0, True, "3", None])
def test_a_repetition_takes_two(k: Any) -> None:
    """One call is no row: the text says what would be right."""
    with pytest.raises(SpecError) as caught:
        no_progress(k)

    assert f"no_progress(k): k must be an integer >= 2; it is {k!r}" == str(caught.value)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3", None])
def test_a_row_of_failures_has_at_least_one(k: Any) -> None:
    """A row of none would stop every run."""
    with pytest.raises(SpecError) as caught:
        consecutive_errors(k)

    assert f"consecutive_errors(k): k must be an integer >= 1; it is {k!r}" == str(caught.value)


LONG: dict[str, list[StepResult]] = {
    "the same call": [step(made())] * 1000,
    "failures": [step(made("error"))] * 1000,
    "no calls": [step(made()), *[step()] * 999],
    "discarded calls": [step(made()), *[step(made("discarded"))] * 999],
}


@pytest.mark.parametrize("steps", LONG.values(), ids=LONG)
@pytest.mark.parametrize(
    "condition",
    [
        is_step_count(5),
        max_steps(5),
        is_loop_finished(),
        has_tool_call("look"),
        has_tool_result("look"),
        token_budget(5),
        cost_budget(5),
        time_budget(5),
        no_progress(5),
        consecutive_errors(5),
    ],
    ids=lambda condition: condition.__qualname__.split(".")[0],
)
def test_no_condition_walks_all_steps(condition: StopCondition, steps: list[StepResult]) -> None:
    """After a thousand steps it looks at the tail alone: a run's time does not grow with its square."""
    watched = Watched(steps)

    condition(state_of(watched))

    assert watched.looks <= 5


def test_rare_calls_are_not_walked_to_in_every_step() -> None:
    """Between two calls may lie a long stretch without any: it is walked k times over the whole run, not per step."""
    steps: list[StepResult] = []
    looks = 0
    for number in range(1000):
        steps.append(step(made("error", f'{{"a": {number // 500}}}')) if number % 100 == 0 else step())
        for condition in (no_progress(3), consecutive_errors(3)):
            watched = Watched(steps)
            condition(state_of(watched))
            looks += watched.looks

    assert looks < 2 * (3 + 1) * 1000
