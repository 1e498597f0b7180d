"""Searching the files of a tree, so that `grep` finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import attrs

from protocol.errors import ToolError
from protocol.text import clean

from ._match import Matcher, lines_of, open_matcher
from ._root import Place, Root

__all__ = ("Settings", "search_tree")

_MOST_FILES = 50_000
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 32 << 20
_FIRST_BYTES = 1 << 15
_MOST_LINE_CHARS = 300
_MOST_CHARS = 50_000  # of all matches: the result stays below what an agent cuts


@attrs.frozen(kw_only=True)
class Settings:
    """What is searched for, and where not."""

    pattern: str
    regex: bool
    ignore_case: bool
    name_glob: str
    include_hidden: bool
    max_matches: int


@attrs.define
class Skipped:
    """What was not searched, by reason; in files, but for directories and links where it says so."""

    binary: int = 0
    """Files with a NUL byte."""
    hidden_dirs: int = 0
    links: int = 0
    special: int = 0
    too_large: int = 0
    """Files of more than 32 MiB."""
    unreadable: int = 0
    """Files and directories."""
    over_limit: int = 0
    """Files beyond the first 50 000, or the first GiB."""


@attrs.define
class _Search:
    root: Root
    settings: Settings
    skipped: Skipped = attrs.field(factory=Skipped)
    matches: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    chars: int = 0
    total: int = 0
    files: int = 0
    size: int = 0

    def file(self, place: Place, match: Matcher) -> None:
        data = self._read(place)
        if data is None:
            return
        self.files += 1
        keep = self.settings.max_matches - len(self.matches) if self.chars < _MOST_CHARS else 0
        total, numbers = match(data, keep)
        self.total += total
        if not numbers:
            return
        lines = lines_of(data)
        for number in numbers:
            text = _shown(lines[number - 1])
            self.chars += len(text) + len(str(place)) + 40
            if self.chars > _MOST_CHARS:
                return
            self.matches.append({"path": clean(str(place)), "line": number, "text": text})

    def _read(self, place: Place) -> bytes | None:
        """A file's bytes, unless it is to be skipped."""
        if self.files >= _MOST_FILES or self.size >= _MOST_BYTES:
            self.skipped.over_limit += 1
            return None
        try:
            with self.root.open(place) as (file, size):
                if size > _MOST_FILE_BYTES:
                    self.skipped.too_large += 1
                    return None
                data = file.read(_FIRST_BYTES)
                if b"\0" not in data:  # a binary file mostly shows at once what it is
                    data += file.read(_MOST_FILE_BYTES)
        except ToolError:
            self.skipped.unreadable += 1
            return None
        self.size += len(data)
        if b"\0" in data:
            self.skipped.binary += 1
            return None
        return data

    def below(self, start: Place) -> Iterator[Place]:
        """The files of the directory `start`, in the order of their paths, directories after the files beside them."""
        waiting = [start]
        while waiting:
            here = waiting.pop()
            try:
                entries = self.root.entries(here)
            except ToolError:
                self.skipped.unreadable += 1
                continue
            below: list[Place] = []
            for entry in entries:
                match entry.kind:
                    case "dir" if entry.name.startswith(".") and not self.settings.include_hidden:
                        self.skipped.hidden_dirs += 1
                    case "dir":
                        below.append(here.below(entry.name))
                    case "file":
                        if fnmatchcase(entry.name, self.settings.name_glob):
                            yield here.below(entry.name)
                    case "link":
                        self.skipped.links += 1
                    case "other":
                        self.skipped.special += 1
            waiting.extend(reversed(below))


def search_tree(root: Root, path: str, settings: Settings) -> dict[str, Any]:
    """Search the file or directory at `path`."""
    if "/" in settings.name_glob:
        raise ToolError("name_glob matches names, not paths; give the directory as path")
    start = root.place(path)
    entry = root.look(start)
    search = _Search(root, settings)
    with open_matcher(settings.pattern, regex=settings.regex, ignore_case=settings.ignore_case) as match:
        if entry.kind == "dir":
            for place in search.below(start):
                search.file(place, match)
        else:
            with root.open(start):  # one file that cannot be opened is an error, not a skipped one
                search.file(start, match)
    return {
        "pattern": settings.pattern,
        "path": str(start),
        "matches": search.matches,
        "total": search.total,
        "files_searched": search.files,
        "skipped": attrs.asdict(search.skipped),
    }


def _shown(line: bytes) -> str:
    text = line[: 4 * _MOST_LINE_CHARS].decode(errors="replace")
    if len(line) <= _MOST_LINE_CHARS or len(text) <= _MOST_LINE_CHARS:
        return text
    return f"{text[:_MOST_LINE_CHARS]} [... cut: {len(line)} bytes in full]"
