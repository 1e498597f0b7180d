"""What calls have used, as an account books it: what was reported, what is charged, and what is held for calls in flight."""

from __future__ import annotations

import msgspec

from .usage import Tally, Usage

__all__ = ("Books", "Spending")


class Spending(msgspec.Struct, frozen=True, gc=False):
    """What one call used."""

    usage: Usage
    """As reported."""
    cost: float | None = None
    """US dollars; `None`: unknown."""
    estimated_tokens: int = 0
    """Charged to token limits in place of what was not reported (B3)."""
    estimated_cost: float = 0.0
    """Charged to cost limits in place of what is not known."""

    @property
    def tokens(self) -> int:
        """What token limits are charged."""
        return self.usage.total_tokens + self.estimated_tokens

    def __add__(self, other: Spending) -> Spending:
        """What two calls used together; their cost is known only where both are."""
        return Spending(
            self.usage + other.usage,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.estimated_tokens + other.estimated_tokens,
            self.estimated_cost + other.estimated_cost,
        )


class Books:
    """The sums of one account, cheap to add to."""

    __slots__ = (
        "charged_cost",
        "charged_tokens",
        "cost_is_known",
        "estimated_cost",
        "estimated_tokens",
        "held_cost",
        "held_tokens",
        "known_cost",
        "tally",
    )

    def __init__(self) -> None:
        self.tally = Tally()
        self.charged_tokens = 0
        """What token limits are compared with: reported, or estimated."""
        self.charged_cost = 0.0
        self.known_cost = 0.0
        self.cost_is_known = True
        self.estimated_tokens = 0
        self.estimated_cost = 0.0
        self.held_tokens = 0
        """For calls in flight."""
        self.held_cost = 0.0

    @property
    def cost(self) -> float | None:
        """US dollars; `None` if the cost of any call is unknown."""
        return self.known_cost if self.cost_is_known else None

    def add(self, spending: Spending, tokens: int) -> None:
        """Book what one call used; `tokens` is what it is charged (`spending.tokens`, worked out once for all accounts)."""
        self.tally.add(spending.usage)
        self.charged_tokens += tokens
        self.estimated_tokens += spending.estimated_tokens
        if spending.cost is None:
            self.cost_is_known = False
            self.charged_cost += spending.estimated_cost
            self.estimated_cost += spending.estimated_cost
        else:
            self.known_cost += spending.cost
            self.charged_cost += spending.cost

    def hold(self, tokens: int, cost: float) -> None:
        """Hold amounts for a call in flight; negative ones give them back."""
        self.held_tokens += tokens
        self.held_cost += cost
