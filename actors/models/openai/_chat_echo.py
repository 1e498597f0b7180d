"""Chat Completions: the beginning of a reply that repeats what it continues. No I/O."""

from __future__ import annotations

__all__ = ("EchoFilter",)


class EchoFilter:
    """Takes the repetition of `prefix` away from the beginning of a text that comes in pieces.

    A text that goes another way was none: what had been held back of it is let through.
    """

    def __init__(self, prefix: str = "") -> None:
        self._left = prefix
        self._held = ""

    def feed(self, text: str) -> str:
        """The part of a piece that is news, with what was held back if that is none of the repetition."""
        if not self._left:
            return text
        self._held += text
        if len(self._held) < len(self._left) and self._left.startswith(self._held):
            return ""
        news = self._held.removeprefix(self._left)
        self._left = self._held = ""
        return news

    def flush(self) -> str:
        """What is still held back when the reply has come to its end: an answer as short as that is none."""
        held, self._held, self._left = self._held, "", ""
        return held
