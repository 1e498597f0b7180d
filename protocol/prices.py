"""What models cost, in US dollars. A price that is not known is never taken for 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, cast

import attrs

from .errors import SpecError
from .usage import Usage

__all__ = ("Price", "PriceTable", "Prices", "is_priceable")

_PER = 1_000_000
"""Prices are per so many tokens."""


class PriceTable(Protocol):
    """Prices of models by name, as `Model.name` says it: `openai:gpt-4o`. Asked in every step: it must not wait."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """What one call with that usage costs, in US dollars.

        `None`: unknown, because the model has no price or the usage is not `is_priceable()`. Give the usage of one
        call, not a sum over calls: some prices depend on how long the request was.
        """
        ...

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        """What a call of that size costs at most, however its input is split over the cache; `None`: unknown."""
        ...


def is_priceable(usage: Usage) -> bool:
    """Whether the number of tokens in each class is known.

    A class without a number is 0 in a usage that is complete, and unknown in one that is not.
    """
    return usage.complete or None not in {
        usage.uncached_input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
    }


def _dollars(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise SpecError(
            f"Price.{field.name} must be a finite number >= 0, in US dollars per million tokens; it is {value!r}"
        )


def _dollars_or_none(instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        _dollars(instance, field, value)


@attrs.frozen(kw_only=True)
class Price:
    """What one model costs, in US dollars per million tokens. Raises `SpecError` for what is no price."""

    input: float = attrs.field(validator=_dollars)
    """Input that is neither read from nor written to the prompt cache."""
    output: float = attrs.field(validator=_dollars)
    """All output, reasoning included."""
    cache_read: float | None = attrs.field(default=None, validator=_dollars_or_none)
    """Input read from the prompt cache; `None`: as `input`."""
    cache_write: float | None = attrs.field(default=None, validator=_dollars_or_none)
    """Input written to the prompt cache; `None`: as `input`."""

    def cost(self, usage: Usage) -> float | None:
        """What that usage costs, in US dollars; `None`: it is not `is_priceable()`."""
        if not is_priceable(usage):
            return None
        total = (usage.uncached_input_tokens or 0) * self.input + (usage.output_tokens or 0) * self.output
        if usage.cache_read_tokens:
            total += usage.cache_read_tokens * (self.input if self.cache_read is None else self.cache_read)
        if usage.cache_write_tokens:
            total += usage.cache_write_tokens * (self.input if self.cache_write is None else self.cache_write)
        return total / _PER

    def estimate(self, *, input_tokens: int, output_tokens: int) -> float:
        """What a call of that size costs at most: each token of its input at the dearest price of input."""
        dearest = max(self.input, self.cache_read or 0, self.cache_write or 0)
        return (input_tokens * dearest + output_tokens * self.output) / _PER


def _by_name(prices: object) -> dict[str, Price]:
    if not isinstance(prices, Mapping):
        raise SpecError(
            "Prices() takes a mapping of model names to prices, such as {'openai:gpt-4o': Price(input=2.5, output=10)};"
            f" it is {prices!r}"
        )
    table = dict(cast("Mapping[object, object]", prices))
    for name, price in table.items():
        if not isinstance(name, str) or not name.strip():
            raise SpecError(f"Prices(): each key must be a model's name, such as 'openai:gpt-4o'; one is {name!r}")
        if not isinstance(price, Price):
            raise SpecError(f"Prices(): {name!r} must have a Price(input=..., output=...); it has {price!r}")
    return cast("dict[str, Price]", table)


@attrs.frozen
class Prices:
    """A `PriceTable` of your own. A model has the price of its exact name, or none.

    Raises `SpecError` for a key that is no name and for a value that is no `Price`. Later changes of the mapping do
    not show.
    """

    _prices: Mapping[str, Price] = attrs.field(converter=_by_name)

    def cost(self, model: str, usage: Usage) -> float | None:
        """What one call with that usage costs, in US dollars; `None`: unknown."""
        price = self._prices.get(model)
        return None if price is None else price.cost(usage)

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        """What a call of that size costs at most, in US dollars; `None`: unknown."""
        price = self._prices.get(model)
        return None if price is None else price.estimate(input_tokens=input_tokens, output_tokens=output_tokens)
