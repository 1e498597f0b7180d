"""The ledger: accounts in a tree, and reservations with numbers.

A call is counted when it is *reserved*, on the run's account and on every account above it, in one synchronous step:
parallel runs that share a budget cannot overshoot it. Tokens and cost are *held* for it once its request is known. It is
then settled or released by its number, once; a second attempt does nothing. It is released only if the request never
left (B1).

An account's chain is the account and all above it, each once, nearest first: a run's own, that of the run that started
it, the budgets of both, the runtime's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
import msgspec

from .limits import LimitName, Limits, LimitState
from .spending import AccountFacts, Books, Spending
from .stopwatch import Stopwatch
from .usage import Usage

__all__ = ("RESERVATION_TRANSITIONS", "Account", "AccountStatistics", "Grant", "ReservationState")

ReservationState: TypeAlias = Literal["open", "held", "settled", "released"]
"""Counted; with tokens and cost held; booked; given back."""
RESERVATION_TRANSITIONS: dict[ReservationState, dict[str, ReservationState]] = {
    "open": {"hold": "held", "settle": "settled", "release": "released"},
    "held": {"settle": "settled", "release": "released"},
    "settled": {},
    "released": {},
}
"""Where a reservation may go: out of the ledger once, by being settled or given back, and nowhere after.

An account asks this table before it does anything to a reservation; what the table does not allow changes nothing.
"""

_ROUNDING = 1e-9  # sums of cents in binary: a share that is exactly used up is not exceeded


class Grant(msgspec.Struct, frozen=True, gc=False):
    """The answer to a reservation."""

    number: int
    """The reservation's number; 0 if it was refused."""
    refused: LimitState | None = None
    """The limit that refused it, with the refusing account's numbers."""
    spent: LimitState | None = None
    """Set if this was the last call that the run can get over all accounts up to the root: the limit that is spent."""


@attrs.frozen
class AccountStatistics:
    """The state of an account."""

    name: str
    limits: Limits
    llm_calls: int
    tool_calls: int
    usage: Usage
    cost: float | None
    """US dollars; `None` if the cost of any call is unknown."""
    estimated_tokens: int
    """Charged for calls that reported no usage."""
    estimated_cost: float
    open_reservations: int
    work_seconds: float | None
    """Counted against `wall_clock_seconds`; `None` where there is no such limit."""


class _Reservation(msgspec.Struct, frozen=True, gc=False):
    state: ReservationState
    tokens: int = 0
    cost: float = 0.0


_OPEN = _Reservation("open")  # one for all that hold nothing: a reservation costs no object of its own


