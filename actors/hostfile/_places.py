"""Places in a TOML text: how they are written, and on which line they begin.

TOML tells no places of what it has read. A key stands in the shortest beginning of the text that is whole and has it, and
begins behind the longest one that is whole and has it not. What a beginning has, a longer one has too: so it is searched by
halves, when something is wrong and not before.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeAlias

import attrs

__all__ = ("Lines", "Place", "written")

Place: TypeAlias = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def written(place: Place) -> str:
    """A place as it is written in the file: `agents[0].limits.max_llm_calls`."""
    said = ""
    for part in place:
        if isinstance(part, int):
            said += f"[{part}]"
        else:
            key = part if _BARE.fullmatch(part) else repr(part)
            said += f".{key}" if said else key
    return said


@attrs.define(eq=False)
class Lines:
    """The lines of a text that is TOML as a whole."""

    text: str
    _lines: list[str] = attrs.field(init=False)
    _read: dict[int, Any] = attrs.field(factory=dict[int, Any], init=False)
    """What the first so many lines say; `None` where they are not whole."""

    def __attrs_post_init__(self) -> None:
        self._lines = self.text.split("\n")

    def line_of(self, place: Place) -> int:
        """The line on which a key begins; of one that is not there, that of the nearest one around it."""
        without, upto = 0, len(self._lines)
        while place and not self._has(upto, place):
            place = place[:-1]
        if not place:
            return 1
        while (middle := self._whole_between(without, upto)) is not None:
            if self._has(middle, place):
                upto = middle
            else:
                without = middle
        return without + 1

    def _whole_between(self, low: int, high: int) -> int | None:
        middle = (low + high) // 2
        numbers = sorted(range(low + 1, high), key=lambda number: abs(number - middle))
        return next((number for number in numbers if self._data(number) is not None), None)

    def _data(self, count: int) -> Any:
        if count not in self._read:
            try:
                self._read[count] = tomllib.loads("\n".join(self._lines[:count]))
            except (ValueError, RecursionError):
                self._read[count] = None
        return self._read[count]

    def _has(self, count: int, place: Place) -> bool:
        data = self._data(count)
        for part in place:
            try:
                data = data[part]
            except (KeyError, IndexError, TypeError):
                return False
        return True
