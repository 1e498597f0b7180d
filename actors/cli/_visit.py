"""One visit of `onward attach`: follow, show and ask over one client, until it is over."""

from __future__ import annotations

import os

import attrs
import trio

from protocol.errors import OnwardError
from protocol.events import TERMINAL_EVENTS, Event, RunFailed, RunFinished

from ..client import Client, ClientError, Gone, Item, Received, WireRefused
from ._attach_arguments import AttachArguments
from ._attach_commands import Commands
from ._attach_view import EventLines, ItemView, PersonView
from ._board import Board, Known
from ._desk import Desk
from ._lines import Lines
from ._screen import Screen
from ._status import ANSWERED, FAILED, INTERRUPTED, status_of
from ._style import harmless
from ._usage import UsageError
from ._words import count

__all__ = ("Visit",)

_LOOK_SECONDS = 0.3
"""How often it is looked whether there is a connection."""


@attrs.define(eq=False)
class Visit:
    """Follows, shows and asks."""

    client: Client
    screen: Screen
    arguments: AttachArguments
    board: Board = attrs.field(factory=lambda: Board(trio.current_time))
    _status: int = ANSWERED
    _error: Exception | None = None
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _desk: Desk | None = None
    _prompted: str | None = None
    """The run that `--prompt` started."""
    _ended: dict[str, int] = attrs.field(factory=dict[str, int])
    """Runs that have ended since, with the exit status of each: an end may come before the reply to the start."""

    async def stay(self) -> int:
        """Until it is over; the exit status. Raises `UsageError`, `ClientError` and `OSError`."""
        self.board.listed(await self.client.agents(), await self.client.requests())
        agent = self._chosen()
        await self._greet()
        roles = self.client.welcome.roles
        may_decide = "decide" in roles or "admin" in roles
        is_there = not self.arguments.json and os.isatty(0) and os.isatty(2)
        asks = is_there and may_decide
        view = EventLines(self.screen) if self.arguments.json else PersonView(self.screen, self.board, asks)
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            nursery.start_soon(self._watch, name="watch")
            if is_there:
                commands = Commands(self.client, self.board, self.arguments.agent)
                self._desk = Desk(self.client, self.screen, self.board, Lines(), commands, asks, self._leave)
            try:
                await self._follow(agent, view, nursery)
            except (OnwardError, OSError) as error:
                self._error = error  # as a value: a nursery would wrap it
            nursery.cancel_scope.cancel("it is over")
        if self._error is not None:
            raise self._error
        return self._status

    def _chosen(self) -> Known | None:
        """The one agent that is meant; `None`: all."""
        word, there = self.arguments.agent, self.board.names()
        if word is not None:
            found = self.board.named(word)
            if len(found) == 1:
                return found[0]
            trouble = "is the name of several: give an id" if found else "is not there"
            raise UsageError(f"--agent {word!r} {trouble}; there are: {there}")
        if self.arguments.prompt is None:
            return None
        if len(self.board.agents) == 1:
            return next(iter(self.board.agents.values()))
        raise UsageError(f"--prompt goes to one agent: --agent NAME says to which; there are: {there}")

    async def _greet(self) -> None:
        style, welcome = self.screen.style, self.client.welcome
        roles = ", ".join(welcome.roles)
        await self.screen.note(
            style.dim(f"Attached to {self.arguments.url} as {harmless(welcome.principal)} ({roles}).")
        )
        for agent in self.board.agents.values():
            waits = sum(waiting.agent is agent for waiting in self.board.waiting.values())
            tail = f", {count(waits, 'open question')}" if waits else ""
            state = "idle" if agent.run is None else "runs"
            await self.screen.note(style.dim(f"  {harmless(agent.name)}: {state}{tail}"))

    async def _follow(self, agent: Known | None, view: ItemView, nursery: trio.Nursery) -> None:
        """Show what happens, until nothing can happen any more."""
        since, prompt = self.arguments.since, self.arguments.prompt
        is_first = True
        while True:
            last: Item | None = None
            try:
                async with self.client.follow("*" if agent is None else agent.id, since=since) as follower:
                    if is_first and self._desk is not None:  # from now on nothing is missed: it may be asked for more
                        nursery.start_soon(self._desk.run, name="keyboard")
                    is_first = False
                    if prompt is not None and agent is not None:
                        nursery.start_soon(self._begin, agent, prompt, name="prompt")
                    async for item in follower:
                        last = item
                        await self._take(item, view)
                        if self._desk is not None and not follower.statistics().queued:
                            await self._desk.look()
            except WireRefused as refusal:
                if agent is None or refusal.code != "not_found":
                    raise
                last = Gone(agent.id)  # the server that listed it has been replaced by another one since
                await self._take(last, view)
            if agent is None or not isinstance(last, Gone):
                return
            agent, since = await self._again(agent), "start"
            if agent is None:
                self._status = FAILED
                return

    async def _take(self, item: Item, view: ItemView) -> None:
        self.board.take(item)
        await view.show(item)
        self._note_end(item)

    async def _again(self, agent: Known) -> Known | None:
        """The agent of the same name, where a server has come back without the one that was followed."""
        if self.arguments.prompt is not None:
            return None  # its run is gone
        self.board.listed(await self.client.agents(), await self.client.requests())
        found = self.board.named(agent.name)
        return found[0] if len(found) == 1 else None

    async def _begin(self, agent: Known, prompt: str) -> None:
        try:
            self._prompted = (await self.client.start(agent.id, prompt)).run
        except ClientError as error:
            self._error = error
            self._scope.cancel("the run was not started")
        else:
            self._look_at_end()

    def _note_end(self, item: Item) -> None:
        if self.arguments.prompt is not None and isinstance(item, Received):
            event = item.event
            if isinstance(event, TERMINAL_EVENTS):
                self._ended[event.run] = _status_of(event)
                self._look_at_end()

    def _look_at_end(self) -> None:
        if self._prompted in self._ended:
            self._status = self._ended[self._prompted]
            self._scope.cancel("the run is over")

    def _leave(self) -> None:
        self._status = ANSWERED
        self._scope.cancel("left")

    async def _watch(self) -> None:
        """Tell of a connection that breaks and comes back; it is over if there is nothing left that it could bring."""
        style, was_connected = self.screen.style, True
        while True:
            await trio.sleep(_LOOK_SECONDS)
            is_connected = self.client.statistics().connected
            if is_connected == was_connected:
                continue
            was_connected = is_connected
            if is_connected:
                await self.screen.note(style.dim("Connected again."))
            elif self.board.is_deserted:
                await self.screen.note(style.dim("The server has ended."))
                self._scope.cancel("all agents had stopped, and the server is gone")
            else:
                await self.screen.note(style.yellow("The connection broke; it is tried again. Ctrl-C leaves."))


def _status_of(event: Event) -> int:
    """The exit status of a run that ended so."""
    if isinstance(event, RunFinished):
        return status_of(event.summary)
    return FAILED if isinstance(event, RunFailed) else INTERRUPTED
