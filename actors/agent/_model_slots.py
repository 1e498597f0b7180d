"""How many model calls run at a time, for each provider: those that are too many wait in line, fairly.

A call holds its slot from before its request is made until its turn is whole, repeats and the pauses between them
included. Its own timeouts begin when it has the slot; the wall clock of its run does not stand still for the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from protocol.model import Model

from ..kit import FairLimiter, SlotStatistics

__all__ = ("ModelSlots", "provider_of")

OTHERS = "*"


def provider_of(model: Model) -> str:
    """Who answers a model's calls: its `provider`, where it has one, or what its name says up to the colon.

    That of a model over HTTP is the server's host, with the port where the address names one.
    """
    said = getattr(model, "provider", None)
    return said if isinstance(said, str) and said else model.name.partition(":")[0]


@final
class ModelSlots:
    """Slots for model calls."""

    def __init__(self, most: int | Mapping[str, int]) -> None:
        """`most` is what each provider takes at a time; or that by provider, `*` for those that are not named."""
        self._most: Mapping[str, int] = {OTHERS: most} if isinstance(most, int) else dict(most)
        self._limiters: dict[str, FairLimiter] = {}

    def of(self, model: Model) -> FairLimiter | None:
        """Where calls of this model wait; `None` if there is no limit for them."""
        provider = provider_of(model)
        limiter = self._limiters.get(provider)
        if limiter is None:
            most = self._most.get(provider, self._most.get(OTHERS))
            if most is None:
                return None
            limiter = self._limiters[provider] = FairLimiter(most)
        return limiter

    def statistics(self) -> dict[str, SlotStatistics]:
        """A frozen look at the slots, by provider: those that have been asked."""
        return {provider: limiter.statistics() for provider, limiter in self._limiters.items()}
