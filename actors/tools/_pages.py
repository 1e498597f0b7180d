"""Reading some lines of a file of any size, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import attrs

__all__ = ("Page", "Tally", "read_page", "tally")

_CHUNK = 1 << 20
_PIECE = 1 << 16
_UNKNOWN_SIZE = 1 << 20
"""How much is read of a file that gives no size, as those of `/proc` do."""


@attrs.frozen
class Tally:
    """What is in a file as a whole."""

    newlines: int
    """Newline bytes: the lines as `wc -l` counts them."""
    size: int
    lines: int
    """The lines that can be read: a last one without a newline counts."""
    binary: bool
    """Whether there is a NUL byte."""
    marks: tuple[tuple[int, int], ...]
    """Where each chunk begins: how many newlines stand before it, and its offset."""


@attrs.frozen
class Page:
    """Some lines of a file."""

    text: str
    """With the lines' ends as they are; what is no UTF-8 is replaced by U+FFFD."""
    lines: int


def tally(file: IO[bytes], size: int) -> Tally:
    """Count what is in a file, up to its size when it was opened: one that grows has an end, too."""
    newlines = count = 0
    binary = False
    last = b"\n"
    marks: list[tuple[int, int]] = []
    for chunk in _chunks(file, size or _UNKNOWN_SIZE):
        marks.append((newlines, count))
        newlines += chunk.count(b"\n")
        count += len(chunk)
        binary = binary or b"\0" in chunk
        last = chunk[-1:]
    return Tally(newlines, count, newlines + (last != b"\n"), binary, tuple(marks))


def read_page(file: IO[bytes], found: Tally, *, start_line: int, max_lines: int, max_chars: int) -> Page:
    """Up to `max_lines` lines from `start_line` (from 1), fewer where they would be more than `max_chars`.

    One line that is longer than that by itself is cut, with a marker that states its length.
    """
    # The line begins behind newline number start_line - 1: in the last chunk before which there are fewer.
    before, offset = max([mark for mark in found.marks if mark[0] < start_line - 1] or [(0, 0)])
    file.seek(offset)
    end = found.size - offset
    for _ in range(start_line - 1 - before):
        end -= _line(file, end, 0)[1]
    parts: list[str] = []
    chars = 0
    while len(parts) < max_lines and end > 0:
        raw, length = _line(file, end, 4 * max_chars)
        if not length:
            break
        text = raw.decode(errors="replace")
        if len(text) > max_chars or length > len(raw):
            if not parts:
                parts.append(f"{text[:max_chars]} [... cut: the line has {length} bytes in full]\n")
            break
        chars += len(text)
        if chars > max_chars:
            break
        parts.append(text)
        end -= length
    return Page("".join(parts), len(parts))


def _line(file: IO[bytes], end: int, keep: int) -> tuple[bytes, int]:
    """One line with its end: at most `keep` bytes of it, and its length. Nothing beyond `end` bytes is read."""
    kept = bytearray()
    length = 0
    while length < end and (piece := file.readline(min(_PIECE, end - length))):
        kept += piece[: max(keep - len(kept), 0)]
        length += len(piece)
        if piece.endswith(b"\n"):
            break
    return bytes(kept), length


def _chunks(file: IO[bytes], limit: int) -> Iterator[bytes]:
    while limit > 0 and (chunk := file.read(min(_CHUNK, limit))):
        limit -= len(chunk)
        yield chunk
