"""The head and the tail of a stream of bytes, in bounded memory."""

from __future__ import annotations

import codecs

import attrs

__all__ = ("Excerpt",)


@attrs.define(eq=False)
class Excerpt:
    """Takes any number of bytes, and keeps the first and the last of them: `max_bytes` in all."""

    max_bytes: int
    total: int = 0
    """How many bytes were taken."""
    _head: bytearray = attrs.field(factory=bytearray, init=False)
    _tail: bytearray = attrs.field(factory=bytearray, init=False)

    @property
    def truncated(self) -> bool:
        """Whether some of the bytes are not kept."""
        return self.total > self.max_bytes

    def add(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self.max_bytes - self.max_bytes // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        spare = len(self._tail) - self.max_bytes // 2
        if spare > self.max_bytes:  # not at each call: what is left is moved to the front
            del self._tail[:spare]

    def text(self) -> str:
        """What is kept as UTF-8 text, with a marker between head and tail that states how much there was."""
        if not self.truncated:
            return (self._head + self._tail).decode(errors="replace")
        # A character that the cut splits is left out.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)
        tail = self._tail[len(self._tail) - self.max_bytes // 2 :]
        whole = next((at for at, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        marker = f"\n[... cut: {self.total} bytes in full, {self.max_bytes} shown ...]\n"
        return head + marker + tail[whole:].decode(errors="replace")
