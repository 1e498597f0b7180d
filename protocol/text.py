"""Text that may enter a history, an event or a request: UTF-8 encodable, and visible or not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ("clean", "cut_middle", "guess", "is_visible")


def clean(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD, so that it encodes as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # A surrogate *pair* smuggled in as two code points is one character: join it first.
        joined = text.encode("utf-16-le", "surrogatepass")
        return joined.decode("utf-16-le", "replace")
    return text


def is_visible(text: str) -> bool:
    """Whether a person would see anything: text of white space alone is no answer."""
    return bool(text) and not text.isspace()


def cut_middle(text: str, max_chars: int) -> str:
    """Return `text` in at most `max_chars` characters, plus a marker that states the full length.

    Head and tail are kept: the end of an output is where its error usually stands.
    """
    if len(text) <= max_chars:
        return text
    tail = max_chars // 2
    head = max_chars - tail
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n[... cut: {len(text)} characters in full, {max_chars} shown ...]\n{end}"


def guess(word: str, choices: Iterable[str]) -> str:
    """` (did you mean WORD?)` where one of the choices is near, else nothing."""
    near = difflib.get_close_matches(word, list(choices), 1)
    return f" (did you mean {near[0]}?)" if near else ""
