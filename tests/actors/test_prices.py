"""Prices from the real package: the same sums as its own, unknown for what it does not know, and no network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import genai_prices as package
import pytest
from genai_prices import data_snapshot
from genai_prices.types import ClauseContains, ClauseEquals, ModelInfo, ModelPrice, Provider, TieredPrices

from actors import genai_prices
from protocol.errors import SpecError
from protocol.prices import PriceTable
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

SNAPSHOT = data_snapshot.get_snapshot()
FLAT = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def per_token(info: ModelInfo, key: str) -> float:
    """A price of the package's own data, per token."""
    assert isinstance(info.prices, ModelPrice)
    price = vars(info.prices)[key]
    assert isinstance(price, Decimal)
    return float(price) / 1_000_000


def first(provider: str, *keys: str) -> ModelInfo:
    """The first model of a provider whose prices are the same all day, for all lengths, and include these."""
    (found,) = [each for each in SNAPSHOT.providers if each.id == provider]
    return next(
        info
        for info in found.models
        if isinstance(info.prices, ModelPrice)
        and all(isinstance(vars(info.prices).get(key), Decimal) for key in keys)
        and SNAPSHOT.find_provider_model(info.id, None, provider, None)[1] is info
    )


@pytest.mark.parametrize("provider", ["anthropic", "aws"])
def test_each_class_is_priced_once(provider: str) -> None:
    """Cached tokens are not paid as input a second time, reasoning is paid as the output that it is."""
    info = first(provider, *FLAT)
    plain, output, read, write = (per_token(info, key) for key in FLAT)
    table = genai_prices(provider)

    assert len({plain, output, read, write}) == 4
    for usage, expected in (
        (Usage(1000, 0, 0, 0, 0, True), 1000 * plain),
        (Usage(0, 1000, 0, 0, 0, True), 1000 * read),
        (Usage(0, 0, 1000, 0, 0, True), 1000 * write),
        (Usage(0, 0, 0, 1000, 1000, True), 1000 * output),
        (Usage(10, 20, 30, 40, 5, True), 10 * plain + 20 * read + 30 * write + 40 * output),
        (Usage(10, None, None, 40, None, True), 10 * plain + 40 * output),
    ):
        assert pytest.approx(expected) == table.cost(info.id, usage)


def test_a_cache_without_a_price_is_paid_as_input() -> None:
    """The package has no price for writing to the caches of most providers: it is input like any other."""
    info = first("openai", "input_mtok", "output_mtok", "cache_read_mtok")
    assert isinstance(info.prices, ModelPrice)

    assert vars(info.prices).get("cache_write_mtok") is None
    assert pytest.approx(1000 * per_token(info, "input_mtok")) == genai_prices("openai").cost(
        info.id, Usage(0, 0, 1000, 0, 0, True)
    )


def every_model() -> Iterator[tuple[Provider, ModelInfo]]:
    """Each model that is found by its own id."""
    for provider in SNAPSHOT.providers:
        for info in provider.models:
            try:
                found = SNAPSHOT.find_provider_model(info.id, None, provider.id, None)
            except LookupError:
                continue
            if found[1] is info and info.prices:
                yield provider, info


@pytest.mark.slow
def test_the_sum_is_the_package_s_own() -> None:
    """For every model that it knows, below and above the lengths where prices change."""
    sizes = (
        Usage(7, 0, 0, 5, 0, True),
        Usage(10_000, 30_000, 2_000, 900, 300, True),
        Usage(9**6, 9**7, 10, 8, 8, True),
    )
    tables: dict[str, PriceTable] = {}
    compared = 0
    different: list[Any] = []
    for provider, info in every_model():
        table = tables.setdefault(provider.id, genai_prices(provider.id))
        for usage in sizes:
            before = info.get_prices(datetime.now(UTC))
            ours = table.cost(info.id, usage)
            counted = package.Usage(
                input_tokens=usage.input_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                output_tokens=usage.output_tokens,
                output_reasoning_tokens=usage.reasoning_tokens,
            )
            theirs = info.calc_price(counted, provider)
            if theirs.model_price is not before:
                continue  # the hour of another price has struck in between
            priced = vars(before).get("input_mtok") is not None and vars(before).get("output_mtok") is not None
            compared += priced
            if ours != (pytest.approx(float(theirs.total_price)) if priced else None):
                different.append((provider.id, info.id, usage, ours, theirs))

    assert [] == different
    assert compared > 1000


