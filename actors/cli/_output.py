"""Writing to stdout and stderr without holding the scheduler up when the reader of a pipe is slow.

No thread: the descriptor is waited for, and written to in pieces that a pipe that is ready takes whole. So a reader
that pauses holds up the writing task alone, and Ctrl-C is heard meanwhile.
"""

from __future__ import annotations

import os
import select
import stat

import trio

from protocol.text import clean

__all__ = ("Output", "fill_closed_descriptors")

_PIECE = select.PIPE_BUF
"""A pipe that is ready for writing takes this many bytes at once."""


class Output:
    """A stream of text to a file descriptor. Raises `BrokenPipeError` when its reader has left, `OSError` else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = trio.Lock()
        self._waits = _may_block(descriptor)
        self.is_terminal = os.isatty(descriptor)

    @property
    def columns(self) -> int:
        """How many characters fit on a line of the terminal; 120 where there is none."""
        try:
            return max(os.get_terminal_size(self._descriptor).columns or 80, 40)
        except OSError:
            return 120

    async def write(self, text: str) -> None:
        """Write all of it, after what others have begun to write. What UTF-8 cannot say becomes U+FFFD."""
        await self.write_bytes(clean(text).encode())

    async def write_bytes(self, data: bytes) -> None:
        """Write all of it, after what others have begun to write."""
        async with self._lock:
            rest = memoryview(data)
            while rest:
                if self._waits:
                    await trio.lowlevel.wait_writable(self._descriptor)
                rest = rest[os.write(self._descriptor, rest[:_PIECE]) :]


def fill_closed_descriptors() -> None:
    """Put the null device where a standard stream is closed, so that no file of ours is opened in its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def _may_block(descriptor: int) -> bool:
    """Whether there is somebody on the other side: a file is always ready, and cannot be waited for."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
