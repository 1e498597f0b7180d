"""The cases tell in words what tools, models and clients do: here a phrase finds the code that does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Phrases(Generic[T]):
    """Code by the pattern that the whole phrase must fit; no two patterns may fit the same one."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: list[tuple[re.Pattern[str], T]] = []

    def says(self, pattern: str) -> Callable[[T], T]:
        """Say that what is decorated is the code of this phrase."""

        def note(code: T) -> T:
            self._known.append((re.compile(pattern), code))
            return code

        return note

    def find(self, phrase: str) -> tuple[T, re.Match[str]]:
        """The code of a phrase, and how its pattern fits."""
        found = [(code, match) for pattern, code in self._known if (match := pattern.fullmatch(phrase))]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} {self._what} are known for: {phrase}")
        return found[0]
