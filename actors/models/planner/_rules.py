"""What the planner understands: tasks, and the words that narrow, resume or end them.

Everything here is a fixed pattern. What matches none of them is not guessed at.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeAlias

import attrs

__all__ = ("Audit", "Lookup", "Narrowing", "Task", "Wish", "read_wish")


@attrs.frozen
class Audit:
    """Count what a folder holds."""

    path: str


@attrs.frozen
class Lookup:
    """Call one tool and tell what it said."""

    tool: str
    path: str
    pattern: str = ""
    """What `search` looks for."""


Task: TypeAlias = Audit | Lookup


@attrs.frozen
class Narrowing:
    """Which names a task passes over, and which it keeps to."""

    skipped: tuple[str, ...] = ()
    """Names, paths or globs of files and folders."""
    only: tuple[str, ...] = ()
    """Globs for names of files; empty for all files."""

    def __add__(self, other: Narrowing) -> Narrowing:
        """Both together."""
        skipped = dict.fromkeys(self.skipped + other.skipped)
        return Narrowing(tuple(skipped), tuple(dict.fromkeys(self.only + other.only)))

    def passes_over(self, path: str) -> bool:
        """Whether `path`, or a folder that it is in, is skipped."""
        if not self.skipped:
            return False
        steps = path.split("/")
        above = ["/".join(steps[: depth + 1]) for depth in range(len(steps))]
        return any(fnmatchcase(name, glob) for glob in self.skipped for name in (*steps, *above))

    def keeps(self, path: str) -> bool:
        """Whether `path`, a file, is among those that are asked for."""
        name = path.rpartition("/")[2]
        wanted = not self.only or any(fnmatchcase(name, glob) or fnmatchcase(path, glob) for glob in self.only)
        return wanted and not self.passes_over(path)


@attrs.frozen
class Wish:
    """What one message asks for, as far as it is understood."""

    task: Task | None = None
    narrowing: Narrowing = Narrowing()
    resumes: bool = False
    """Go on with the task before."""
    ends: bool = False
    """Report now, from what is known."""

    @property
    def understood(self) -> bool:
        """Whether any rule matched."""
        return self != Wish()


_LONGEST = 1000
"""Characters of the longest message that is read: a task is a short sentence."""
_WORD = r"""(?:"[^"]+"|'[^']+'|`[^`]+`|[^\s,;"'`]+)"""
_AND = r"(?:\s*,\s*(?:and\s+)?|\s+and\s+)"
_FOLDER_WORDS = r"(?:folders?|director(?:y|ies)|dirs?|files?|paths?)"
_NAME = rf"(?!(?:and|but|only|skip)\b){_WORD}"
_NAMES = rf"{_NAME}(?:{_AND}{_NAME})*"
_HERE = r"(?:this|the|my|current|whole|entire|working)\s+"
_PLACE = r"(?:folder|directory|dir|repository|repo|project|checkout|tree)"

_WHERE = rf"(?:(?:{_HERE})*{_PLACE}|(?P<path>{_WORD}))"

_SKIP = re.compile(
    rf"\b(?:skip|ignore|exclude|without|leave\s+out|except)\s+(?:the\s+)?(?:{_FOLDER_WORDS}\s+)?({_NAMES})"
    rf"(?:\s+{_FOLDER_WORDS}\b)?",
    re.IGNORECASE,
)
_ONLY = re.compile(rf"\bonly\s+(?:the\s+)?(?:{_FOLDER_WORDS}\s+)?({_NAMES})(?:\s+files\b)?", re.IGNORECASE)
_ENDS = re.compile(
    r"^(?:(?:now|just)\s+)*(?:skip\s+the\s+rest|stop(?:\s+here)?|finish(?:\s+up)?|wrap\s+up"
    r"|(?:that\s+is\s+)?enough|report(?:\s+now)?)(?:\s+now)?$",
    re.IGNORECASE,
)
_RESUMES = re.compile(r"^(?:go\s+on|continue|carry\s+on|keep\s+going|resume)$", re.IGNORECASE)

_TASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (rf"^(?:audit|survey)(?:\s+(?:{_HERE})*{_PLACE})?(?:\s+(?P<path>{_WORD}))?$", "audit"),
        (rf"^count\s+(?:the\s+)?lines\s+(?:in|of)\s+(?:the\s+)?(?:file\s+)?(?P<path>{_WORD})$", "count_lines"),
        (rf"^how\s+many\s+lines\s+(?:are\s+(?:there\s+)?in|does|has)\s+(?P<path>{_WORD})(?:\s+have)?$", "count_lines"),
        (rf"^(?:read|show|cat|print)\s+(?:the\s+)?(?:file\s+)?(?P<path>{_WORD})$", "read_text"),
        (rf"^(?:search|grep|look|find)\s+(?:for\s+)?(?P<pattern>{_WORD})(?:\s+in\s+{_WHERE})?$", "search"),
        (rf"^(?:list|ls)(?:\s+(?:{_HERE})*(?:{_PLACE}|files))?(?:\s+(?:in|of))?(?:\s+(?P<path>{_WORD}))?$", "list_dir"),
    )
)
_PLEASE = re.compile(r"\s*,?\s*\bplease\b\s*,?", re.IGNORECASE)
_TIDY = re.compile(r"^[\s,;:.!?]+|[\s,;:!?]+$")
_NOT_NAMES = frozenset({
    "it",
    "that",
    "this",
    "the",
    "rest",
    "them",
    "these",
    "those",
    "count",
    "list",
    "read",
    "search",
})


def read_wish(text: str) -> Wish:
    """Read a message by the rules: first what narrows, then, in what is left of it, a task or a word of control."""
    if len(text) > _LONGEST:
        return Wish()
    text = _PLEASE.sub(" ", text)
    skipped, rest = _take(_SKIP, text, _is_name)
    only, rest = _take(_ONLY, rest, _is_glob)
    narrowing = Narrowing(
        tuple(posixpath.normpath(name) for name in skipped),
        tuple(f"*{name}" if name.startswith(".") else name.removeprefix("./") for name in only),
    )
    rest = _bare(rest)
    if _ENDS.match(_bare(text)) or _ENDS.match(rest):
        return Wish(narrowing=narrowing, ends=True)
    if _RESUMES.match(rest):
        return Wish(narrowing=narrowing, resumes=True)
    return Wish(task=_task(rest), narrowing=narrowing)


def _bare(text: str) -> str:
    """The words without what surrounds them: punctuation, and an `and` or `but` that lost its other half."""
    bare = _TIDY.sub("", text)
    bare = re.sub(r"^(?:and|but)\s+|\s+(?:and|but)$|^(?:and|but)$", "", bare, flags=re.IGNORECASE)
    bare = _TIDY.sub("", bare)
    return re.sub(r"(?<=\w)\.$|\s+\.$", "", bare)


def _is_name(token: str) -> bool:
    return token.lower() not in _NOT_NAMES


def _is_glob(token: str) -> bool:
    return any(char in token for char in "*./")


def _take(pattern: re.Pattern[str], text: str, accepts: Callable[[str], bool]) -> tuple[list[str], str]:
    """The names that follow a word like `skip`, and the text without them."""
    names: list[str] = []

    def cut(match: re.Match[str]) -> str:
        found = [_unquoted(token) for token in re.findall(_WORD, match[1]) if token.lower() not in {"and", ","}]
        if not all(map(accepts, found)):
            return match[0]
        names.extend(found)
        return " "

    return names, pattern.sub(cut, text)


def _task(text: str) -> Task | None:
    for pattern, kind in _TASKS:
        match = pattern.match(text)
        if match is None:
            continue
        found = match.groupdict()
        path = _path(found.get("path"))
        if kind == "audit":
            return Audit(path)
        return Lookup(kind, path, _unquoted(found.get("pattern") or ""))
    return None


def _path(token: str | None) -> str:
    if token is None or token.lower() in {"this", "here", "everything", "files", "folder"}:
        return "."
    return posixpath.normpath(_unquoted(token))


def _unquoted(token: str) -> str:
    return (
        token[1:-1] if len(token) > 1 and token[0] == token[-1] and token[0] in "\"'`" else token.rstrip(".!?") or token
    )
