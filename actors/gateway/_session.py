"""One client: who it is, what it follows, and what waits to be sent to it."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import trio

from protocol.wire import CloseCode, WireLimits, notification
from protocol.wire.commands import AgentAttach

from ._follow import FRAME_GOAL_BYTES, Following, FollowingLostError, Pressure
from ._principals import Principal

__all__ = ("Leave", "Session")

_SLOW = "more waits to be sent than a client may leave unread: attach again from your last number"


class Leave(Exception):
    """The connection is to be closed, with this code."""

    def __init__(self, code: int, reason: str, *, drains: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.drains = drains
        """Whether the client gets what is visible before."""


@attrs.define(eq=False)
class Session:
    """The state of one connection. Everything in it is synchronous: the writer alone waits.

    What is followed and has news is in `_fresh`; all else costs nothing, however much a client follows.
    """

    id: str
    principal: Principal
    limits: WireLimits
    welcomed: bool = False
    """Whether `hello` has been answered."""
    following: dict[str, Following] = attrs.field(factory=dict[str, Following])
    """By agent."""
    follows_all: AgentAttach | None = None
    """How agents that are spawned later are followed too; `None`: they are not."""
    coming: dict[str, Following] = attrs.field(factory=dict[str, Following])
    """By agent: what will be followed once the reply to its attach is durable."""
    acked: dict[str, int] = attrs.field(factory=dict[str, int])
    """The numbers that the client says it has applied, of what it follows."""
    on_lost: Callable[[Leave], None] | None = None
    """Called when the client is so slow that the log gives it up."""
    _messages: list[bytes] = attrs.field(factory=list[bytes])
    _bytes: int = 0
    _fresh: dict[Following, None] = attrs.field(factory=dict[Following, None])
    _withheld: dict[Following, None] = attrs.field(factory=dict[Following, None])
    _beats: bool = False
    _sleeper: trio.Event | None = None

    @property
    def lag(self) -> float:
        """The part of what may wait for it that waits: 1.0 is the most, for anything that it follows."""
        return max([following.lag_bytes / following.max_bytes for following in self._fresh], default=0.0)

    def send(self, message: bytes) -> None:
        """Queue a reply or a notification. Raises `Leave` if too much waits already."""
        if self._bytes > self.limits.queue_bytes:
            raise Leave(CloseCode.SLOW, _SLOW)
        self._messages.append(message)
        self._bytes += len(message)
        self.stir()

    def beat(self) -> None:
        """A heartbeat is due: it goes out behind the events, and says up to where they were sent."""
        self._beats = True
        self.stir()

    def follow(self, following: Following) -> None:
        """Follow an agent from here on, in place of an earlier attach."""
        self.unfollow(following.agent)
        self.following[following.agent] = following
        following.on_news = self._news
        following.on_lost = self._lost
        following.begin()
        self._news(following)

    def unfollow(self, agent: str) -> None:
        """Follow an agent no longer."""
        coming = self.coming.pop(agent, None)
        if coming is not None:
            coming.end()
        gone = self.following.pop(agent, None)
        if gone is not None:
            gone.end()
            self._fresh.pop(gone, None)
            self._withheld.pop(gone, None)
            self.acked.pop(agent, None)

    def expect(self, following: Following) -> None:
        """The same, when the reply is durable: see `follow_expected`."""
        self.unfollow(following.agent)
        self.coming[following.agent] = following
        following.begin()

    def follow_expected(self, following: Following) -> None:
        """Follow what was expected, unless the client has thought better of it meanwhile."""
        if self.coming.get(following.agent) is following:
            self.follow(following)

    def close(self) -> None:
        """Leave no trace in the streams."""
        for agent in [*self.following, *self.coming]:
            self.unfollow(agent)

    def freeze(self) -> None:
        """Send what is visible now, and nothing after it."""
        self.follows_all = None
        for following in self.following.values():
            following.freeze()
        self._fresh.update(self._withheld)

    def stir(self) -> None:
        """There may be something to do."""
        if self._sleeper is not None:
            self._sleeper.set()

    @property
    def ready(self) -> bool:
        """Whether there may be something to send at once."""
        return bool(self._messages or self._fresh or self._beats)

    async def wait(self, until: float) -> bool:
        """Wait until there may be something to do, or it is `until`; returns whether there may be something to send."""
        due = min([following.due for following in self._withheld], default=math.inf)
        self._sleeper = trio.Event()
        with trio.move_on_at(min(until, due)):
            await self._sleeper.wait()
        self._sleeper = None
        return self.ready

    def take(self, now: float) -> bytes | None:
        """The next frame: all replies that wait, and what is new of the agents, as far as it fits; or `None`.

        Raises `Leave` if the client is too far behind.
        """
        pressure = self._pressure()
        limit = self.limits.frame_bytes
        parts: list[bytes] = []
        size = 2
        while self._messages and (not parts or size + len(self._messages[0]) < limit):
            message = self._messages.pop(0)
            self._bytes -= len(message)
            size += len(message) + 1
            parts.append(message)
        if not self._messages:  # a reply to an attach is out before its events
            size = self._take_events(parts, size, now, pressure)
            if self._beats and (not self._fresh or size < limit // 2):
                parts.append(self._heartbeat())
        if len(parts) < 2:
            return parts[0] if parts else None
        return b"[%s]" % b",".join(parts)

    def _take_events(self, parts: list[bytes], size: int, now: float, pressure: Pressure) -> int:
        limit = self.limits.frame_bytes
        if self._withheld:
            self._fresh.update({following: None for following in self._withheld if following.due <= now})
        for following in list(self._fresh):
            if parts and size >= min(FRAME_GOAL_BYTES, limit // 2):
                break
            try:
                events = following.take(now, limit - size, pressure)
            except FollowingLostError as error:
                raise Leave(CloseCode.SLOW, str(error)) from None
            if events is not None:
                parts.append(events)
                size += len(events) + 1
            self._settle(following)
        return size

    def _settle(self, following: Following) -> None:
        """After a look: what has more waits for its turn, what has nothing more sleeps, what is over goes."""
        del self._fresh[following]
        self._withheld.pop(following, None)
        if following.due < math.inf:
            self._withheld[following] = None
        if following.behind:
            self._fresh[following] = None
        elif following.over:
            self.unfollow(following.agent)
        else:
            following.rest()

    def _pressure(self) -> Pressure:
        most = self.limits.queue_bytes
        waiting = self._bytes + sum(following.lag_bytes for following in self._fresh)
        if waiting <= most // 2:
            return Pressure.NONE
        if waiting > most:
            raise Leave(CloseCode.SLOW, _SLOW)
        return Pressure.THIN if waiting > most * 3 // 4 else Pressure.MERGE

    def _heartbeat(self) -> bytes:
        """How far each agent has been sent, where that has moved: a client that has less has lost something."""
        self._beats = False
        heads: dict[str, int] = {}
        for agent, following in self.following.items():
            if following.told != following.seq:
                heads[agent] = following.told = following.seq
        return notification("heartbeat", {"heads": heads})

    def _news(self, following: Following) -> None:
        self._fresh[following] = None
        self.stir()

    def _lost(self, following: Following) -> None:
        if self.on_lost is not None:
            self.on_lost(Leave(CloseCode.SLOW, f"the log of {following.agent} cannot wait for you: attach again"))
