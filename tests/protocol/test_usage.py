"""Usage: what is unknown stays unknown, and sums do not depend on the order of adding."""

from __future__ import annotations

from functools import reduce
from operator import add

from hypothesis import given
from hypothesis import strategies as st

from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Tally, Usage

from .drawn import usages


@given(usages, usages, usages)
def test_the_sum_is_associative(first: Usage, second: Usage, third: Usage) -> None:
    """However the calls are grouped, their sum is one."""
    assert (first + second) + third == first + (second + third)


@given(usages, usages)
def test_the_sum_is_commutative(first: Usage, second: Usage) -> None:
    """Whichever call is settled first, the sum is one."""
    assert first + second == second + first


@given(usages)
def test_no_usage_is_neutral(usage: Usage) -> None:
    """Adding no call at all changes nothing, from either side."""
    assert usage == usage + NO_USAGE == NO_USAGE + usage


@given(st.lists(usages))
def test_a_tally_is_the_sum(usages_: list[Usage]) -> None:
    """The running sum of an account is the sum of its calls: a class that no call reported stays unknown in it."""
    tally = Tally()
    for usage in usages_:
        tally.add(usage)

    assert reduce(add, usages_, NO_USAGE) == tally.total()


@given(usages, usages)
def test_totals_add_up(first: Usage, second: Usage) -> None:
    """Known tokens are summed, and the sum is complete only if both are."""
    total = first + second

    assert first.total_tokens + second.total_tokens == total.total_tokens
    assert (first.complete and second.complete) == total.complete


def test_unknown_is_not_zero() -> None:
    """A call that reported nothing has no numbers; one that reported 0 has 0."""
    reported = Usage(0, 0, 0, 0, 0, True)

    assert UNKNOWN_USAGE.output_tokens is None
    assert (UNKNOWN_USAGE + UNKNOWN_USAGE).output_tokens is None
    assert 0 == reported.output_tokens
    assert Usage(5, 1, 2, 7, 3, False) == Usage(5, 1, 2, 7, 3, True) + UNKNOWN_USAGE


def test_input_holds_the_cached_tokens_and_output_the_reasoning() -> None:
    """The classes do not overlap, so the totals count nothing twice."""
    usage = Usage(10, 20, 30, 7, 5, True)

    assert 60 == usage.input_tokens
    assert 67 == usage.total_tokens
