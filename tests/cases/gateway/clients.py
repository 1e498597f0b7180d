"""What clients of a gateway do in a case: at each moment that is told of, the deed that is told of.

Moments are those of the agent's own log; who acts waits until it has seen for itself what it acts upon.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

import attrs
import trio

from actors import Run
from protocol.events import (
    ApprovalRequired,
    ContentDelta,
    Event,
    RunStarted,
    StepStarted,
    ToolRequested,
    ToolStarted,
)

from ..actions import Clients, time_of
from ..phrases import Phrases
from ..program import NEXT, Case
from .person import Person
from .place import Place, open_place

MOST_SECONDS = 2000
"""How long a case may take."""


@attrs.define(eq=False)
class Remote(Clients):
    """All who use the agent of a case from afar. A is the first, and starts what nobody else is said to."""

    place: Place = attrs.field(init=False)
    starter: str = "A"
    _nursery: trio.Nursery = attrs.field(init=False)
    _busy: int = 0
    """Deeds that are being done, and runs that go on."""
    _runs: int = 0
    _calls: int = 0
    _prompts: int = 0

    def person(self, name: str = "A") -> Person:
        """Somebody by name."""
        return self.place.person(name)

    async def play(self, first: str = "go") -> None:
        """Everything that is told, from the first message to the last."""
        async with open_place(self.stage.runtime) as self.place, trio.open_nursery() as self._nursery:
            await self.person().come(self.agent.id)
            self._nursery.start_soon(self._look)
            for seconds in sorted({seconds for action in self.actions if (seconds := time_of(action)) is not None}):
                self._nursery.start_soon(self._comes_at, trio.current_time() + seconds, f"t={seconds:g}")
            for action in self._due("connected"):
                await self._do(action)
            if in_turn := self._due(NEXT):
                for action in in_turn:
                    await self._do(action)
            else:
                await self.person(self.starter).start(self.agent.id, first, idem=self.place.idem())
            await self._quiet()
            self._nursery.cancel_scope.cancel("the case is over")

    def begin(self, moment: str) -> None:
        """A moment has come: begin what is to be done at it."""
        self.times.setdefault(moment, trio.current_time())
        for action in self._due(moment):
            self._nursery.start_soon(self._do, action)

    def _due(self, moment: str) -> list[Case]:
        due = [action for action in self.actions if action["when"] == moment]
        for action in due:
            self.actions.remove(action)
        return due

    async def _do(self, action: Case) -> None:
        self._busy += 1
        deed, told = REMOTE.find(action["do"])
        await deed(At(self, action, told))
        self._busy -= 1

    async def _comes_at(self, time: float, moment: str) -> None:
        await trio.sleep_until(time)
        self.begin(moment)

    async def _look(self) -> None:
        reader = self.agent.events(after=0)
        async for event in reader:
            assert isinstance(event, Event), event
            if isinstance(event, RunStarted) and not event.agent_path:
                core = self.agent.current
                assert core is not None
                assert event.run == core.run
                self._nursery.start_soon(self._see, Run(core, self.agent.stream, reader.seq - 1))
            for moment in self._moments_of(event):
                self.begin(moment)

    async def _see(self, run: Run) -> None:
        self._busy += 1
        self.played.append(await self.stage.see(self.agent, run))
        self.begin("run_ended")
        self._busy -= 1

    def _moments_of(self, event: Event) -> Iterator[str]:
        match event:
            case RunStarted():
                self._runs += 1
            case StepStarted():
                self._calls = self._prompts = 0
            case ToolRequested():
                self._calls += 1
            case ToolStarted(call=call):
                yield f"tool_started:{call}"
            case ContentDelta():
                yield "streaming"
            case ApprovalRequired(call=call):
                self._prompts += 1
                yield f"approval_prompt:{call}"
                yield f"approval_prompt(run {self._runs})"
                if self._prompts == self._calls:
                    yield from ("both prompts open", "all prompts open")
            case _:
                pass

    async def _quiet(self) -> None:
        """Wait until nothing is left to do."""
        with trio.move_on_after(MOST_SECONDS):
            while self.actions or self._busy:  # noqa: ASYNC110  many things end, each in its own way
                await trio.sleep(1)
        await trio.sleep(1)

    async def ended(self, runs: int = 1) -> None:
        """Wait until so many runs have ended, whoever sees it."""
        while len(self.played) < runs:  # noqa: ASYNC110  nobody tells of it
            await trio.sleep(0.01)


@attrs.frozen(eq=False)
class At:
    """A deed at its moment."""

    clients: Remote
    action: Case
    told: re.Match[str]

    @property
    def agent(self) -> str:
        return self.clients.agent.id

    def person(self, name: str = "A") -> Person:
        return self.clients.person(name)

    def idem(self) -> str:
        return self.clients.place.idem()


Deed: TypeAlias = Callable[[At], Awaitable[object]]
REMOTE = Phrases[Deed]("deeds from afar")
