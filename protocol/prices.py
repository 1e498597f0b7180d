"""What models cost."""

from __future__ import annotations

from typing import Protocol

from .usage import Usage

__all__ = ("PriceTable",)


class PriceTable(Protocol):
    """Prices of models, in US dollars."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """What that usage costs; `None`: unknown."""
        ...

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        """What a call will cost at most; `None`: unknown."""
        ...
