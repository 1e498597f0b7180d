"""The audit: walk the folders breadth first, count every file, look for marks of unfinished work.

`survey` says from what is known which calls are still wanted, in which order, and what has been counted so far. It
is the same walk at the first turn and at the last.
"""

from __future__ import annotations

import functools
from collections import deque
from fnmatch import fnmatchcase
from typing import TypeVar

import attrs

from ._rules import Audit, Narrowing
from ._seen import Ask, Seen
from ._tools import Count, Found, Listing, Match, ask_count, ask_list, ask_search, read

__all__ = ("LEFT_OUT", "MARKS", "Survey", "survey")

T = TypeVar("T")

LEFT_OUT = (".?*", "__pycache__", "node_modules")
"""Names that an audit passes over: hidden files and folders, and what programs put there."""

MARKS = ("TODO", "FIXME")
"""What marks unfinished work."""


@attrs.define
class Survey:
    """What is known of a folder."""

    root: str
    narrowing: Narrowing
    asks: list[Ask] = attrs.field(factory=list[Ask])
    """The calls that are still wanted, in order."""
    folders: int = 0
    """Folders whose entries are known."""
    unlisted: int = 0
    """Folders that are known by name only."""
    files: int = 0
    """Files that are known."""
    counted: dict[str, Count] = attrs.field(factory=dict[str, Count])
    marks: dict[tuple[str, int], Match] = attrs.field(factory=dict[tuple[str, int], Match])
    """The lines with a mark that are known, by file and line."""
    searched: bool = True
    """Whether all files were searched for all marks, and all matches are known."""
    given_up: dict[str, str] = attrs.field(factory=dict[str, str])
    """What could not be found out, and why."""

    @property
    def lines(self) -> int:
        """Lines of all counted files."""
        return sum(count.lines for count in self.counted.values())

    @property
    def bytes(self) -> int:
        """Bytes of all counted files."""
        return sum(count.bytes for count in self.counted.values())

    @property
    def whole(self) -> bool:
        """Whether nothing is wanted any more and nothing was given up."""
        return not self.asks and not self.given_up

    def wants(self, path: str) -> bool:
        """Whether a file is one of those to count: not left out anywhere on its way, and within the narrowing."""
        below = path if self.root == "." else path.removeprefix(self.root + "/")
        return not any(map(_is_left_out, below.split("/"))) and self.narrowing.keeps(path)


def survey(seen: Seen, task: Audit, tools: frozenset[str]) -> Survey:
    """Walk what is known of the folder."""
    found = Survey(task.path, seen.narrowing)
    folders = deque([task.path])
    searches = [ask_search(mark, task.path) for mark in MARKS] if "search" in tools else []
    found.searched = bool(searches)
    for ask in searches:  # beside the very first call: they need nothing that it finds
        _search(seen, ask, found)
    while folders:
        folder = folders.popleft()
        listing = _result(seen, ask_list(folder), folder, Listing, found)
        if listing is None:
            found.unlisted += 1
            continue
        found.folders += 1
        if listing.more:
            found.given_up[folder] = f"list_dir shows {listing.more} entries less than there are"
        for name in listing.names("file"):
            path = _join(folder, name)
            if found.wants(path):
                found.files += 1
                count = _result(seen, ask_count(path), path, Count, found)
                if count is not None:
                    found.counted[path] = count
        below = [_join(folder, name) for name in listing.names("dir") if not _is_left_out(name)]
        folders.extend([path for path in below if not seen.narrowing.passes_over(path)])
    return found


def _search(seen: Seen, ask: Ask, found: Survey) -> None:
    matches = _result(seen, ask, f"search {ask.argument('pattern')}", Found, found)
    if matches is None or not matches.whole:
        found.searched = False
    if matches is not None:
        found.marks |= {(match.path, match.line): match for match in matches.matches if found.wants(match.path)}


def _result(seen: Seen, ask: Ask, what: str, kind: type[T], found: Survey) -> T | None:
    """What a call has brought; if nothing, it is noted as wanted or as given up."""
    text = seen.text(ask)
    result = read(text, kind)
    if result is not None:
        return result
    failure = seen.failure(ask)
    if text is not None:
        found.given_up[what] = f"the result of {ask.tool} could not be read"
    elif failure is not None:
        found.given_up[what] = f"{ask.tool} ended as {failure.status}: {failure.text}"
    else:
        found.asks.append(ask)
    return None


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


@functools.lru_cache(maxsize=8192)
def _is_left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)
