"""The keyboard of `onward attach`: questions are asked as they come, and in between a person starts and steers runs.

A line belongs to the question that is on the screen when it is read: what was typed before a question was shown, or up to
the moment when somebody else answered it, is dropped. The digest of what was shown goes with each answer.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from protocol.approval import ApprovalResponse
from protocol.events import ApprovalRequired, ContinuationRequired
from protocol.gate import ContinuationResponse

from ..client import Client, ClientError, WireRefused
from ._answers import HELP, Misread, WantsText, question, read_answer
from ._approval_answers import approval_question, read_approval
from ._attach_commands import COMMANDS, Commands
from ._board import Board, Waiting
from ._lines import Lines
from ._screen import Screen
from ._style import harmless

__all__ = ("Desk",)

_STALE = {"already_resolved", "stale_view", "not_found"}
"""Refusals that say that what was shown is not what waits."""


@attrs.define(eq=False)
class Desk:
    """Asks, and does what is typed."""

    client: Client
    screen: Screen
    board: Board
    lines: Lines
    commands: Commands
    may_decide: bool
    left: Callable[[], None]
    """Called when the person leaves."""
    _asked: Waiting | None = None
    """The question on the screen."""
    _answered: Waiting | None = None
    """The one before it, while the event that tells everybody is on its way: what comes of it is shown first."""
    _showing: bool = False
    _wants_text: bool = False
    _was_busy: bool = True

    async def run(self) -> None:
        """Take lines until the person leaves."""
        await self.look()
        while True:
            line = await self.lines.next()
            if line is None or line.strip() == "/quit":
                self.left()
                return
            self.screen.typed()
            if not self._showing and (self._answered is None or line.startswith("/")):
                await self._take(line)

    async def look(self) -> None:
        """Something has happened: ask what is to be asked now."""
        if self._showing or (self._answered is not None and self._waits(self._answered)):
            return
        self._answered = None
        if self._asked is not None:
            if self._waits(self._asked):
                return
            self._asked = None
            self.lines.forget()  # somebody else was quicker: what is half typed would be read as something else
        asking = (ContinuationRequired, ApprovalRequired)
        waiting = [one for one in self.board.waiting.values() if self.may_decide and isinstance(one.request, asking)]
        if waiting:
            await self._ask(waiting[0])
            return
        if self._was_busy:
            await self._prompt()
        self._was_busy = self.board.is_busy

    def _waits(self, asked: Waiting) -> bool:
        """Whether that question is open: the one that was shown, however often it has been told of since."""
        now = self.board.waiting.get(asked.request.request)
        return now is not None and _shown_by(now) == _shown_by(asked)

    async def _ask(self, waiting: Waiting) -> None:
        self._showing = True
        style = self.screen.style
        request = self.board.as_of_now(waiting)
        await self.screen.end_text()
        if len(self.board.agents) > 1 or request.agent_path:
            await self.screen.note(style.bold(harmless("/".join([waiting.agent.name, *request.agent_path]))))
        if isinstance(request, ContinuationRequired):
            await self.screen.note(question(request, style))
        elif isinstance(request, ApprovalRequired):
            await self.screen.note(approval_question(request, style))
        self.lines.forget()
        self._asked, self._showing, self._wants_text, self._was_busy = waiting, False, False, True
        await self._prompt()
        if not self._waits(waiting):  # it was answered while it was being shown
            await self.look()

    async def _prompt(self) -> None:
        """Show what may be typed now."""
        if self._asked is None:
            if self.board.agents and not self.board.is_busy:
                await self.screen.prompt("> ")
            return
        if isinstance(self._asked.request, ApprovalRequired):
            words = "approve, edit or deny? "
        else:
            words = "what shall the model read? " if self._wants_text else "approve, steer, discard or decline? "
        await self.screen.prompt(self.screen.style.bold(words))

    async def _say(self, text: str) -> None:
        await self.screen.note(text)
        await self._prompt()

    async def _take(self, line: str) -> None:
        asked = self._asked
        try:
            if asked is None or line.startswith("/"):
                await self._command(line)
            else:
                await self._answer(line, asked)
        except ClientError as error:
            await self._say(harmless(str(error)))

    async def _command(self, line: str) -> None:
        if line.strip() in {"/help", "/?"}:
            await self._say(COMMANDS if self._asked is None else f"{HELP}\n{COMMANDS}")
        elif not line.strip():
            await self._prompt()
        elif not line.startswith("/") and not isinstance(read_answer(line, ()), Misread):
            await self._say("Nothing waits for an answer. To start a run with this as its prompt: /run TEXT")
        else:
            said = await self.commands.do(line)
            if said:
                await self._say(said)
            elif self._asked is not None:
                await self._prompt()

    async def _answer(self, line: str, asked: Waiting) -> None:
        try:
            if isinstance(asked.request, ApprovalRequired):
                await self._answer_approval(line, asked, asked.request)
            elif isinstance(asked.request, ContinuationRequired):
                await self._answer_continuation(line, asked, asked.request)
        except WireRefused as refusal:
            if refusal.code not in _STALE:
                raise
            await self._look_again(refusal, asked)

    async def _answer_continuation(self, line: str, asked: Waiting, request: ContinuationRequired) -> None:
        if self._wants_text:
            self._wants_text = False
            answer = read_answer(f"s {line}", request.tool_calls) if line.strip() else Misread("nothing was said")
        else:
            answer = read_answer(line, request.tool_calls)
        match answer:
            case ContinuationResponse(decision="approve" | "decline" as decision):
                await self.client.decide(request, decision, message=answer.message, discard=answer.discard_tool_calls)
                await self._accepted(asked)
            case Misread(why=why):
                await self._say(why)
            case WantsText():
                self._wants_text = True
                await self._prompt()
            case _:
                await self._ask(asked)

    async def _answer_approval(self, line: str, asked: Waiting, request: ApprovalRequired) -> None:
        answer = read_approval(line)
        match answer:
            case ApprovalResponse(decision="approve" | "deny" as decision):
                await self.client.decide_approval(request, decision, reason=answer.reason, arguments=answer.arguments)
                await self._accepted(asked)
            case Misread(why=why):
                await self._say(why)
            case _:
                await self._ask(asked)

    async def _accepted(self, asked: Waiting) -> None:
        """It counts."""
        if self._asked is asked:
            self._asked, self._answered = None, asked
            await self.look()

    async def _look_again(self, refusal: WireRefused, asked: Waiting) -> None:
        """What was shown is not what waits."""
        request = asked.request.request
        if self._waits(asked):
            del self.board.waiting[request]
        if refusal.code == "stale_view":
            await self.screen.note("What waits has changed meanwhile: look again.")
            for fresh in await self.client.requests():
                if fresh.request == request:
                    self.board.put(asked.agent, fresh)
        else:
            await self.screen.note(f"That is decided already: {harmless(str(refusal))}.")
        await self.look()


def _shown_by(waiting: Waiting) -> str | None:
    """What binds an answer to what was shown."""
    request = waiting.request
    return request.digest if isinstance(request, (ContinuationRequired, ApprovalRequired)) else None
