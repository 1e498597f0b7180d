"""Stop conditions on what a run has used: tokens, money, time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import SpecError
from protocol.stop import StopState, cost_budget, time_budget, token_budget
from protocol.usage import UNKNOWN_USAGE, Usage

from .drawn import usages
from .stopping import state_of


@pytest.mark.parametrize(
    ("tokens", "reason"), [(9, None), (10, "token budget (10) reached"), (11, "token budget (10) reached")]
)
def test_a_token_budget_is_input_and_output(tokens: int, reason: str | None) -> None:
    """It fires at n tokens and above, whichever class they are in."""
    for usage in (
        Usage(tokens, 0, 0, 0, 0, True),
        Usage(0, tokens, 0, 0, 0, True),
        Usage(0, 0, tokens, 0, 0, True),
        Usage(0, 0, 0, tokens, tokens, True),
        Usage(tokens - 4, 1, 1, 2, 0, True),
    ):
        assert reason == token_budget(10)(state_of(usage=usage))


def test_unknown_tokens_do_not_count() -> None:
    """Of calls that reported nothing, what is known counts: nothing."""
    condition = token_budget(1)

    assert None is condition(state_of(usage=UNKNOWN_USAGE))
    assert "token budget (1) reached" == condition(state_of(usage=UNKNOWN_USAGE + Usage(output_tokens=1)))


@given(st.integers(1, 5 * 10**6), usages)
def test_a_token_budget_is_the_known_total(n: int, usage: Usage) -> None:
    """It fires if and only if the known total has reached n."""
    assert (usage.total_tokens >= n) == bool(token_budget(n)(state_of(usage=usage)))


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        (None, None),
        (0.0, None),
        (0.24, None),
        (0.25, "cost budget ($0.25) reached"),
        (0.26, "cost budget ($0.25) reached"),
    ],
)
def test_a_cost_budget_is_in_dollars(cost: float | None, reason: str | None) -> None:
    """It fires at x US dollars and above; an unknown cost is no cost that could be compared."""
    assert reason == cost_budget(0.25)(state_of(cost=cost))


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [(0.0, None), (29.9, None), (30.0, "time budget (30 s) reached"), (30.1, "time budget (30 s) reached")],
)
def test_a_time_budget_is_in_seconds(seconds: float, reason: str | None) -> None:
    """It fires once the run has lasted that long."""
    assert reason == time_budget(30)(state_of(elapsed_seconds=seconds))


@pytest.mark.parametrize(
    ("condition", "beside"),
    [
        (token_budget(1), state_of(elapsed_seconds=9.0, cost=9.0)),
        (cost_budget(1), state_of(elapsed_seconds=9.0, usage=Usage(9, 0, 0, 9, 0, True))),
        (time_budget(1), state_of(cost=9.0, usage=Usage(9, 0, 0, 9, 0, True))),
    ],
    ids=["tokens", "cost", "time"],
)
def test_a_budget_counts_its_own_thing(condition: Any, beside: StopState) -> None:
    """What the other budgets count does not move it."""
    assert None is condition(beside)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None])
def test_a_token_budget_is_at_least_one_token(n: Any) -> None:
    """A budget that could never be met as meant is refused where it is made."""
    with pytest.raises(SpecError) as caught:
        token_budget(n)

    assert f"token_budget(n): n must be an integer >= 1; it is {n!r}" == str(caught.value)


@pytest.mark.parametrize("value", [0, 0.0, -1, -0.5, True, "3", None, float("nan"), float("inf"), float("-inf"), 1j])
@pytest.mark.parametrize(
    ("make", "parameter", "unit"), [(cost_budget, "x", "US dollars"), (time_budget, "seconds", "seconds")]
)
def test_an_amount_is_a_finite_number_above_zero(make: Any, parameter: str, unit: str, value: Any) -> None:
    """Which parameter, what it was, and what would be right."""
    with pytest.raises(SpecError) as caught:
        make(value)

    expected = f"{make.__name__}({parameter}): {parameter} must be a finite number of {unit} above 0; it is {value!r}"
    assert expected == str(caught.value)


@pytest.mark.parametrize("make", [cost_budget, time_budget])
def test_an_amount_may_be_an_integer_of_any_size(make: Any) -> None:
    """A number too large for a float is a number."""
    assert None is make(10**400)(state_of(cost=5.0, elapsed_seconds=5.0))
