"""Lines that a person types.

No thread reads here: the terminal is waited for, so that a wait is cut off at once and nothing is left behind that would
swallow the next line.
"""

from __future__ import annotations

import os
import termios

import trio

__all__ = ("Lines",)


class Lines:
    """Reads a terminal line by line."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._typed = b""

    async def next(self) -> str | None:
        """The next line without its end; `None` when the input is at its end."""
        while b"\n" not in self._typed:
            await trio.lowlevel.wait_readable(self._descriptor)
            try:
                piece = os.read(self._descriptor, 4096)
            except OSError:  # the terminal has gone
                return None
            if not piece:
                return None
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace")

    def forget(self) -> None:
        """Drop what has been typed: an answer belongs to the question that was seen."""
        self._typed = b""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
