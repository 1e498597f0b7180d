"""The question at the limit, on a terminal. A timeout, the end of the run and Ctrl-C cut it off at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from protocol.gate import ContinuationRequest, ContinuationResponse

from ._answers import Misread, WantsText, question, read_answer
from ._lines import Lines
from ._screen import Screen

__all__ = ("TerminalGate", "decline_unasked")


class TerminalGate:
    """A continuation provider: asks the person at the terminal."""

    def __init__(
        self, screen: Screen, wait_shown: Callable[[ContinuationRequest], Awaitable[None]], *, descriptor: int = 0
    ) -> None:
        self._screen = screen
        self._wait_shown = wait_shown
        self._lines = Lines(descriptor)

    async def __call__(self, request: ContinuationRequest) -> ContinuationResponse:
        """Show the pending calls and take one answer."""
        await self._wait_shown(request)
        self._lines.forget()
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
        line = await self._lines.next()
        if line is not None:
            self._screen.typed()
        return line


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
