"""Actors that live side by side under one roof, each under its own name."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

import attrs
import trio

from protocol.errors import ActorGone, SpecError

from ..logs import get_logger
from ._mailbox import Mailbox
from ._port import Port
from ._supervision import Actor, ActorStatistics, Restarts, Supervision
from ._waits import waiting_for

__all__ = ("Directory", "HostedActor")

M = TypeVar("M")

logger = get_logger(__name__)


@final
class HostedActor(Generic[M]):
    """An actor that a runtime hosts: its port, and how to look at it and end it. Made by `spawn_actor`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._scope = trio.CancelScope()
        self.ended = trio.Event()
        """Set when it is over: it takes no messages, and none of its tasks runs."""

    def __repr__(self) -> str:
        return f"<HostedActor {self.name}>"

    @property
    def name(self) -> str:
        """Its own among the actors of the runtime."""
        return self._supervision.mailbox.name

    @property
    def port(self) -> Port[M]:
        """Where it is asked and told."""
        return self._supervision.mailbox.port

    def stop(self, *, drain: bool = True, now: bool = False) -> None:
        """Take no more messages, and end at a boundary: the message in hand is finished, and with `drain` those that wait.

        Without `drain` those that wait are answered with `ActorGone`, or are dead letters. `now` cancels the actor: its asks
        are answered with `ActorGone`. A stop can be sharpened by a second one; `wait_ended` waits for the end.
        """
        self._supervision.mailbox.stop(drain=drain and not now)
        if now:
            self._scope.cancel(f"actor {self.name} is stopped now")

    async def wait_ended(self) -> None:
        """Wait until it is over. Raises `AskCycle` in the actor's own loop."""
        with waiting_for(self._supervision.mailbox.party):
            await self.ended.wait()

    def statistics(self) -> ActorStatistics:
        """A frozen look at it."""
        return self._supervision.statistics()

    @property
    def ends_by_itself(self) -> bool:
        """The runtime's own: whether it has messages, or a loop that a stop brings to its end."""
        mailbox = self._supervision.mailbox
        return mailbox.is_read or not mailbox.is_idle

    async def host(self) -> None:
        """The runtime's own: run it until it is over. Raises what `supervise` raises."""
        try:
            with self._scope:
                await self._supervision.run()
        finally:
            self.ended.set()
            lost = self.statistics().mailbox.dead_letters
            if lost:
                logger.warning("actor ended with messages that nobody has read", actor=self.name, messages=lost)


@attrs.define(eq=False)
class Directory:
    """The actors of a runtime, by name."""

    nursery: trio.Nursery
    """Where they run."""
    _hosted: dict[str, HostedActor[Any]] = attrs.field(factory=dict[str, HostedActor[Any]], init=False)

    @property
    def all(self) -> tuple[HostedActor[Any], ...]:
        """Those that are not over, oldest first."""
        return tuple(self._hosted.values())

    def find(self, name: str) -> HostedActor[Any]:
        """The one of that name. Raises `ActorGone` if there is none (any more)."""
        hosted = self._hosted.get(name)
        if hosted is None:
            raise ActorGone(f"there is no actor {name!r}; there are: {', '.join(self._hosted) or 'none'}")
        return hosted

    def spawn(self, actor: Actor[M], *, name: str | None, capacity: int, restarts: Restarts | None) -> HostedActor[M]:
        """Run an actor under a name of its own. Raises `SpecError` for a name that is taken."""
        if name in self._hosted:
            raise SpecError(f"there is an actor {name!r} already: give this one another name, or stop that one first")
        if name is None:
            name = kind = type(actor).__name__
            number = 1
            while name in self._hosted:
                number += 1
                name = f"{kind}-{number}"
        hosted = HostedActor[M](Supervision(actor, Mailbox[M](name, capacity=capacity), restarts or Restarts()))
        self._hosted[name] = hosted
        self.nursery.start_soon(self._host, hosted, name=name)
        return hosted

    async def _host(self, hosted: HostedActor[Any]) -> None:
        try:
            await hosted.host()
        finally:
            del self._hosted[hosted.name]

    async def finish(self, *, now: bool = False) -> None:
        """Stop all, and wait for those that end by themselves: that read their mailbox, or have something in it."""
        waited = [hosted for hosted in self.all if now or hosted.ends_by_itself]
        for hosted in self.all:
            hosted.stop(now=now)
        for hosted in waited:
            await hosted.ended.wait()
