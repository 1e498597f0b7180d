"""Prices from the package `genai-prices`, the extra `prices`: the public price lists, kept by others.

The package is imported when a table is made, not with this module: it brings pydantic and an HTTP client. It prices
from the data that is installed with it; nothing here starts its updater, the only part of it that uses the network.
A program that starts it itself gets the newer prices here too.

Looking up and the choice of the prices of the hour are the package's; the sum is made here, because its own takes
many times as long, and this runs in every step. It counts in classes that overlap (its input holds the cached tokens, its
output the reasoning), and takes a class with a price of its own out of the one that holds it. Ours do not overlap but
for reasoning, and a class without a price of its own has that of the class that would hold it: the same sum.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs

from protocol.errors import SpecError
from protocol.prices import PriceTable, is_priceable
from protocol.usage import Usage

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo

__all__ = ("genai_prices",)

_PER = 1_000_000
_REQUESTS = 1_000


def genai_prices(provider: str | None = None) -> PriceTable:
    """The prices of the installed package `genai-prices`, which is imported here: a fifth of a second, once.

    `provider` says whose price list holds, such as `openai`, `azure` or `groq`; without it, that of the provider which
    the package takes the model's name for. A model is looked up as it is named, then without what stands before the
    first colon: `openai:gpt-4o`, then `gpt-4o`. It has no price if the package does not know it or has none per token
    for it. What usage does not tell apart is priced as the common case: text, the standard service tier, the shortest
    stay in the cache.

    Raises `SpecError` if the package is not installed, or does not know the provider.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        raise SpecError(
            "genai_prices() needs the package genai-prices, which cannot be imported: pip install 'onward[prices]'"
        ) from error
    snapshot = get_snapshot()  # reads the data: now, not in the first step of a run
    if provider is not None:
        _check_provider(provider, snapshot)
    return _PackagePrices(provider, get_snapshot)


def _check_provider(provider: object, snapshot: DataSnapshot) -> None:
    if not isinstance(provider, str):
        raise SpecError(f"genai_prices(provider): provider must be a text or None; it is {provider!r}")
    try:
        snapshot.find_provider(None, provider, None)
    except LookupError as error:
        known = ", ".join(sorted(each.id for each in snapshot.providers))
        raise SpecError(f"genai_prices(provider): there is no provider {provider!r}; there are {known}") from error


@attrs.frozen(kw_only=True)
class _Rates:
    """What a call costs, in US dollars per million tokens, and as a request."""

    input: float
    cache_read: float
    cache_write: float
    output: float
    reasoning: float
    request: float


@attrs.define(eq=False)
class _PackagePrices:
    """The package's data. What it finds by a model's name is kept, until it has other data."""

    _provider: str | None
    _get_snapshot: Callable[[], DataSnapshot] = attrs.field(repr=False)
    _snapshot: DataSnapshot | None = attrs.field(default=None, init=False, repr=False)
    _found: dict[str, ModelInfo | None] = attrs.field(factory=dict[str, Any], init=False, repr=False)

    def cost(self, model: str, usage: Usage) -> float | None:
        """What one call with that usage costs, in US dollars; `None`: unknown."""
        if not is_priceable(usage):
            return None
        output = usage.output_tokens or 0
        rates = self._rates(model, usage.input_tokens, output)
        if rates is None:
            return None
        reasoning = min(usage.reasoning_tokens or 0, output)
        total = (
            (usage.uncached_input_tokens or 0) * rates.input
            + (usage.cache_read_tokens or 0) * rates.cache_read
            + (usage.cache_write_tokens or 0) * rates.cache_write
            + (output - reasoning) * rates.output
            + reasoning * rates.reasoning
        )
        return total / _PER + rates.request

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        """What a call of that size costs at most, in US dollars; `None`: unknown."""
        rates = self._rates(model, input_tokens, output_tokens)
        if rates is None:
            return None
        dearest_input = max(rates.input, rates.cache_read, rates.cache_write)
        dearest_output = max(rates.output, rates.reasoning)
        return (input_tokens * dearest_input + output_tokens * dearest_output) / _PER + rates.request

    def _rates(self, model: str, input_tokens: int, output_tokens: int) -> _Rates | None:
        """The prices of now for a request of that length; `None`: there is none for tokens that it has."""
        info = self._model(model)
        if info is None:
            return None
        prices = vars(info.get_prices(datetime.now(UTC)))
        plain = _at(prices.get("input_mtok"), input_tokens)
        output = _at(prices.get("output_mtok"), input_tokens)
        if plain is None or (output is None and output_tokens):
            return None
        output = output or 0.0
        return _Rates(
            input=plain,
            cache_read=_or(_at(prices.get("cache_read_mtok"), input_tokens), plain),
            cache_write=_or(_at(prices.get("cache_write_mtok"), input_tokens), plain),
            output=output,
            reasoning=_or(_at(prices.get("output_reasoning_mtok"), input_tokens), output),
            request=(_at(prices.get("requests_kcount"), input_tokens) or 0.0) / _REQUESTS,
        )

    def _model(self, name: str) -> ModelInfo | None:
        snapshot = self._get_snapshot()
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._found = {}
        elif name in self._found:
            return self._found[name]
        found = _find(snapshot, name, self._provider)
        self._found[name] = found
        return found


def _find(snapshot: DataSnapshot, name: str, provider: str | None) -> ModelInfo | None:
    _, _, bare = name.partition(":")
    for each in (name, bare):
        if each:
            try:
                _, info = snapshot.find_provider_model(each, None, provider, None)
            except LookupError:
                continue
            return info if info.prices else None
    return None


def _at(price: Any, input_tokens: int) -> float | None:
    """A price where requests of that length are: all of a request is priced by the highest tier that it passes."""
    if price is None:
        return None
    if isinstance(price, Decimal):
        return float(price)
    passed = [tier.price for tier in price.tiers if input_tokens > tier.start]
    return float(passed[-1] if passed else price.base)


def _or(price: float | None, default: float) -> float:
    return default if price is None else price
