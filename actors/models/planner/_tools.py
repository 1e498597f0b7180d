"""The file tools as the planner knows them: how they are called, and what their results say.

A result that does not read as expected is `None`: to the planner it is a failure like any other.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

from ._seen import Ask

__all__ = (
    "FILE_TOOLS",
    "Count",
    "Found",
    "Listing",
    "Match",
    "Page",
    "ask_count",
    "ask_list",
    "ask_read",
    "ask_search",
    "read",
)

T = TypeVar("T")

FILE_TOOLS = frozenset({"list_dir", "read_text", "count_lines", "search"})

_MOST_MATCHES = 1000
_UNSEARCHED = ("too_large", "unreadable", "over_limit")
"""Why `search` may have skipped a file that could hold the text; the other reasons are no loss."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a folder."""

    name: str
    kind: str
    """`file`, `dir`, or what is looked into by nobody."""
    bytes: int | None = None


class Listing(msgspec.Struct, frozen=True):
    """What `list_dir` says."""

    entries: tuple[Entry, ...]
    more: int
    """Entries that are not shown."""

    def names(self, kind: str) -> list[str]:
        """The names of one kind, sorted."""
        return sorted([entry.name for entry in self.entries if entry.kind == kind])


class Count(msgspec.Struct, frozen=True):
    """What `count_lines` says."""

    lines: int
    bytes: int


class Match(msgspec.Struct, frozen=True, order=True):
    """A line that `search` found."""

    path: str
    line: int
    text: str


class Found(msgspec.Struct, frozen=True):
    """What `search` says."""

    matches: tuple[Match, ...]
    total: int
    files_searched: int
    skipped: dict[str, int]

    @property
    def whole(self) -> bool:
        """Whether all matches are here: none was cut off, and no file was skipped but those that hold no text."""
        return self.total == len(self.matches) and all(not self.skipped.get(reason) for reason in _UNSEARCHED)


class Page(msgspec.Struct, frozen=True):
    """What `read_text` says."""

    text: str
    lines: int
    total_lines: int


@functools.lru_cache(maxsize=8192)
def ask_list(path: str) -> Ask:
    """List a folder."""
    return Ask.of("list_dir", path=path)


@functools.lru_cache(maxsize=65_536)
def ask_count(path: str) -> Ask:
    """Count the lines of a file."""
    return Ask.of("count_lines", path=path)


def ask_read(path: str) -> Ask:
    """Read the beginning of a file."""
    return Ask.of("read_text", path=path)


def ask_search(pattern: str, path: str) -> Ask:
    """Search a folder, or a file, for a text."""
    arguments: dict[str, Any] = {"pattern": pattern, "path": path, "max_matches": _MOST_MATCHES}
    return Ask.of("search", **arguments)


def read(text: str | None, kind: type[T]) -> T | None:
    """Read a result; `None` if there is none, or if it is something else."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
