"""Colours where a terminal shows them, and nothing that a text may do to the terminal."""

from __future__ import annotations

import os
import re

import attrs

__all__ = ("PLAIN", "Style", "harmless", "one_line", "style_for")

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, changes colours or titles, or turns text around; line feed and tab may stay."""


@attrs.frozen
class Style:
    """Wraps text in escape sequences, or leaves it alone."""

    colours: bool

    def dim(self, text: str) -> str:
        """What stands beside the answer."""
        return self._wrap("2", text)

    def bold(self, text: str) -> str:
        """What must be seen."""
        return self._wrap("1", text)

    def red(self, text: str) -> str:
        """What went wrong."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """What went well."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """What wants attention."""
        return self._wrap("33", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and text else text


PLAIN = Style(colours=False)


def style_for(*, is_terminal: bool) -> Style:
    """Colours only on a terminal that takes them, and never against NO_COLOR."""
    refused = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Style(colours=is_terminal and not refused)


def harmless(text: str) -> str:
    """The text with control characters made visible: a model or a file may not drive the terminal."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}" if ord(match[0]) < 256 else "\ufffd", text)


def one_line(text: str, max_chars: int) -> str:
    """The text on one line, cut at its end."""
    line = harmless(" ".join(text.split()))
    return line if len(line) <= max_chars else line[: max(0, max_chars - 1)] + "\u2026"