@attrs.define(eq=False)
class Account:
    """One node of the ledger's tree: a run, a budget that outlives runs, or the runtime."""

    name: str
    limits: Limits = attrs.field(factory=Limits)
    parents: tuple[Account, ...] = ()
    clock: Callable[[], float] | None = attrs.field(default=None, kw_only=True)
    """Monotonic seconds; needed for `wall_clock_seconds`."""
    holds_final_call: bool = attrs.field(default=False, kw_only=True)
    """While set, the last call is held for this account's own final call: its children see one less (B2)."""
    llm_calls: int = attrs.field(default=0, init=False)
    tool_calls: int = attrs.field(default=0, init=False)
    books: Books = attrs.field(factory=Books, init=False)
    stopwatch: Stopwatch | None = attrs.field(default=None, init=False)
    chain: tuple[Account, ...] = attrs.field(default=(), init=False)
    """This account and all above it, each once, nearest first."""
    holds_amounts: bool = attrs.field(default=False, init=False)
    """Whether tokens or cost are limited anywhere on the chain."""
    limits_cost: bool = attrs.field(default=False, init=False)
    """Whether cost is."""
    on_ended: Callable[[AccountFacts], object] | None = attrs.field(default=None, init=False)
    """Of a budget that is written down: called with what a run has used that drew on it, in the step in which that ends."""
    _limited: tuple[Account, ...] = attrs.field(default=(), init=False)
    _open: dict[int, _Reservation] = attrs.field(factory=dict[int, _Reservation], init=False)
    _last_number: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        chain: dict[Account, None] = {}
        level: dict[Account, None] = {self: None}
        while level:
            chain |= level
            level = {above: None for account in level for above in account.parents}
        self.chain = tuple(chain)
        if self.limits.wall_clock_seconds is not None:
            if self.clock is None:
                raise ValueError(f"account {self.name}: wall_clock_seconds needs a clock")
            self.stopwatch = Stopwatch(self.limits.wall_clock_seconds, self.clock)
        self._limited = tuple([account for account in self.chain if account.limits != _NO_LIMITS])
        amounts = [(a.limits.max_total_tokens, a.limits.max_cost) for a in self._limited]
        self.holds_amounts = any(tokens is not None or cost is not None for tokens, cost in amounts)
        self.limits_cost = any(cost is not None for _, cost in amounts)

    # ------------------------------------------------------------ model calls

    def refusal(self) -> LimitState | None:
        """The limit that would refuse a call of this account's run now, or `None`."""
        for account in self._limited:
            refused = account.refuses(for_child=account is not self)
            if refused is not None:
                return refused
        return None

    def reserve(self) -> Grant:
        """Count one call on this account and all above it, or on none of them. One step, no await."""
        last: Account | None = None
        for account in self._limited:
            for_child = account is not self
            refused = account.refuses(for_child=for_child)
            if refused is not None:
                return Grant(0, refused)
            if (
                last is None
                and account.limits.max_llm_calls is not None
                and account.free_calls(for_child=for_child) == 1
            ):
                last = account
        for account in self.chain:
            account.llm_calls += 1
        self._last_number += 1
        self._open[self._last_number] = _OPEN
        return Grant(self._last_number, None, last.state_of("llm_calls") if last is not None else None)

    def lacks(self, tokens: int, cost: float) -> LimitState | None:
        """The limit that has no room for that many tokens and US dollars beside what is used and held, or `None`."""
        for account in self._limited:
            lacking = account.lacks_itself(tokens, cost)
            if lacking is not None:
                return lacking
        return None

    def lacks_itself(self, tokens: int, cost: float) -> LimitState | None:
        """The same for this account alone."""
        most = self.limits.max_total_tokens
        if most is not None and self.books.charged_tokens + self.books.held_tokens + tokens > most:
            return self.state_of("total_tokens")
        highest = self.limits.max_cost
        if highest is not None and self.books.charged_cost + self.books.held_cost + cost > highest * (1 + _ROUNDING):
            return self.state_of("cost")
        return None

    def hold(self, number: int, tokens: int, cost: float) -> LimitState | None:
        """Hold tokens and US dollars for reservation `number`, or none: the limit that has no room for them."""
        target = self._after(number, "hold")
        if target is None:
            return None
        lacking = self.lacks(tokens, cost)
        if lacking is None:
            self._open[number] = _Reservation(target, tokens, cost)
            for account in self.chain:
                account.books.hold(tokens, cost)
        return lacking

    def settle(self, number: int, spending: Spending) -> None:
        """Book what reservation `number` used. Settling or releasing it again does nothing."""
        if self._after(number, "settle") is None:
            return
        reservation = self._open.pop(number)
        tokens = spending.tokens
        for account in self.chain:
            account.books.add(spending, tokens)
            if reservation is not _OPEN:
                account.books.hold(-reservation.tokens, -reservation.cost)

    def release(self, number: int) -> None:
        """Give reservation `number` back: only for a request that was never handed to the transport."""
        if self._after(number, "release") is None:
            return
        reservation = self._open.pop(number)
        for account in self.chain:
            account.llm_calls -= 1
            if reservation is not _OPEN:
                account.books.hold(-reservation.tokens, -reservation.cost)

    def _after(self, number: int, action: str) -> ReservationState | None:
        """What the table makes of a reservation; `None`: it allows no such thing, or there is no such number."""
        reservation = self._open.get(number)
        return None if reservation is None else RESERVATION_TRANSITIONS[reservation.state].get(action)

    @property
    def open_reservations(self) -> tuple[int, ...]:
        """The numbers that are neither settled nor released."""
        return tuple(sorted(self._open))

    # ------------------------------------------------------------ written down

    def facts(self) -> AccountFacts:
        """What is written down of this account."""
        books, watch = self.books, self.stopwatch
        return AccountFacts(
            self.limits,
            self.llm_calls,
            self.tool_calls,
            books.tally.total(),
            books.charged_tokens,
            books.charged_cost,
            books.known_cost,
            books.cost_is_known,
            books.estimated_tokens,
            books.estimated_cost,
            {number: (one.tokens, one.cost) for number, one in self._open.items()},
            self._last_number,
            self.holds_final_call,
            watch.used if watch is not None else 0.0,
        )

    def take_up(self, facts: AccountFacts, *, alone: bool) -> None:
        """Go on where an account of the same place stood when it was written down.

        The accounts above get what it had used, unless it is not `alone`: then those above it are taken up too, and have it.
        """
        self.limits, self.holds_final_call = facts.limits, facts.holds_final_call
        for account in self.chain if alone else (self,):
            account.add(facts)
        self._last_number = facts.last_number
        for number, (tokens, cost) in facts.open.items():
            self._open[number] = _Reservation("held", tokens, cost) if tokens or cost else _OPEN
            for account in self.chain:
                account.books.hold(tokens, cost)
        if self.stopwatch is not None:
            self.stopwatch.take_up(facts.limits.wall_clock_seconds or self.stopwatch.limit, facts.work_seconds)

    def add(self, facts: AccountFacts) -> None:
        """Add what was used before, to this account alone."""
        self.llm_calls += facts.llm_calls
        self.tool_calls += facts.tool_calls
        self.books.merge(facts)

    def tell_ended(self, *, is_root: bool) -> None:
        """The run whose account this is has ended: tell budgets that are written down, and have not heard of it by its root's."""
        facts = self.facts()
        told = () if is_root else self.parents[0].chain
        for account in self.chain:
            if account.on_ended is not None and account not in told:
                account.on_ended(facts)

    # ------------------------------------------------------------ tool bodies

    def enter_tools(self, wanted: int) -> tuple[int, LimitState | None]:
        """Count up to `wanted` bodies: how many may be entered, and the limit that has no room for the rest."""
        granted = wanted
        short: Account | None = None
        for account in self._limited:
            most = account.limits.max_tool_calls
            if most is not None and most - account.tool_calls < granted:
                granted = max(0, most - account.tool_calls)
                short = account
        for account in self.chain:
            account.tool_calls += granted
        return granted, short.state_of("tool_calls") if short is not None else None

    def leave_tools(self, never_entered: int) -> None:
        """Give back bodies that were counted and not entered."""
        for account in self.chain:
            account.tool_calls -= never_entered

    def spent_tools(self) -> LimitState | None:
        """The limit that lets no further tool body be entered, or `None`."""
        for account in self._limited:
            most = account.limits.max_tool_calls
            if most is not None and account.tool_calls >= most:
                return account.state_of("tool_calls")
        return None

    # ------------------------------------------------------------ what it stands at

    @property
    def usage(self) -> Usage:
        """What has been settled on this account and on those below it."""
        return self.books.tally.total()

    @property
    def cost(self) -> float | None:
        """US dollars settled on this account and those below it; `None` if the cost of any call is unknown."""
        return self.books.cost

    def ceiling(self, name: LimitName) -> float | None:
        """How far this account's own limit may be raised: what those above it have left; `None`: no bound."""
        if name == "tool_iterations":
            return None  # a window is a run's own
        rooms = [
            above.free_calls(for_child=True) if name == "llm_calls" else most - above.used_of(name)
            for above in self.chain[1:]
            if (most := above.limits.of(name)) is not None
        ]
        return min(rooms) if rooms else None

    def extend(self, name: LimitName, grant: float) -> None:
        """Raise this account's own limit, as a decision granted it. Less than nothing is nothing."""
        limits, grant = self.limits, max(0, grant)
        match name:
            case "llm_calls" if limits.max_llm_calls is not None:
                self.limits = attrs.evolve(limits, max_llm_calls=limits.max_llm_calls + int(grant))
            case "tool_calls" if limits.max_tool_calls is not None:
                self.limits = attrs.evolve(limits, max_tool_calls=limits.max_tool_calls + int(grant))
            case "total_tokens" if limits.max_total_tokens is not None:
                self.limits = attrs.evolve(limits, max_total_tokens=limits.max_total_tokens + int(grant))
            case "cost" if limits.max_cost is not None:
                self.limits = attrs.evolve(limits, max_cost=limits.max_cost + grant)
            case "wall_clock" if limits.wall_clock_seconds is not None and self.stopwatch is not None:
                self.limits = attrs.evolve(limits, wall_clock_seconds=limits.wall_clock_seconds + grant)
                self.stopwatch.extend(grant)
            case _:
                pass

    def used_of(self, name: LimitName) -> int | float:
        """What is used of a limit of this account."""
        match name:
            case "llm_calls":
                return self.llm_calls
            case "tool_calls":
                return self.tool_calls
            case "total_tokens":
                return self.books.charged_tokens
            case "cost":
                return self.books.charged_cost
            case "wall_clock":
                return self.stopwatch.used if self.stopwatch is not None else 0.0
            case "tool_iterations" | "history_bytes":
                return 0

    def state_of(self, name: LimitName) -> LimitState:
        """A limit of this account, as of now."""
        return LimitState(name, self.limits.of(name) or 0, self.used_of(name))

    def free_calls(self, *, for_child: bool) -> int:
        """Calls that this account alone would still allow; a child does not see the one that is held."""
        held = 1 if for_child and self.holds_final_call else 0
        return (self.limits.max_llm_calls or 0) - self.llm_calls - held

    def statistics(self) -> AccountStatistics:
        """A frozen look at the account."""
        return AccountStatistics(
            self.name,
            self.limits,
            self.llm_calls,
            self.tool_calls,
            self.usage,
            self.cost,
            self.books.estimated_tokens,
            self.books.estimated_cost,
            len(self._open),
            self.stopwatch.used if self.stopwatch is not None else None,
        )

    def refuses(self, *, for_child: bool) -> LimitState | None:
        """The limit of this account alone that would refuse a call now."""
        limits = self.limits
        if limits.max_llm_calls is not None and self.free_calls(for_child=for_child) < 1:
            return self.state_of("llm_calls")
        if (
            limits.max_total_tokens is not None
            and self.books.charged_tokens + self.books.held_tokens >= limits.max_total_tokens
        ):
            return self.state_of("total_tokens")
        if limits.max_cost is not None and self.books.charged_cost + self.books.held_cost >= limits.max_cost * (
            1 - _ROUNDING
        ):
            return self.state_of("cost")
        if self.stopwatch is not None and self.stopwatch.over:
            return self.state_of("wall_clock")
        return None


_NO_LIMITS = Limits()
