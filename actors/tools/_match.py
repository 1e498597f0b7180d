"""Which lines of a text match: the text itself, or a regular expression."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from protocol.errors import ToolError

__all__ = ("REGEX_SECONDS", "Matcher", "lines_of", "open_matcher")

Matcher: TypeAlias = Callable[[bytes, int], tuple[int, list[int]]]
"""Takes a file's bytes and how many to keep; tells how many lines match, and the numbers of the first, from 1."""

REGEX_SECONDS = 20.0
"""How long all matching of one search may take. Kept by a timer that kills the process, whatever happens to the call."""


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file without their ends; as `wc` and `grep` see it, only a newline ends one."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


@contextlib.contextmanager
def open_matcher(
    pattern: str, *, regex: bool, ignore_case: bool, regex_seconds: float = REGEX_SECONDS
) -> Generator[Matcher]:
    """A matcher for `pattern`. Raises `ToolError` for one that cannot be searched for, or takes too long."""
    if not pattern:
        raise ToolError("the pattern is empty; give a text to look for")
    if "\n" in pattern:
        raise ToolError("the pattern holds a newline, and lines are searched one by one; look for one of its lines")
    try:
        needle = pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the pattern holds half of a surrogate pair; give whole characters") from error
    if regex:
        with _regex_matcher(pattern, ignore_case=ignore_case, seconds=regex_seconds) as matcher:
            yield matcher
    else:
        yield _without_case(pattern.lower()) if ignore_case else _verbatim(needle)


def _verbatim(needle: bytes) -> Matcher:
    def match(data: bytes, keep: int) -> tuple[int, list[int]]:
        if needle not in data:
            return 0, []
        found = [number for number, line in enumerate(lines_of(data), 1) if needle in line]
        return len(found), found[:keep]

    return match


def _without_case(needle: str) -> Matcher:
    def match(data: bytes, keep: int) -> tuple[int, list[int]]:
        lines = lines_of(data)
        found = [number for number, line in enumerate(lines, 1) if needle in line.decode(errors="replace").lower()]
        return len(found), found[:keep]

    return match


@contextlib.contextmanager
def _regex_matcher(pattern: str, *, ignore_case: bool, seconds: float) -> Generator[Matcher]:
    import subprocess  # noqa: S404  # only Python itself is started, with a script of this package

    script = str(Path(__file__).with_name("_regex_child.py"))
    try:
        child = subprocess.Popen(  # noqa: S603  # see above
            [sys.executable, "-I", "-S", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise ToolError("regular expressions cannot be matched here; search for a fixed text (regex=false)") from error
    assert child.stdin is not None
    assert child.stdout is not None
    to_child, from_child = child.stdin, child.stdout
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        child.kill()

    def ask(question: Any, data: bytes = b"") -> Any:
        answer = b""
        with contextlib.suppress(OSError):  # a killed child's pipe is closed
            to_child.write(msgspec.json.encode(question) + b"\n" + data)
            to_child.flush()
            answer = from_child.readline()
        if answer.endswith(b"\n"):
            return msgspec.json.decode(answer)
        if expired.is_set():
            raise ToolError(
                f"the regular expression took longer than {seconds:g} s and was stopped; simplify it, search "
                "fewer files, or search for a fixed text (regex=false)"
            )
        raise ToolError("matching the regular expression was interrupted; try again")

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        reply = ask({"pattern": pattern, "ignore_case": ignore_case})
        if "error" in reply:
            raise ToolError(f"the pattern is no regular expression: {reply['error']}")
        yield lambda data, keep: tuple(ask([len(data), keep], data))
    finally:
        timer.cancel()
        child.kill()
        with contextlib.suppress(OSError):  # what it did not read is flushed into a closed pipe
            to_child.close()
        from_child.close()
        child.wait()
