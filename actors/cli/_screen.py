"""Two streams that may be one terminal: the answer on stdout, everything about it on stderr."""

from __future__ import annotations

import contextlib

from ._output import Output
from ._style import Style, harmless, style_for

__all__ = ("Screen",)


class Screen:
    """Writes text and notes so that a note never begins in the middle of a line."""

    def __init__(self, out: Output, err: Output) -> None:
        self._out = out
        self._err = err
        self._shared = out.is_terminal and err.is_terminal
        self._text_open = False
        self._note_open = False
        self._aside_open = False
        self.style: Style = style_for(is_terminal=err.is_terminal)
        """For notes."""
        self.columns = err.columns
        """How wide a note may be without being broken."""

    async def text(self, text: str) -> None:
        """Write a piece of the answer to stdout."""
        if not text:
            return
        if self._shared and self._note_open:
            await self._write_note("\n")
        self._note_open = self._aside_open = False
        await self._out.write(harmless(text) if self._out.is_terminal else text)
        self._text_open = not text.endswith("\n")

    async def end_text(self) -> None:
        """End the line of the answer, if one is open."""
        if self._text_open:
            self._text_open = False
            await self._out.write("\n")

    async def note(self, text: str = "") -> None:
        """Write a line to stderr."""
        await self.prompt(f"{text}\n")
        self._note_open = False

    async def aside(self, text: str) -> None:
        """Write a piece of what is neither answer nor note: pieces in a row stand on one line."""
        if self._aside_open:
            await self._write_note(text)
        else:
            await self.prompt(text)
            self._aside_open = True

    async def prompt(self, text: str) -> None:
        """Write to stderr and leave the line open, for somebody to type in."""
        if self._note_open or (self._shared and self._text_open):
            text = f"\n{text}"
        if self._shared:
            self._text_open = False
        self._note_open = True
        self._aside_open = False
        await self._write_note(text)

    def typed(self) -> None:
        """Somebody ended the open line by typing Enter."""
        self._note_open = False

    async def _write_note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads the notes; the answer may still have its reader
            await self._err.write(text)

    async def json(self, line: bytes) -> None:
        """Write a line of JSON to stdout, untouched."""
        await self._out.write_bytes(line + b"\n")
