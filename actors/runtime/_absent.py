"""The agents that a journal holds and that are not back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from ..journal import KnownAgent

__all__ = ("Absent",)


@final
class Absent:
    """In the journal's order, the oldest first; found by name in one step, however many there are."""

    def __init__(self, known: Iterable[KnownAgent]) -> None:
        self._known = {one.id: one for one in known if not one.retired}
        self._by_name: dict[str, dict[str, KnownAgent]] = {}
        for one in self._known.values():
            if one.made is None:
                self._by_name.setdefault(one.name, {})[one.id] = one

    @property
    def all(self) -> tuple[KnownAgent, ...]:
        """All of them."""
        return tuple(self._known.values())

    def named(self, name: str) -> KnownAgent | None:
        """The oldest of that name that the host had made: not a client."""
        return next(iter(self._by_name.get(name, {}).values()), None)

    def take(self, known: KnownAgent) -> None:
        """It is being brought back."""
        del self._known[known.id]
        if known.made is None:
            del self._by_name[known.name][known.id]

    def put_back(self, known: KnownAgent) -> None:
        """It could not be brought back."""
        self._known = {known.id: known, **self._known}
        if known.made is None:
            self._by_name[known.name] = {known.id: known, **self._by_name[known.name]}
