"""What a client shows: the items of a follower, to a person or to a program."""

from __future__ import annotations

from typing import Any, Protocol

import attrs
import msgspec

from protocol.codec import encode
from protocol.events import (
    AgentFailed,
    AgentStopped,
    AgentWarned,
    ContentDelta,
    ContinuationRequired,
    Event,
    ReasoningDelta,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCallDelta,
)

from ..client import Attached, Gone, Item, Reattached, Received
from ._board import Board
from ._live import LiveView
from ._screen import Screen
from ._shown_text import ShownText
from ._style import harmless, one_line
from ._words import end_line, summary_line, waits_for

__all__ = ("EventLines", "ItemView", "PersonView")


class ItemView(Protocol):
    """What shows the items of a follower."""

    async def show(self, item: Item, /) -> None:
        """Show one."""
        ...


class EventLines:
    """One JSON object per line: `agent`, and `seq` with `event`, or `attached`, or `gone`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def show(self, item: Item) -> None:
        """Write one."""
        line: dict[str, Any] = {"agent": item.agent}
        match item:
            case Received():
                line.update(epoch=item.epoch, seq=item.number, event=item.event)
            case Attached(reply=reply):
                line.update(attached=msgspec.Raw(encode(reply)))
            case Gone():
                line.update(gone=True)
        await self._screen.json(encode(line))


@attrs.define(eq=False)
class _Speaker:
    """One agent, or one of its sub-agents."""

    title: str
    view: LiveView
    held: list[tuple[Event, int]] = attrs.field(factory=list[tuple[Event, int]])
    """Pieces of text that came while somebody else was speaking."""


@attrs.define(eq=False)
class PersonView:
    """Shows events as `onward run` does; where several agents speak, each under its name and nobody amid another's text."""

    screen: Screen
    board: Board
    asks: bool
    """Whether questions are asked here, so that this view need not tell of them."""
    _speakers: dict[tuple[str, ...], _Speaker] = attrs.field(factory=dict[tuple[str, ...], _Speaker])
    _speaking: _Speaker | None = None
    _in_text: bool = False
    _texts: dict[str, ShownText] = attrs.field(factory=dict[str, ShownText])
    """By run."""

    async def show(self, item: Item) -> None:
        """Show one item."""
        style = self.screen.style
        match item:
            case Received():
                await self._hear(item)
            case Reattached(agent=agent):
                await self._note(
                    style.yellow(f"{self.board.name_of(agent)}: some events could not be had; it goes on from here")
                )
            case Gone(agent=agent):
                await self._note(style.yellow(f"agent {self.board.name_of(agent)} is not there any more"))
            case Attached(agent=agent, reply=reply):
                for request in reply.open_requests:
                    if isinstance(request, ContinuationRequired):
                        self._speaker(agent, request.agent_path).view.know(request.tool_calls)
                    if not self.asks:
                        await self._note(style.yellow(f"{self.board.name_of(agent)} waits for {waits_for(request)}"))

    async def _hear(self, item: Received) -> None:
        event = item.event
        speaker = self._speaker(item.agent, event.agent_path if isinstance(event, RunEvent) else ())
        is_piece = isinstance(event, (ContentDelta, ReasoningDelta, ToolCallDelta))
        if speaker is not self._speaking:
            if is_piece and self._in_text:
                speaker.held.append((event, item.number))
                return
            await self._let_speak(speaker)
        self._in_text = is_piece
        await self._say(speaker, event, item.number)

    def _speaker(self, agent: str, path: tuple[str, ...]) -> _Speaker:
        speaker = self._speakers.get((agent, *path))
        if speaker is None:
            title = "/".join([self.board.name_of(agent), *path])
            speaker = _Speaker(title, LiveView(self.screen, tells_waits=not self.asks))
            self._speakers[agent, *path] = speaker
        return speaker

    async def _let_speak(self, speaker: _Speaker) -> None:
        if self._speaking is not None or len(self.board.agents) > 1:
            await self._note(self.screen.style.bold(f"-- {harmless(speaker.title)}"))
        self._speaking = speaker
        held, speaker.held = speaker.held, []
        for event, number in held:
            await self._say(speaker, event, number)

    async def _say(self, speaker: _Speaker, event: Event, number: int) -> None:
        style = self.screen.style
        match event:
            case RunStarted(run=run, prompt=prompt, agent_path=path):
                self._texts[run] = ShownText(from_start=True)
                if not path:
                    await self._note(style.dim(f"run: {one_line(prompt, 200)}"))
            case AgentWarned(text=text):
                await self._note(style.yellow(f"  warning: {one_line(text, 300)}"))
            case AgentFailed(error=error):
                await self._note(style.red(f"the agent failed: {one_line(error.message, 300)}"))
            case AgentStopped(reason=reason):
                await self._note(style.dim(f"the agent has stopped: {one_line(reason, 200)}"))
            case RunFinished() | RunFailed() | RunCancelled():
                await self._end(event)
            case _:
                if isinstance(event, RunEvent):
                    self._texts.setdefault(event.run, ShownText()).keep(event)
                await speaker.view.show(event, number)

    async def _end(self, event: RunFinished | RunFailed | RunCancelled) -> None:
        style, summary = self.screen.style, event.summary
        texts = self._texts.pop(event.run, ShownText())
        if event.agent_path:
            return
        await self.screen.end_text()
        left = texts.left(summary).rstrip("\n")
        if left and not texts.from_start:
            await self._note(style.dim("its text as a whole:"))
        if left:
            await self.screen.text(f"{left}\n")
        match event:
            case RunFailed(error=error):
                await self._note(style.red(f"failed: {harmless(error.message)}"))
            case RunCancelled(reason=reason):
                await self._note(style.yellow(f"cancelled: {harmless(reason)}"))
            case RunFinished() if line := end_line(summary):
                await self._note(style.yellow(harmless(line)))
            case _:
                pass
        await self._note(style.dim(summary_line(summary)))

    async def _note(self, text: str) -> None:
        await self.screen.end_text()
        await self.screen.note(text)
