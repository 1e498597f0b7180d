"""What calls have used, as an account books it: what was reported, what is charged, and what is held for calls in flight."""

from __future__ import annotations

import msgspec

from .limits import Limits
from .usage import NO_USAGE, Tally, Usage

__all__ = ("AccountFacts", "Books", "Spending")


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

    def merge(self, facts: AccountFacts) -> None:
        """Add what another account's books held when they were written down."""
        self.tally.add(facts.usage)
        self.charged_tokens += facts.charged_tokens
        self.charged_cost += facts.charged_cost
        self.known_cost += facts.known_cost
        self.cost_is_known = self.cost_is_known and facts.cost_is_known
        self.estimated_tokens += facts.estimated_tokens
        self.estimated_cost += facts.estimated_cost


class AccountFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An account as it is written down. What is held is not in the sums: it stands with its reservation."""

    limits: Limits
    """As decisions have extended them."""
    llm_calls: int = 0
    tool_calls: int = 0
    usage: Usage = NO_USAGE
    charged_tokens: int = 0
    charged_cost: float = 0.0
    known_cost: float = 0.0
    cost_is_known: bool = True
    estimated_tokens: int = 0
    estimated_cost: float = 0.0
    open: dict[int, tuple[int, float]] = {}
    """Reservations that are neither settled nor released: tokens and US dollars held for each."""
    last_number: int = 0
    holds_final_call: bool = False
    work_seconds: float = 0.0
    """Counted against `wall_clock_seconds`."""
