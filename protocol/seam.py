"""Where a text that was cut meets what a model says when it is asked to go on: it often begins with what stands there already.

A model that is asked in words repeats the last words, or opens again the code fence that it was in. What it repeats
stands at the beginning of its reply, so that a seam is one number: how many characters of the reply to drop. They are
dropped only where that is no accident. `dropped_of` says how many, once enough of the reply is there to be sure;
`Seam` holds back what has arrived until then, so that nothing is shown that would have to be taken back.

`dropped_of` never changes its mind: what it says of the beginning of a reply, it says of the whole.
"""

from __future__ import annotations

import re

import attrs

from .text import clean

__all__ = ("Seam", "dropped_of")

LONGEST = 1000
"""Characters of the text that are looked at: more is not repeated word for word."""
SHORTEST, FEWEST_DIFFERENT = 12, 6
"""Characters, and different ones, that make a repetition no accident."""
FENCE_LINE = 80
"""Characters in which a reply opens its fence again, if it does."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_OPENS = re.compile(r"\s*(`{3,}|~{3,})([^`\n]*)\n")
_MAY_OPEN = re.compile(r"\s*(`{0,2}|~{0,2}|`{3,}[^`\n]*|~{3,}[^`\n]*)")


def dropped_of(before: str, reply: str, *, whole: bool = True) -> int | None:
    """How many characters at the beginning of `reply` repeat the end of `before`.

    `None`: not to be told yet. Only for a reply that is not `whole`.
    """
    head = reply[:FENCE_LINE]
    opens = _OPENS.match(head)
    may_open = opens is None and not whole and len(reply) < FENCE_LINE and _MAY_OPEN.fullmatch(head)
    if (opens or may_open) and _ends_in_fence(before):
        if opens is None:
            return None
        kind = opens[2].strip()
        found = _overlap(before, reply[opens.end() :], whole=whole, line=bool(kind))
        if found is None:
            return None
        if kind or found:  # one without a word that nothing is repeated after may as well close the one that is open
            return opens.end() + found
    return _overlap(before, reply, whole=whole)


def _overlap(before: str, reply: str, *, whole: bool, line: bool = False) -> int | None:
    """The longest end of `before` that `reply` begins with; `line`: its last line, however short, is one."""
    if not reply:
        return 0 if whole else None
    tail = before[-LONGEST:]
    last_line = tail[tail.rfind("\n") + 1 :] if line else ""
    start = tail.find(reply[0])
    while start >= 0:
        size = len(tail) - start
        fits = reply.startswith(tail[start:]) if size <= len(reply) else not whole and tail.startswith(reply, start)
        if fits and (_is_no_accident(before, tail[start:]) or (last_line.strip() and tail[start:] == last_line)):
            return size if size <= len(reply) else None
        start = tail.find(reply[0], start + 1)
    return 0


def _is_no_accident(before: str, overlap: str) -> bool:
    """Whether it is long and varied, and nothing that the text repeats anyway: rows of a table, lines that are alike."""
    size = len(overlap)
    if size < SHORTEST or len(set(overlap)) < FEWEST_DIFFERENT:
        return False
    if before.endswith(overlap, 0, len(before) - size):
        return False
    return not any(overlap[period:] == overlap[:-period] for period in range(1, size // 2 + 1))


def _ends_in_fence(text: str) -> bool:
    """Whether the text ends inside a fenced block of code."""
    fence = ""
    for line in text.split("\n")[:-1]:
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return bool(fence)


@attrs.define(eq=False)
class Seam:
    """Shows a reply that goes on with a text as it arrives, without what it repeats."""

    before: str
    """The text so far."""
    dropped: int | None = None
    """Characters at the beginning of the reply that are not shown; `None`: not known yet."""
    _head: str = ""
    """The reply up to where that became known."""

    def feed(self, text: str) -> str:
        """More of the reply has arrived: what is to be shown of it now."""
        if self.dropped is not None:
            return text
        return self._decide(self._head + text, whole=False)

    def end(self) -> str:
        """No more will come: what is left to be shown."""
        return "" if self.dropped is not None else self._decide(self._head, whole=True)

    def undo(self, chars: int) -> int:
        """Of the reply only its first `chars` characters stand: how many of those that were shown do."""
        if chars < len(self._head):  # what is known was known from what is void
            self._decide(self._head[:chars], whole=False)
        return 0 if self.dropped is None else chars - self.dropped

    def _decide(self, head: str, *, whole: bool) -> str:
        self._head = head
        self.dropped = dropped_of(self.before, clean(head), whole=whole)
        return "" if self.dropped is None else head[self.dropped :]
