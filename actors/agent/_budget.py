"""The budget actor: one run's door to the ledger tree."""

from __future__ import annotations

import attrs

from protocol.ledger import Account, Grant

from ..kit import Ask, Mailbox

__all__ = ("BudgetActor", "Reserve")


@attrs.define(eq=False)
class Reserve(Ask[Grant]):
    """Count one model call, or say which limit refuses it."""


@attrs.define(eq=False)
class BudgetActor:
    """Owns the run's reservations."""

    account: Account

    async def run(self, mailbox: Mailbox[Reserve]) -> None:
        """Grant or refuse, one ask at a time."""
        account = self.account
        async for message in mailbox:
            grant = account.reserve()
            if not message.reply.set(grant) and grant.number:
                account.release(grant.number)
