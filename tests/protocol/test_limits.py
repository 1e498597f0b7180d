"""Limits are checked where they are made, and ids, views and counters do what they say."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import SpecError
from protocol.ids import new_id
from protocol.limits import LimitName, Limits, finish_reason_for
from protocol.run import RunState
from protocol.views import View


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, False, float("inf")])
@pytest.mark.parametrize("name", ["max_tool_iterations", "max_llm_calls", "max_tool_calls", "max_total_tokens"])
def test_a_limit_is_an_integer_of_at_least_one(name: str, value: Any) -> None:
    """Anything else is refused where it is written, with the field, what it was and what would be right."""
    options = {name: value}
    with pytest.raises(SpecError) as caught:
        Limits(**options)

    assert f"{name} must be an integer >= 1, or None for no limit; it is {value!r}" == str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [0, 0.0, -0.5, "3", True, False, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["max_cost", "wall_clock_seconds"])
def test_money_and_time_are_numbers_above_zero(name: str, value: Any) -> None:
    """A limit of nothing, or of everything, is a mistake, and is named as one."""
    options = {name: value}
    with pytest.raises(SpecError) as caught:
        Limits(**options)

    assert f"{name} must be a number above 0, or None for no limit; it is {value!r}" == str(caught.value)


ALL_LIMITS: dict[LimitName, tuple[str, Any]] = {
    "tool_iterations": ("max_tool_iterations", 1),
    "llm_calls": ("max_llm_calls", 2),
    "tool_calls": ("max_tool_calls", 3),
    "total_tokens": ("max_total_tokens", 4),
    "cost": ("max_cost", 0.5),
    "wall_clock": ("wall_clock_seconds", 6.5),
}


@pytest.mark.parametrize("name", list(ALL_LIMITS))
def test_each_limit_has_its_name(name: LimitName) -> None:
    """The word of results and events finds the value of its field, and no other."""
    field, value = ALL_LIMITS[name]
    limits = Limits(**{field: value})

    assert {other: value if other == name else None for other in ALL_LIMITS} == {
        other: limits.of(other) for other in ALL_LIMITS
    }


def test_one_limit_is_not_a_runs() -> None:
    """The memory of conversations is the runtime's: a run has no field for it."""
    assert {"history_bytes"} == set(get_args(LimitName)) - set(ALL_LIMITS)


def test_none_is_no_limit() -> None:
    """Nothing is limited unless somebody says so."""
    assert {None} == {Limits().of(name) for name in get_args(LimitName)}
    assert Limits() == Limits(**dict.fromkeys([field for field, _ in ALL_LIMITS.values()]))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("tool_iterations", "max_iterations"),
        ("llm_calls", "max_llm_calls"),
        ("tool_calls", "max_tool_calls"),
        ("total_tokens", "budget"),
        ("cost", "budget"),
        ("wall_clock", "deadline"),
    ],
)
def test_each_limit_has_its_finish_reason(limit: LimitName, expected: str) -> None:
    """The words of loop.md section 7."""
    assert expected == finish_reason_for(limit)


def test_no_limit_is_without_a_finish_reason() -> None:
    """The table is complete."""
    assert all(finish_reason_for(limit) for limit in get_args(LimitName))


@pytest.mark.parametrize(("most", "used", "full"), [(None, 99, False), (2, 1, False), (2, 2, True), (1, 5, True)])
def test_a_window_is_full_when_another_round_would_exceed_it(most: int | None, used: int, full: bool) -> None:
    """The gate is asked for the round after the last allowed one."""
    state = RunState("r", "go", Limits(), window_max=most, window=used)

    assert full is state.window_is_full()


def test_ids_are_unique_and_say_what_they_are() -> None:
    """No id comes twice, and a person sees what it is for."""
    ids = [new_id("run") for _ in range(1000)]
    kinds = {id.split("-")[0] for id in ids}
    boots = {id.split("-")[1] for id in ids}

    assert 1000 == len(set(ids))
    assert {"run"} == kinds
    assert 1 == len(boots)
    assert 8 == len(boots.pop())


@given(st.lists(st.integers()), st.lists(st.integers()), st.slices(10))
def test_a_view_is_a_tuple_of_its_time(items: list[int], later: list[int], cut: slice) -> None:
    """Everything one can ask of a view is answered as of when it was made."""
    expected = tuple(items)
    view = View(items)
    items += later

    assert expected == tuple(view)
    assert expected[cut] == view[cut]
    assert len(expected) == len(view)
    assert [expected[-i] for i in range(1, len(expected) + 1)] == [view[-i] for i in range(1, len(expected) + 1)]
    assert list(reversed(expected)) == list(reversed(view))


@pytest.mark.parametrize("index", [2, -3, 99])
def test_a_view_ends_where_it_ended(index: int) -> None:
    """What was appended since is not reached by any index."""
    items = [1, 2]
    view = View(items)
    items += [3, 4]
    with pytest.raises(IndexError):
        view[index]
