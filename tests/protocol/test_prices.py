"""Prices: what a call costs, what it will cost at most, and that unknown is never 0."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import SpecError
from protocol.prices import Price, Prices, PriceTable, is_priceable
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

from .drawn import usages

M = 1_000_000
dollars = st.floats(0, 1000)
prices = st.builds(
    Price, input=dollars, output=dollars, cache_read=st.none() | dollars, cache_write=st.none() | dollars
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(M, 0, 0, 0, 0, True), 3.0),
        (Usage(0, M, 0, 0, 0, True), 0.5),
        (Usage(0, 0, M, 0, 0, True), 4.0),
        (Usage(0, 0, 0, M, 0, True), 15.0),
        (Usage(0, 0, 0, M, M, True), 15.0),
        (Usage(M, M, M, M, M, True), 22.5),
        (Usage(1, 0, 0, 0, 0, True), 3e-6),
        (NO_USAGE, 0.0),
    ],
)
def test_each_class_has_its_price(usage: Usage, expected: float) -> None:
    """US dollars per million tokens; reasoning is a part of the output and is paid once."""
    price = Price(input=3, output=15, cache_read=0.5, cache_write=4)

    assert expected == price.cost(usage)


def test_a_cache_without_a_price_costs_what_input_costs() -> None:
    """`None` is no discount; 0 is one."""
    usage = Usage(M, M, M, 0, 0, True)

    assert 9.0 == Price(input=3, output=15).cost(usage)
    assert 3.0 == Price(input=3, output=15, cache_read=0, cache_write=0).cost(usage)


@given(prices, usages)
def test_a_cost_is_the_sum_over_the_classes(price: Price, usage: Usage) -> None:
    """Exactly reckoned it is the same but for rounding."""
    counts = (
        (usage.uncached_input_tokens, price.input),
        (usage.cache_read_tokens, price.input if price.cache_read is None else price.cache_read),
        (usage.cache_write_tokens, price.input if price.cache_write is None else price.cache_write),
        (usage.output_tokens, price.output),
    )
    unknown = not usage.complete and any(tokens is None for tokens, _ in counts)
    exact = sum(((tokens or 0) * Fraction(each) for tokens, each in counts), Fraction()) / M

    assert (None if unknown else pytest.approx(float(exact))) == price.cost(usage)


@pytest.mark.parametrize(
    "usage",
    [Usage(None, 1, 1, 1, 0), Usage(1, None, 1, 1, 0), Usage(1, 1, None, 1, 0), Usage(1, 1, 1, None, 0)],
    ids=["input", "cache read", "cache write", "output"],
)
def test_an_unknown_class_makes_the_cost_unknown(usage: Usage) -> None:
    """Where not everything was reported, a class without a number may have been any number."""
    assert not is_priceable(usage)
    assert None is Price(input=3, output=15).cost(usage)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(10, None, None, 5, None, True),
        Usage(10, 0, 0, 5, None, False),
        NO_USAGE,
    ],
    ids=["not said by a server without a cache", "reasoning is in the output", "no call"],
)
def test_what_is_enough_to_know_the_cost(usage: Usage) -> None:
    """A complete usage leaves out only what there was none of, and reasoning has no price of its own."""
    expected = ((usage.uncached_input_tokens or 0) * 3 + (usage.output_tokens or 0) * 15) / M

    assert is_priceable(usage)
    assert expected == Price(input=3, output=15).cost(usage)


def test_a_model_has_the_price_of_its_exact_name() -> None:
    """Nothing is guessed: a longer name, a shorter one and another case are other models."""
    table: PriceTable = Prices({"openai:gpt-4o": Price(input=2.5, output=10)})
    usage = Usage(M, 0, 0, M, 0, True)

    assert 12.5 == table.cost("openai:gpt-4o", usage)
    assert 12.5 == table.estimate("openai:gpt-4o", input_tokens=M, output_tokens=M)
    for name in ("gpt-4o", "openai:gpt-4o-mini", "openai:gpt-4", "OpenAI:gpt-4o", ""):
        assert None is table.cost(name, usage)
        assert None is table.cost(name, NO_USAGE)
        assert None is table.estimate(name, input_tokens=0, output_tokens=0)


def test_a_table_knows_no_cost_of_an_unknown_usage() -> None:
    """A price alone is not enough."""
    assert None is Prices({"m": Price(input=0, output=0)}).cost("m", UNKNOWN_USAGE)


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        (Price(input=3, output=15), 18.0),
        (Price(input=3, output=15, cache_read=0.3, cache_write=3.75), 18.75),
        (Price(input=3, output=15, cache_read=4), 19.0),
        (Price(input=3, output=15, cache_read=0, cache_write=0), 18.0),
    ],
)
def test_an_estimate_takes_the_dearest_input(price: Price, expected: float) -> None:
    """Nobody knows before a call how much of its input the cache will take."""
    assert expected == Prices({"m": price}).estimate("m", input_tokens=M, output_tokens=M)


@given(prices, usages)
def test_no_call_costs_more_than_was_estimated(price: Price, usage: Usage) -> None:
    """A budget that reserves the estimate is not overrun by a call of that size."""
    cost = price.cost(usage)
    estimate = price.estimate(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens or 0)

    assert cost is None or cost <= estimate * (1 + 1e-9)


def test_a_table_is_not_changed_from_outside() -> None:
    """The mapping that it was made from is the caller's own."""
    mapping = {"m": Price(input=1, output=1)}
    table = Prices(mapping)
    del mapping["m"]

    assert 0.0 == table.cost("m", NO_USAGE)


BAD = [-1, -0.01, float("nan"), float("inf"), True, False, "3", Decimal(3), [3]]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write"])
def test_a_price_is_a_finite_number(name: str, value: Any) -> None:
    """The text names the field, what it was, and what would be right."""
    fields: dict[str, Any] = {"input": 1, "output": 1, name: value}
    with pytest.raises(SpecError) as caught:
        Price(**fields)

    assert f"Price.{name} must be a finite number >= 0, in US dollars per million tokens; it is {value!r}" == str(
        caught.value
    )


@pytest.mark.parametrize("name", ["input", "output"])
def test_input_and_output_always_have_a_price(name: str) -> None:
    """Only the cache may go without one of its own."""
    fields: dict[str, Any] = {"input": 1, "output": 1, name: None}
    with pytest.raises(SpecError, match=f"Price.{name} must be a finite number >= 0, .*; it is None"):
        Price(**fields)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "takes a mapping of model names to prices, such as {'openai:gpt-4o': Price(input=2.5, output=10)}; it"),
        ([("m", Price(input=1, output=1))], "takes a mapping of model names to prices"),
        ({"m": 3}, "'m' must have a Price(input=..., output=...); it has 3"),
        ({"m": None}, "'m' must have a Price(input=..., output=...); it has None"),
        ({"": Price(input=1, output=1)}, "each key must be a model's name, such as 'openai:gpt-4o'; one is ''"),
        ({3: Price(input=1, output=1)}, "each key must be a model's name, such as 'openai:gpt-4o'; one is 3"),
    ],
)
def test_what_is_no_table(value: Any, text: str) -> None:
    """The text says which entry is wrong."""
    with pytest.raises(SpecError) as caught:
        Prices(value)

    assert text in str(caught.value)