@pytest.mark.slow
def test_no_call_costs_more_than_was_estimated() -> None:
    """However its input is split over the cache, and however much of its output is reasoning."""
    splits = (
        Usage(300_000, 0, 0, 100, 0, True),
        Usage(0, 300_000, 0, 100, 0, True),
        Usage(0, 0, 300_000, 100, 100, True),
        Usage(1, 299_998, 1, 100, 50, True),
    )
    tables: dict[str, PriceTable] = {}
    over: list[Any] = []
    for provider, info in every_model():
        table = tables.setdefault(provider.id, genai_prices(provider.id))
        estimate = table.estimate(info.id, input_tokens=300_000, output_tokens=100)
        costs = [table.cost(info.id, usage) for usage in splits]
        if estimate is None:
            over += [(provider.id, info.id, costs)] if costs != [None] * 4 else []
        elif not all(cost is not None and cost <= estimate * (1 + 1e-9) for cost in costs):
            over.append((provider.id, info.id, estimate, costs))

    assert [] == over


def test_an_estimate_is_of_the_dearest_input() -> None:
    """Where writing to the cache costs more than input, all of it might be written."""
    info = first("anthropic", *FLAT)
    plain, output, _, write = (per_token(info, key) for key in FLAT)

    assert write > plain
    assert pytest.approx(1000 * write + 10 * output) == genai_prices("anthropic").estimate(
        info.id, input_tokens=1000, output_tokens=10
    )


def test_a_long_request_has_the_price_of_its_length() -> None:
    """All of it, from one token above where the tier starts."""
    provider, info, tiers = next(
        (provider, info, prices)
        for provider, info in every_model()
        if isinstance(info.prices, ModelPrice)
        and isinstance(prices := vars(info.prices).get("input_mtok"), TieredPrices)
    )
    start, dearer = tiers.tiers[0].start, float(tiers.tiers[0].price) / 1_000_000
    table = genai_prices(provider.id)

    assert pytest.approx(start * float(tiers.base) / 1_000_000) == table.cost(info.id, Usage(start, 0, 0, 0, 0, True))
    assert pytest.approx((start + 1) * dearer) == table.cost(info.id, Usage(start + 1, 0, 0, 0, 0, True))


def test_the_wire_format_in_a_name_is_left_out() -> None:
    """A model says `openai:NAME` of itself; the package knows `NAME`."""
    info = first("openai", "input_mtok", "output_mtok")
    expected = 1000 * per_token(info, "input_mtok") + 10 * per_token(info, "output_mtok")

    assert pytest.approx(expected) == genai_prices("openai").cost(f"openai:{info.id}", Usage(1000, 0, 0, 10, 0, True))


def test_the_provider_is_found_by_the_model_s_name() -> None:
    """Without one, the package's own choice; with one, no other provider's list is asked."""
    usage = Usage(1000, 0, 0, 10, 0, True)
    expected = package.calc_price(package.Usage(input_tokens=1000, output_tokens=10), "gpt-4o")

    assert pytest.approx(float(expected.total_price)) == genai_prices().cost("openai:gpt-4o", usage)
    assert None is genai_prices("groq").cost("openai:gpt-4o", usage)


@pytest.mark.parametrize("name", ["rules-v1", "scripted", "openai:", "", ":", "openai:some-local-model"])
def test_an_unknown_model_has_no_price(name: str) -> None:
    """Never 0 for want of a price, also for a call that used nothing; asked twice, the answer is the same."""
    table = genai_prices()

    for _ in range(2):
        assert None is table.cost(name, Usage(1000, 0, 0, 10, 0, True))
        assert None is table.cost(name, NO_USAGE)
        assert None is table.estimate(name, input_tokens=1, output_tokens=1)


def test_an_unknown_usage_has_no_cost() -> None:
    """A price alone is not enough."""
    assert None is genai_prices().cost("gpt-4o", UNKNOWN_USAGE)
    assert None is genai_prices().cost("gpt-4o", Usage(10, None, None, 5))


class Counted(data_snapshot.DataSnapshot):
    """Data of one provider, which counts how often a model is looked up in it."""

    lookups = 0

    def find_provider_model(self, *args: Any, **kwargs: Any) -> tuple[Provider, ModelInfo]:
        self.lookups += 1
        return super().find_provider_model(*args, **kwargs)


def data_of(prices: dict[str, Any]) -> Counted:
    """Data in which these models, by their exact names, have these prices."""
    models = [ModelInfo(id=name, match=ClauseEquals(name), prices=each) for name, each in prices.items()]
    provider = Provider(id="x", name="X", api_pattern="x", model_match=ClauseContains(""), models=models)
    return Counted(providers=[provider], from_auto_update=False)


@pytest.fixture
def other_data() -> Iterator[Any]:
    """A way to give the package other data, as its updater does; afterwards it has its own again."""
    yield data_snapshot.set_custom_snapshot
    data_snapshot.set_custom_snapshot(None)


def test_a_colon_may_be_part_of_a_name(other_data: Any) -> None:
    """What the package knows by the whole name is not cut."""
    other_data(
        data_of({"a:b": ModelPrice(input_mtok=Decimal(1)), "b": ModelPrice(input_mtok=Decimal(2))}),
    )
    usage = Usage(1_000_000, 0, 0, 0, 0, True)

    assert (1.0, 2.0, 2.0) == tuple(genai_prices().cost(name, usage) for name in ("a:b", "b", "c:b"))


