"""A run as a person follows it: text as it comes, tools as they start and end, what changes the course."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContentDelta,
    ContextCompacted,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    Finalizing,
    LimitReached,
    MessageDropped,
    MessageQueued,
    ModelRetry,
    PendingCall,
    ReasoningDelta,
    Rollback,
    RunPaused,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    Warned,
)
from protocol.result import RunResult
from protocol.turns import ToolStatus

from ._screen import Screen
from ._style import Style, harmless, one_line
from ._words import call_line, closing_text, compaction_words, limit_words, waits_for

__all__ = ("LiveView",)

_MARGIN = "  interrupted "
"""What stands before a call: as wide as the longest status."""
_LEAST_RESULT = 24
"""Characters that are kept free for the beginning of a result."""


class LiveView:
    """Shows each event on a screen; with `tells_waits`, what nobody is asked about here too."""

    def __init__(self, screen: Screen, *, tells_waits: bool = False) -> None:
        self._screen = screen
        self._tells_waits = tells_waits
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
            case ContinuationRequired(tool_calls=calls):
                self.know(calls)
                await self._note(self._note_of(event))
            case _:
                await self._note(self._note_of(event))

    def know(self, calls: Iterable[PendingCall]) -> None:
        """These calls have been requested, perhaps before the first event that is shown."""
        for call in calls:
            self._arguments.setdefault(call.id, call.arguments)

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
            case _:
                return self._note_of_course(event)

    def _note_of_course(self, event: Event) -> str:
        """What is said of what changes a run's course: limits, decisions, steering."""
        style = self._screen.style
        match event:
            case LimitReached(limit=limit):
                return style.yellow(f"  limit: {limit_words(limit)}")
            case ContextCompacted():
                return style.dim(f"  {compaction_words(event)}")
            case Finalizing():
                return style.dim("  last model call, with tools off")
            case ContinuationResolved() | ApprovalResolved():
                return style.dim(f"  {_resolution(event)}")
            case MessageQueued(text=text):
                return style.dim(f"  steering waits for the next step: {one_line(text, 200)}")
            case MessageDropped(reason=reason):
                return style.yellow(f"  steering was not read: {one_line(reason, 200)}")
            case ContinuationRequired() | ApprovalRequired() | RunPaused() if self._tells_waits:
                return style.yellow(f"  waits for {waits_for(event)}")
            case _:
                return ""

    async def lost(self, count: int) -> None:
        """Say that events were dropped because this view fell behind; the result is whole all the same."""
        await self._note(self._screen.style.yellow(f"  {count} events were not shown: the output did not keep up"))

    async def end(self, result: RunResult) -> None:
        """Write what the runtime added to the texts of the turns, and end the line."""
        await self._screen.end_text()
        added = closing_text(result, [step.text for step in result.steps])
        if added:
            await self._screen.text(added + "\n")

    async def _note(self, text: str) -> None:
        if text:
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


def _resolution(event: ContinuationResolved | ApprovalResolved) -> str:
    said = event.outcome.replace("_", " ")
    if event.by not in {None, "provider"}:
        said += f" by {one_line(event.by or '', 64)}"
    if isinstance(event, ApprovalResolved):
        said = f"call {said}"
        reason = event.reason
    else:
        reason = event.message
        if event.discarded:
            said += f", {len(event.discarded)} pending calls discarded"
        if event.effect:
            said += f", which counts as {event.effect}"
    return f"{said}: {one_line(reason, 200)}" if reason else said
