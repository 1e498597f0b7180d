"""When a connection does what, and how many commands it may give."""

from __future__ import annotations

import attrs
import trio

from protocol.wire import CloseCode, WireLimits

from ._limits import TokenBucket
from ._session import Leave

__all__ = ("CommandRate", "Pace", "Window")

_MOST_REFUSALS = 100
_REFUSALS_SECONDS = 10.0
_GROUP = 50


@attrs.frozen(kw_only=True)
class Pace:
    """When a connection does what."""

    window_seconds: float = 0.015
    """What comes within it is sent as one frame."""
    heartbeat_seconds: float = 20.0
    """Also the time between two pings."""
    send_seconds: float = 10.0
    """How long the send of one frame may take; then TCP is dropped."""
    hello_seconds: float = 5.0
    """How long a client may take to say hello."""
    drain_seconds: float = 4.0
    """How long a client may take for what it is still sent when the gateway closes."""


@attrs.define(eq=False)
class CommandRate:
    """How fast the commands of one connection may come."""

    limits: WireLimits
    _bucket: TokenBucket = attrs.field(init=False)
    _refused: list[float] = attrs.field(factory=list[float])

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.limits.commands_per_second, self.limits.commands_burst)

    def wait_seconds(self, now: float) -> float:
        """0.0 if a command may be given now, else when to try again. Raises `Leave` where that is not heeded."""
        wait = self._bucket.take(now)
        if wait:
            self._refused = [at for at in self._refused if now - at <= _REFUSALS_SECONDS]
            self._refused.append(now)
            if len(self._refused) >= _MOST_REFUSALS:
                raise Leave(
                    CloseCode.TOO_MANY, f"{_MOST_REFUSALS} commands too many in {_REFUSALS_SECONDS:.0f} seconds"
                )
        return wait


@attrs.define(eq=False)
class Window:
    """Where all writers of a gateway wait together: one of them sleeps, and wakes the others.

    So there is one timer, not one for each, and they look at what is new at the same time: most make the same frame. No
    more than a group of them goes on at a time, so that everybody else in the process has a turn in between.
    """

    seconds: float
    _lot: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    _sleeps: bool = False
    _begun: int = 0

    async def turn(self) -> None:
        """Wait, for one that was idle and has something to send: only where many come at the same time."""
        if self._begun < _GROUP:
            self._begun += 1
        else:
            await self.wait()

    async def wait(self) -> None:
        """Wait for the end of the present window, or of the next one if there is none."""
        if self._sleeps:
            await self._lot.park()
            return
        self._sleeps = True
        try:
            await trio.sleep(self.seconds)
            self._begun = 0
            for _ in range(len(self._lot) // _GROUP):
                self._lot.unpark(count=_GROUP)
                await trio.lowlevel.checkpoint()
        finally:
            self._sleeps = False
            self._lot.unpark_all()