def test_reasoning_with_a_price_of_its_own_is_a_part_of_the_output(other_data: Any) -> None:
    """It is taken out of the output, never more of it than there is; an estimate takes the dearer of the two."""
    other_data(
        data_of({
            "m": ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2), output_reasoning_mtok=Decimal(5)),
        })
    )
    table = genai_prices()

    assert pytest.approx(8 * 2e-6 + 2 * 5e-6) == table.cost("m", Usage(0, 0, 0, 10, 2, True))
    assert pytest.approx(10 * 5e-6) == table.cost("m", Usage(0, 0, 0, 10, 99, True))
    assert pytest.approx(10 * 5e-6) == table.estimate("m", input_tokens=0, output_tokens=10)


def test_a_model_is_looked_up_once(other_data: Any) -> None:
    """What is found is kept, and that nothing is: a step pays for the sum alone."""
    data = data_of({"m": ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2))})
    other_data(data)
    table = genai_prices()
    for _ in range(5):
        table.cost("m", NO_USAGE)
        table.estimate("m", input_tokens=1, output_tokens=1)
    known = data.lookups
    for _ in range(5):
        table.cost("n", NO_USAGE)

    assert (1, 2) == (known, data.lookups)


def test_newer_data_is_noticed(other_data: Any) -> None:
    """A program that starts the package's updater has the new prices in the next step."""
    table = genai_prices()
    usage = Usage(1000, 0, 0, 10, 0, True)
    before = table.cost("gpt-4o", usage)
    other_data(data_snapshot.DataSnapshot(providers=[], from_auto_update=False))
    without = table.cost("gpt-4o", usage)
    other_data(None)

    assert before is not None
    assert (None, before) == (without, table.cost("gpt-4o", usage))


@pytest.mark.parametrize(
    ("prices", "input_tokens", "output_tokens"),
    [
        (ModelPrice(), 0, 0),
        (ModelPrice(), 1, 0),
        (ModelPrice(output_mtok=Decimal(1)), 1, 0),
        (ModelPrice(input_mtok=Decimal(1)), 1, 1),
        ([], 1, 1),
    ],
    ids=["nothing", "nothing, input", "no input", "no output", "an empty list"],
)
def test_a_model_without_a_price_per_token_has_none(
    other_data: Any, prices: Any, input_tokens: int, output_tokens: int
) -> None:
    """Models that are paid by the minute or by the page would seem to cost nothing."""
    other_data(data_of({"gpt-4o": prices}))
    table = genai_prices()

    assert None is table.cost("gpt-4o", Usage(input_tokens, 0, 0, output_tokens, 0, True))
    assert None is table.estimate("gpt-4o", input_tokens=input_tokens, output_tokens=output_tokens)


@pytest.mark.parametrize("provider", ["no-such-provider", ""])
def test_an_unknown_provider_is_refused(provider: str) -> None:
    """At once, with those that there are: a table that knows nothing would make every cost unknown."""
    with pytest.raises(SpecError) as caught:
        genai_prices(provider)

    assert str(caught.value).startswith(f"genai_prices(provider): there is no provider {provider!r}; there are ")
    assert all(each in str(caught.value) for each in ("anthropic", "groq", "openai"))


@pytest.mark.parametrize("provider", [3, True, ["openai"]])
def test_a_provider_is_a_text(provider: Any) -> None:
    """Nothing else names one."""
    with pytest.raises(SpecError) as caught:
        genai_prices(provider)

    assert f"genai_prices(provider): provider must be a text or None; it is {provider!r}" == str(caught.value)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional; who asks for it is told its name."""
    monkeypatch.delitem(sys.modules, "genai_prices.data_snapshot")
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(SpecError) as caught:
        genai_prices()

    assert (
        "genai_prices() needs the package genai-prices, which cannot be imported: pip install 'onward[prices]'"
        == str(caught.value)
    )
    assert isinstance(caught.value.__cause__, ImportError)


ALONE = """
import sys, threading
events = []
sys.addaudithook(lambda name, args: events.append(name) if name.startswith(("socket.", "urllib.")) else None)
from actors import genai_prices
from protocol.usage import Usage
table = genai_prices()
table.estimate("gpt-4o", input_tokens=5, output_tokens=5)
table.cost("openai:no-such-model", Usage(1, 0, 0, 1, 0, True))
print(table.cost("gpt-4o", Usage(1, 0, 0, 1, 0, True)) is not None, events, threading.active_count())
"""


@pytest.mark.slow
def test_prices_never_use_the_network() -> None:
    """No socket is opened, no name resolved and no thread started: what is installed is what is known."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)

    assert ("True [] 1", "") == (done.stdout.strip(), done.stderr)
