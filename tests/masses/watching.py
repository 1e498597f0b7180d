"""Who looks on at a crowd: readers in the process that lag, and clients of the gateway that lag, leave and come back."""

from __future__ import annotations

import random
from typing import Any

import attrs
import trio
import trio_websocket

from actors import Agent
from actors.gateway import Access, DoorLimits, Gateway
from protocol.events import Event
from tests.actors.gateway.wired import Client, Hall, RefusedError, numbers_are_whole


def door_of(watchers: int) -> DoorLimits:
    """A door for so many."""
    many = 100 * watchers + 10
    return DoorLimits(
        connections=many,
        connections_per_address=many,
        connections_per_principal=many,
        handshakes_per_second=many,
        handshakes_burst=many,
    )


async def lagging_reader(agent: Agent, read: list[int], seconds: float) -> None:
    """Read all events, and rest now and then."""
    reader = agent.events(after=0)
    async for event in reader:
        assert isinstance(event, Event), event
        read.append(reader.seq)
        if len(read) % 7 == 0:
            await trio.sleep(seconds)


@attrs.define(eq=False)
class Watcher:
    """A client that follows an agent over as many connections as it takes."""

    gateway: Gateway
    access: Access
    agent: Agent
    name: str
    choice: random.Random
    events: list[tuple[int, dict[str, Any]]] = attrs.field(factory=list[tuple[int, dict[str, Any]]])
    seq: int = 0
    began: int = 0
    """The number behind which its events begin; it moves on where a snapshot stands in for what is gone."""
    connections: int = 0

    @property
    def has_caught_up(self) -> bool:
        """Whether it has got all; or its agent is there no longer."""
        return self.seq >= self.agent.stream.visible or self.agent.stopped.is_set()

    async def watch(self, nursery: trio.Nursery) -> None:
        """Follow until it is cancelled."""
        hall = Hall(self.gateway.runtime, self.gateway, self.access, nursery)
        while True:
            client = await hall.connect(self.name)
            self.connections += 1
            try:
                await self._follow(client, self.choice.randint(5, 60))
            except trio_websocket.ConnectionClosed:
                continue
            except RefusedError:
                if not self.agent.stopped.is_set():
                    raise
                return
            await client.drop()

    async def _follow(self, client: Client, frames: int) -> None:
        position: Any = {"epoch": self.agent.stream.epoch, "seq": self.seq}
        reply = await client.ask("agent.attach", agent=self.agent.id, from_=position)
        if not reply["recovered"]:
            self.events, self.seq = [], reply["head"]
            self.began = self.seq
        for _ in range(frames):
            await client.read()
            for number, event in client.events(self.agent.id):
                if number > self.seq:
                    self.events.append((number, event))
                    self.seq = number + event.get("n", 1) - 1
            client.notes.clear()
            await trio.sleep(self.choice.choice([0, 0, 0.2, 3]))

    def faults(self) -> list[str]:
        """Whether it got all, once, in order."""
        head = self.agent.stream.visible
        if not self.has_caught_up:
            return [f"{self.name} got {self.seq} of {head} events"]
        if not numbers_are_whole(self.events, self.began):
            return [f"{self.name} got numbers with a gap, or twice"]
        return []
