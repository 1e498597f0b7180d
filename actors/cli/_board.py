"""What a client knows of the agents that it follows: who is there, what runs, and what waits for somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs
import msgspec

from protocol.events import (
    TERMINAL_EVENTS,
    AgentSpawned,
    AgentStopped,
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    RunPaused,
    RunResumed,
    RunStarted,
)
from protocol.wire.replies import AgentInfo, OpenRequest

from ..client import Attached, Gone, Item, Received
from ._style import one_line

__all__ = ("Board", "Known", "Waiting", "WaitingRequest")

WaitingRequest: TypeAlias = ContinuationRequired | ApprovalRequired | RunPaused


@attrs.define(eq=False)
class Known:
    """An agent."""

    id: str
    name: str
    run: str | None = None
    """The run that goes on."""
    head: int = 0
    """Events up to here had happened when it was listed: what they ask may be answered."""


@attrs.frozen(eq=False)
class Waiting:
    """Something that waits for somebody."""

    agent: Known
    request: WaitingRequest
    deadline: float | None


@attrs.define(eq=False)
class Board:
    """Kept up by every item of a follower."""

    clock: Callable[[], float]
    agents: dict[str, Known] = attrs.field(factory=dict[str, Known])
    waiting: dict[str, Waiting] = attrs.field(factory=dict[str, Waiting])
    """By request, in the order in which they came."""
    _names: dict[str, str] = attrs.field(factory=dict[str, str])

    def listed(self, agents: Iterable[AgentInfo], requests: Iterable[OpenRequest]) -> None:
        """Begin with what the server lists."""
        for agent in agents:
            self.agents[agent.agent] = Known(agent.agent, agent.name, agent.run, agent.head)
            self._names[agent.agent] = agent.name
        for request in requests:
            if request.agent in self.agents:
                self.put(self.agents[request.agent], request)

    @property
    def is_busy(self) -> bool:
        """Whether a run goes on."""
        return any(agent.run is not None for agent in self.agents.values())

    @property
    def is_deserted(self) -> bool:
        """Whether all agents that were there have gone."""
        return bool(self._names) and not self.agents

    def names(self) -> str:
        """Who is there, in words."""
        return ", ".join([one_line(agent.name, 64) for agent in self.agents.values()]) or "none"

    def named(self, word: str) -> list[Known]:
        """The agents of this name, or the one of this id."""
        return [agent for agent in self.agents.values() if word in {agent.name, agent.id}]

    def name_of(self, agent: str) -> str:
        """What an agent is called, or was."""
        return self._names.get(agent, agent)

    def put(self, agent: Known, request: WaitingRequest) -> None:
        """It waits, from now on for as long as it says."""
        seconds = None if isinstance(request, RunPaused) else request.expires_in_seconds
        self.waiting[request.request] = Waiting(agent, request, None if seconds is None else self.clock() + seconds)

    def as_of_now(self, waiting: Waiting) -> WaitingRequest:
        """What waits, with the seconds that are left."""
        if waiting.deadline is None:
            return waiting.request
        left = max(0.0, waiting.deadline - self.clock())
        return msgspec.structs.replace(waiting.request, expires_in_seconds=float(round(left)))

    def take(self, item: Item) -> None:
        """Something has happened."""
        match item:
            case Received():
                self._happened(item)
            case Attached(agent=id, reply=reply):
                agent = self._agent(id)
                agent.run = None if reply.snapshot is None else reply.snapshot.run
                self._drop(lambda waiting: waiting.agent.id == id)
                for request in reply.open_requests:
                    self.put(agent, request)
            case Gone(agent=id):
                self._gone(id)

    def _happened(self, item: Received) -> None:
        agent = self._agent(item.agent)
        match item.event:
            case AgentSpawned(name=name):
                agent.name = self._names[agent.id] = name
            case AgentStopped():
                self._gone(agent.id)
            case RunStarted(run=run, agent_path=()):
                agent.run = run
            case ContinuationRequired() | ApprovalRequired() | RunPaused() as request:
                if item.number > agent.head and request.request not in self.waiting:
                    self.put(agent, request)
            case ContinuationResolved(request=closed) | ApprovalResolved(request=closed):
                self.waiting.pop(closed, None)
            case RunResumed(run=run):
                self._drop(lambda waiting: isinstance(waiting.request, RunPaused) and waiting.request.run == run)
            case event if isinstance(event, TERMINAL_EVENTS):
                self._drop(lambda waiting: waiting.request.run == event.run)
                if event.run == agent.run:
                    agent.run = None
            case _:
                pass

    def _agent(self, id: str) -> Known:
        return self.agents.setdefault(id, Known(id, id))

    def _gone(self, id: str) -> None:
        self.agents.pop(id, None)
        self._drop(lambda waiting: waiting.agent.id == id)

    def _drop(self, is_meant: Callable[[Waiting], bool]) -> None:
        self.waiting = {request: waiting for request, waiting in self.waiting.items() if not is_meant(waiting)}
