"""The budget actor: one run's door to the ledger tree."""

from __future__ import annotations

import attrs

from protocol.ledger import Account, Grant
from protocol.spending import Spending

from ..kit import Ask, Mailbox

__all__ = ("BudgetActor", "Reserve")


@attrs.define(eq=False)
class Reserve(Ask[Grant]):
    """Count one model call, or say which limit refuses it; and settle the one before, in the same breath."""

    settle: int = 0
    """The number of the reservation to settle first; 0: none."""
    spent: Spending | None = None


@attrs.define(eq=False)
class BudgetActor:
    """Owns the run's reservations."""

    account: Account

    async def run(self, mailbox: Mailbox[Reserve]) -> None:
        """Grant or refuse, one ask at a time."""
        account = self.account
        async for message in mailbox:
            if message.settle and message.spent is not None:
                account.settle(message.settle, message.spent)
            grant = account.reserve()
            if not message.reply.set(grant) and grant.number:
                account.release(grant.number)
