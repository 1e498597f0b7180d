"""The ledger: accounts in a tree, and reservations with numbers.

A call is counted when it is *reserved*, on the run's account and on every account above it, in one synchronous
step: parallel runs that share a budget cannot overshoot it. A reservation is then settled or released by its
number, once; a second attempt does nothing. It is released only if the request never left (B1).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import msgspec

from .limits import LimitState
from .usage import Tally, Usage

__all__ = ("Account", "AccountStatistics", "Grant")


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
    llm_calls: int
    max_llm_calls: int | None
    open_reservations: int
    usage: Usage


@attrs.define(eq=False)
class Account:
    """One node of the ledger's tree: a run, a budget that outlives runs, or the runtime."""

    name: str
    max_llm_calls: int | None = None
    parent: Account | None = None
    holds_final_call: bool = False
    """While set, the last call is held for this account's own final call: its children see one less (B2)."""
    llm_calls: int = 0
    tally: Tally = attrs.field(factory=Tally)
    _open: set[int] = attrs.field(factory=set[int])
    _last_number: int = 0

    @property
    def usage(self) -> Usage:
        """What has been settled on this account and on those below it."""
        return self.tally.total()

    def refusal(self) -> LimitState | None:
        """The limit that would refuse a call of this account's run now, or `None`."""
        for account in self._up():
            if account.max_llm_calls is not None and account.free_calls(for_child=account is not self) < 1:
                return account.limit_state()
        return None

    def reserve(self) -> Grant:
        """Count one call on this account and all above it, or on none of them. One step, no await."""
        last: Account | None = None
        account: Account | None = self
        while account is not None:
            if account.max_llm_calls is not None:
                free = account.free_calls(for_child=account is not self)
                if free < 1:
                    return Grant(0, account.limit_state())
                if free == 1 and last is None:
                    last = account
            account = account.parent
        account = self
        while account is not None:
            account.llm_calls += 1
            account = account.parent
        self._last_number += 1
        self._open.add(self._last_number)
        return Grant(self._last_number, None, last.limit_state() if last is not None else None)

    def settle(self, number: int, usage: Usage) -> None:
        """Book what reservation `number` used. Settling or releasing it again does nothing."""
        if number in self._open:
            self._open.discard(number)
            account: Account | None = self
            while account is not None:
                account.tally.add(usage)
                account = account.parent

    def release(self, number: int) -> None:
        """Give reservation `number` back: only for a request that was never handed to the transport."""
        if number in self._open:
            self._open.discard(number)
            for account in self._up():
                account.llm_calls -= 1

    @property
    def open_reservations(self) -> tuple[int, ...]:
        """The numbers that are neither settled nor released."""
        return tuple(sorted(self._open))

    def limit_state(self) -> LimitState:
        """The account's limit of model calls, as of now."""
        return LimitState("llm_calls", self.max_llm_calls or 0, self.llm_calls)

    def statistics(self) -> AccountStatistics:
        """A frozen look at the account."""
        return AccountStatistics(self.name, self.llm_calls, self.max_llm_calls, len(self._open), self.usage)

    def _up(self) -> Iterator[Account]:
        account: Account | None = self
        while account is not None:
            yield account
            account = account.parent

    def free_calls(self, *, for_child: bool) -> int:
        """Calls that this account alone would still allow; a child does not see the one that is held."""
        held = 1 if for_child and self.holds_final_call else 0
        return (self.max_llm_calls or 0) - self.llm_calls - held
