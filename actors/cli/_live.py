"""A run as a person follows it: text as it comes, tools as they start and end, what changes the course."""

from __future__ import annotations

from typing import Any

from protocol.events import (
    ContentDelta,
    ContinuationResolved,
    Event,
    Finalizing,
    LimitReached,
    ModelRetry,
    ReasoningDelta,
    Rollback,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    Warned,
)
from protocol.result import RunResult
from protocol.turns import ToolStatus

from ._screen import Screen
from ._style import Style, harmless, one_line
from ._words import call_line, closing_text, limit_words

__all__ = ("LiveView",)

_MARGIN = "  interrupted "
"""What stands before a call: as wide as the longest status."""
_LEAST_RESULT = 24
"""Characters that are kept free for the beginning of a result."""


class LiveView:
    """Shows each event on a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._message = ""
        self._arguments: dict[str, dict[str, Any]] = {}

    async def show(self, event: Event, _seq: int) -> None:
        """Show one event; most say nothing to a person."""
        match event:
            case ContentDelta(message=message, text=text):
                if message != self._message:
                    self._message = message
                    await self._screen.end_text()
                await self._screen.text(text)
            case ReasoningDelta(text=text):
                await self._screen.aside(self._screen.style.dim(harmless(text)))
            case ToolRequested(call=call, arguments=arguments):
                self._arguments[call] = arguments
            case _:
                note = self._note_of(event)
                if note:
                    await self._note(note)

    def _note_of(self, event: Event) -> str:
        """What is said of an event on a line of its own; `""` for nothing."""
        style = self._screen.style
        match event:
            case ToolStarted(call=call, name=name):
                return style.dim(f"  start       {self._call(name, self._arguments.get(call, {}), left=0)}")
            case ToolFinished():
                return self._finished(event, style)
            case ModelRetry(attempt=attempt, seconds=seconds, reason=reason):
                return style.yellow(f"  retry {attempt} in {seconds:g} s: {one_line(reason, 200)}")
            case Warned(text=text):
                return style.yellow(f"  warning: {one_line(text, 300)}")
            case Rollback():
                return style.yellow("  the text above is void and comes again:")
            case LimitReached(limit=limit):
                return style.yellow(f"  limit: {limit_words(limit)}")
            case Finalizing():
                return style.dim("  last model call, with tools off")
            case ContinuationResolved():
                return style.dim(f"  {_resolution(event)}")
            case _:
                return ""

    async def lost(self, count: int) -> None:
        """Say that events were dropped because this view fell behind; the result is whole all the same."""
        await self._note(self._screen.style.yellow(f"  {count} events were not shown: the output did not keep up"))

    async def end(self, result: RunResult) -> None:
        """Write what the runtime added to the texts of the turns, and end the line."""
        await self._screen.end_text()
        added = closing_text(result)
        if added:
            await self._screen.text(added + "\n")

    async def _note(self, text: str) -> None:
        await self._screen.end_text()
        await self._screen.note(text)

    def _call(self, name: str, arguments: dict[str, Any], *, left: int) -> str:
        return call_line(name, arguments, self._screen.columns - len(_MARGIN) - left)

    def _finished(self, event: ToolFinished, style: Style) -> str:
        call = self._call(event.name, self._arguments.pop(event.call, {}), left=_LEAST_RESULT)
        left = self._screen.columns - len(_MARGIN) - len(call) - 1
        return f"  {_coloured(event.status, style)} {call} {style.dim(one_line(f'-> {event.text}', left))}"


def _coloured(status: ToolStatus, style: Style) -> str:
    word = f"{status:<11}"
    match status:
        case "ok":
            return style.green(word)
        case "discarded" | "not_run" | "denied":
            return style.yellow(word)
        case _:
            return style.red(word)


def _resolution(event: ContinuationResolved) -> str:
    if event.outcome == "approved":
        said = "approved"
        if event.discarded:
            said += f", {len(event.discarded)} pending calls discarded"
    else:
        said = event.outcome.replace("_", " ")
        if event.effect:
            said += f", which counts as {event.effect}"
    return f"{said}: {one_line(event.message, 200)}" if event.message else said
