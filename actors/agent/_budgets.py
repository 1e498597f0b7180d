"""Budgets that outlive a run: what many runs, of one agent or of many, draw on together (B0)."""

from __future__ import annotations

import attrs
import trio

from protocol.errors import SpecError
from protocol.ledger import Account, AccountStatistics
from protocol.limits import Limits, above_zero, at_least_one
from protocol.prices import PriceTable
from protocol.usage import Usage

__all__ = ("Budget", "check_prices")


@attrs.frozen(kw_only=True, eq=False)
class Budget:
    """An account that lives as long as this object. Give it to `AgentSpec(budget=)`, to `open_runtime(budget=)`, or both.

    Every call is reserved before it is made, in one step over all accounts: however many agents share a budget, they
    never make one call too many. Raises `SpecError` for a limit that cannot be one.
    """

    max_llm_calls: int | None = attrs.field(default=None, validator=at_least_one)
    max_tool_calls: int | None = attrs.field(default=None, validator=at_least_one)
    max_total_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    max_cost: float | None = attrs.field(default=None, validator=above_zero)
    """US dollars; the agents that draw on it need `prices`."""
    wall_clock_seconds: float | None = attrs.field(default=None, validator=above_zero)
    """Seconds in which at least one run that draws on it works."""
    parent: Budget | None = attrs.field(default=None, repr=False)
    """A budget that this one is a part of."""
    name: str = "budget"
    account: Account = attrs.field(init=False, repr=False)
    """Its place in the ledger."""

    def __attrs_post_init__(self) -> None:
        if self.parent is not None and not isinstance(self.parent, Budget):
            raise SpecError(f"parent must be the Budget that this one is a part of, or None; it is {self.parent!r}")
        limits = Limits(
            max_llm_calls=self.max_llm_calls,
            max_tool_calls=self.max_tool_calls,
            max_total_tokens=self.max_total_tokens,
            max_cost=self.max_cost,
            wall_clock_seconds=self.wall_clock_seconds,
        )
        parents = (self.parent.account,) if self.parent is not None else ()
        object.__setattr__(self, "account", Account(self.name, limits, parents, clock=trio.current_time))

    @property
    def usage(self) -> Usage:
        """Tokens used so far."""
        return self.account.usage

    @property
    def cost(self) -> float | None:
        """US dollars spent so far; `None` if the cost of any call is unknown."""
        return self.account.cost

    def statistics(self) -> AccountStatistics:
        """A frozen look at the budget."""
        return self.account.statistics()


def check_prices(max_cost: float | None, prices: PriceTable | None, model: str) -> None:
    """Raise `SpecError` if a cost is limited that nobody can work out."""
    if max_cost is None:
        return
    if prices is None:
        raise SpecError("max_cost needs prices: without them no cost is known; give prices=Prices({...})")
    if prices.estimate(model, input_tokens=1, output_tokens=1) is None:
        raise SpecError(f"max_cost: prices has no price for model {model!r}, so its cost would be unknown: add one")
