"""Writing to a descriptor at once, or not at all: for what must hold nobody up, and cannot wait in a task."""

from __future__ import annotations

import os
import select

from protocol.text import clean

__all__ = ("write_now",)

_PIECE = select.PIPE_BUF
"""A pipe that is ready for writing takes this many bytes at once."""
_PATIENCE_SECONDS = 0.05
"""For the rest of a text whose beginning has been written."""


def write_now(descriptor: int, text: str) -> bool:
    """Write a text; whether all of it was written. Of one that is begun the rest is waited for, a moment long."""
    rest = memoryview(clean(text).encode())
    seconds = 0.0
    while rest:
        try:
            _, ready, _ = select.select([], [descriptor], [], seconds)
            if not ready:
                return False
            rest = rest[os.write(descriptor, rest[:_PIECE]) :]
        except OSError:  # whoever read it has gone
            return False
        seconds = _PATIENCE_SECONDS
    return True
