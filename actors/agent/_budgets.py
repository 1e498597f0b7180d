"""Budgets that outlive a run: what many runs, of one agent or of many, draw on together (B0)."""

from __future__ import annotations

from typing import final

import attrs
import msgspec
import trio

from protocol.codec import encode
from protocol.errors import SpecError
from protocol.ledger import Account, AccountStatistics
from protocol.limits import Limits, above_zero, at_least_one
from protocol.prices import PriceTable
from protocol.records import BUDGET_PREFIX, Record
from protocol.spending import AccountFacts
from protocol.usage import Usage

from ..journal import Journal

__all__ = ("Budget", "BudgetBook", "check_prices")


@attrs.frozen(kw_only=True, eq=False)
class Budget:
    """An account that lives as long as this object. Give it to `AgentSpec(budget=)`, to `open_runtime(budget=)`, or both.

    One with a `name` is kept in the runtime's journal: a budget of that name goes on with what was used of it before.

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
    name: str | None = None
    """What a journal knows it by: one budget of that name at a time. `None`: it is not kept."""
    account: Account = attrs.field(init=False, repr=False)
    """Its place in the ledger."""

    def __attrs_post_init__(self) -> None:
        if self.parent is not None and not isinstance(self.parent, Budget):
            raise SpecError(f"parent must be the Budget that this one is a part of, or None; it is {self.parent!r}")
        if self.name is not None and (not isinstance(self.name, str) or not self.name.strip()):
            raise SpecError(f"Budget(name=) must be a name such as 'team', or None; it is {self.name!r}")
        limits = Limits(
            max_llm_calls=self.max_llm_calls,
            max_tool_calls=self.max_tool_calls,
            max_total_tokens=self.max_total_tokens,
            max_cost=self.max_cost,
            wall_clock_seconds=self.wall_clock_seconds,
        )
        parents = (self.parent.account,) if self.parent is not None else ()
        object.__setattr__(self, "account", Account(self.name or "budget", limits, parents, clock=trio.current_time))

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


@final
class BudgetKeeper:
    """Writes a named budget down: the sum of the runs that have ended. It is a source of the journal's.

    The sum changes in the step in which a run ends, and so comes into the same commit as the record that says so: of each run,
    either its own record tells what it has used, or the sum does.
    """

    def __init__(self, journal: Journal, name: str, account: Account) -> None:
        self._journal = journal
        self._name = name
        self._account = account
        self._ended = Account(name)
        account.on_ended = self._run_ended
        facts = journal.budgets().get(name)
        if facts is None:
            return
        self._ended.add(facts)
        if not (account.llm_calls or account.tool_calls):  # else it has lived on in this process
            account.add(facts)
            if account.stopwatch is not None:
                account.stopwatch.take_up(account.stopwatch.limit, facts.work_seconds)

    def take(self) -> Record:
        """The sum, as of now."""
        watch = self._account.stopwatch
        facts = msgspec.structs.replace(self._ended.facts(), work_seconds=watch.used if watch is not None else 0.0)
        return Record(BUDGET_PREFIX + self._name, 1, 0, b"", encode(facts), whole=True)

    def written(self) -> None:
        """Nobody waits for it."""

    def _run_ended(self, facts: AccountFacts) -> None:
        self._ended.add(facts)
        self._journal.touch(self)


@attrs.define(eq=False)
class BudgetBook:
    """The named budgets that the agents of a runtime draw on."""

    journal: Journal
    _known: dict[str, Budget] = attrs.field(factory=dict[str, Budget])

    def enter(self, budget: Budget | None) -> None:
        """Know a budget and those that it is a part of. Raises `SpecError` for a second one of a name."""
        while budget is not None:
            name = budget.name
            if name is not None and self.journal.durable and self._known.get(name) is not budget:
                if name in self._known:
                    raise SpecError(
                        f"there are two budgets named {name!r}: the journal keeps one; give them other names"
                    )
                self._known[name] = budget
                BudgetKeeper(self.journal, name, budget.account)
            budget = budget.parent


def check_prices(max_cost: float | None, prices: PriceTable | None, model: str) -> None:
    """Raise `SpecError` if a cost is limited that nobody can work out."""
    if max_cost is None:
        return
    if prices is None:
        raise SpecError("max_cost needs prices: without them no cost is known; give prices=Prices({...})")
    if prices.estimate(model, input_tokens=1, output_tokens=1) is None:
        raise SpecError(f"max_cost: prices has no price for model {model!r}, so its cost would be unknown: add one")
