"""The question at the limit, on a terminal.

No thread reads here: the terminal is waited for, so a timeout, the end of the run and Ctrl-C cut the question off at
once and nothing is left behind that would swallow the next line.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Awaitable, Callable

import trio

from protocol.gate import ContinuationRequest, ContinuationResponse

from ._answers import Misread, WantsText, question, read_answer
from ._screen import Screen

__all__ = ("TerminalGate", "decline_unasked")


class TerminalGate:
    """A continuation provider: asks the person at the terminal."""

    def __init__(
        self, screen: Screen, wait_shown: Callable[[ContinuationRequest], Awaitable[None]], *, descriptor: int = 0
    ) -> None:
        self._screen = screen
        self._wait_shown = wait_shown
        self._descriptor = descriptor
        self._typed = b""

    async def __call__(self, request: ContinuationRequest) -> ContinuationResponse:
        """Show the pending calls and take one answer."""
        await self._wait_shown(request)
        self._forget_typed()
        await self._screen.note(question(request, self._screen.style))
        while True:
            line = await self._ask("approve, steer, discard or decline? ")
            if line is None:
                await self._screen.note("End of input: declined.")
                return ContinuationResponse("decline")
            answer = read_answer(line, request.tool_calls)
            if isinstance(answer, WantsText):
                text = await self._ask("what shall the model read? ")
                answer = read_answer(f"s {text}", request.tool_calls) if text else Misread("nothing was said")
            match answer:
                case ContinuationResponse():
                    return answer
                case Misread(why=why):
                    await self._screen.note(why)
                case _:
                    await self._screen.note(question(request, self._screen.style))

    async def _ask(self, words: str) -> str | None:
        await self._screen.prompt(self._screen.style.bold(words))
        line = await self._read_line()
        if line is not None:
            self._screen.typed()
        return line

    async def _read_line(self) -> str | None:
        """The next line without its end; `None` when the input is at its end."""
        while b"\n" not in self._typed:
            await trio.lowlevel.wait_readable(self._descriptor)
            piece = os.read(self._descriptor, 4096)
            if not piece:
                return None
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _forget_typed(self) -> None:
        """An answer belongs to the question that was seen: what was typed before it is none."""
        self._typed = b""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)


def decline_unasked(
    screen: Screen, wait_shown: Callable[[ContinuationRequest], Awaitable[None]]
) -> Callable[[ContinuationRequest], Awaitable[ContinuationResponse]]:
    """A provider for `--on-limit ask` where nobody can be asked: declines, and says so."""

    async def decline(request: ContinuationRequest) -> ContinuationResponse:
        await wait_shown(request)
        await screen.note(
            "There is no terminal to ask on: declined. (--on-limit says beforehand what to do: approve, decline, finalize"
            " or stop.)"
        )
        return ContinuationResponse("decline")

    return decline
