"""Who waits for whom: a wait that would close a circle is refused, not begun.

A *party* is whatever stands still while it waits: the loop of an actor, an ask that tasks of an actor work on, an agent with
the run in hand. A context variable says for which party the code runs; it goes down into every task that the code starts,
so that a tool acts for its agent, and a task that an actor starts acts for the ask it was started for.

Before a wait begins, the waits of those it would wait for are followed. If they lead back to the one who is about to wait, all
of them would wait for ever, and `AskCycle` names the way round. Otherwise the wait is on record until it ends.
"""

from __future__ import annotations

import contextvars
from collections.abc import Generator
from contextlib import contextmanager

from protocol.errors import AskCycle

__all__ = ("Party", "current_party", "party_here", "refuse_circle", "waiting_for")


class Party:
    """Somebody who may wait, and whom others may wait for."""

    __slots__ = ("waits",)

    waits: dict[object, tuple[Party, ...]] | None
    """Whom it waits for now, by wait; made with the first one."""

    def __init__(self) -> None:
        self.waits = None

    @property
    def title(self) -> str:
        """What an error calls it."""
        raise NotImplementedError

    def here(self) -> Party | None:
        """The party that would stand still if the present task, which runs for this one, waited; `None` for nobody."""
        return self

    def begin_wait(self, wait: object, *parties: Party) -> None:
        """It waits for these until `end_wait`. Raises `AskCycle` if the first of them waits for it."""
        refuse_circle(self, parties[0])
        if self.waits is None:
            self.waits = {}
        self.waits[wait] = parties

    def end_wait(self, wait: object) -> None:
        """One of its waits is over."""
        assert self.waits is not None
        del self.waits[wait]


current_party: contextvars.ContextVar[Party | None] = contextvars.ContextVar("current_party", default=None)
"""Whom the present task works for."""


def party_here() -> Party | None:
    """The party that stands still if the present task waits."""
    party = current_party.get()
    return None if party is None else party.here()


@contextmanager
def waiting_for(party: Party | None) -> Generator[None]:
    """Inside the block the present task waits for this party. Raises `AskCycle` if that would be for ever."""
    waiter = party_here()
    if waiter is None or party is None:
        yield
        return
    wait = object()
    waiter.begin_wait(wait, party)
    try:
        yield
    finally:
        waiter.end_wait(wait)


def refuse_circle(waiter: Party, target: Party) -> None:
    """Raise `AskCycle` if the target waits, by whatever way round, for the one who would wait for it."""
    came: dict[Party, Party] = {target: waiter}
    found = [target]
    while found:
        party = found.pop()
        if party is waiter:
            raise AskCycle(f"asking would never end: {' -> '.join(_round(waiter, came))}")
        for parties in (party.waits or {}).values():
            for further in parties:
                if further not in came:
                    came[further] = party
                    found.append(further)


def _round(waiter: Party, came: dict[Party, Party]) -> list[str]:
    """The names on the way from the waiter back to it."""
    names = [waiter.title]
    party = came[waiter]
    while party is not waiter:
        if party.title != names[-1]:  # an actor, and an ask that it has in work, go by one name
            names.append(party.title)
        party = came[party]
    if len(names) == 1 or names[-1] != waiter.title:
        names.append(waiter.title)
    return names[::-1]
