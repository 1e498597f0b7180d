"""Running an actor: once, where a crash is the end of the whole; or again and again, where it lives long.

A crash fails the asks in hand and the mailbox stays open: the next incarnation takes the next message. Incarnations
never overlap. More than `limit` crashes within `seconds` escalate: the error leaves, wrapped in nothing.

The message in hand is not given to the next incarnation: it may be what the actor died of, and what it asked for may have
been done. Its asker is told, and may ask again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import attrs
import trio

from protocol.errors import SpecError

from ..logs import get_logger
from ._mailbox import Mailbox, MailboxStatistics

__all__ = ("Actor", "ActorStatistics", "Restart", "Restarts", "Supervision", "run_once", "supervise")

M = TypeVar("M")

logger = get_logger(__name__)


class Actor(Protocol[M]):
    """Plain data with one loop over its mailbox. It ends by returning, and fails by raising."""

    async def run(self, mailbox: Mailbox[M], /) -> None:
        """Handle messages: `async for message in mailbox: match message: ...`."""
        ...


@attrs.frozen
class Restart:
    """An actor has crashed and is about to be started again."""

    actor: str
    error: Exception
    crashes: int
    """Within the time that counts, this one included."""
    wait_seconds: float
    """Until it starts."""


@attrs.frozen(kw_only=True)
class Restarts:
    """How often a crashed actor is started again, and how soon. `SpecError` for a number that cannot be right."""

    limit: int = 3
    """Crashes within `seconds` that are forgiven; one more escalates."""
    seconds: float = 5.0
    backoff_seconds: float = 0.0
    """Wait before a restart; doubled with each crash within the window."""
    max_backoff_seconds: float = 60.0
    """No wait is longer."""
    jitter: float = 0.0
    """The part of the wait that is random, from 0 to 1: actors that fell together do not come back together."""
    escalates: bool = True
    """Whether the crash that is not forgiven is that of whoever holds the actor, too; else the actor alone is over."""
    on_restart: Callable[[Restart], object] | None = None
    """Told of each crash that is forgiven, before the wait. Must not block; what it raises is logged and changes nothing."""
    draw: Callable[[], float] = attrs.field(default=random.random, eq=False)  # noqa: S311  it spreads actors out
    """A random number from 0 to 1."""

    def __attrs_post_init__(self) -> None:
        for name, least in (("limit", 0), ("seconds", 0), ("backoff_seconds", 0), ("max_backoff_seconds", 0)):
            value = getattr(self, name)
            if not value >= least:
                raise SpecError(f"Restarts({name}=) must be a number of at least {least}; it is {value!r}")
        if not 0 <= self.jitter <= 1:
            raise SpecError(f"Restarts(jitter=) must be a number from 0 to 1; it is {self.jitter!r}")

    def wait_seconds(self, crashes: int) -> float:
        """The wait before the restart that follows so many crashes."""
        doubled = self.backoff_seconds * 2.0 ** min(crashes - 1, 60)
        return min(doubled, self.max_backoff_seconds) * (1 - self.jitter * self.draw())


@attrs.frozen
class ActorStatistics:
    """The state of an actor."""

    name: str
    state: Literal["running", "restarting", "stopping", "ended"]
    """`restarting`: it has crashed and waits to be started; `stopping`: it takes no more messages."""
    restarts: int
    """How often it has been started again."""
    uptime_seconds: float
    """Since it was last started; 0 while it does not run."""
    mailbox: MailboxStatistics


@attrs.define(eq=False)
class Supervision:
    """An actor that is started again after a crash, and what has become of it."""

    actor: Actor[Any]
    mailbox: Mailbox[Any]
    policy: Restarts = attrs.field(factory=Restarts)
    restarts: int = 0
    _crashes: deque[float] = attrs.field(factory=deque[float], init=False)
    _since: float | None = attrs.field(default=None, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Run the actor until it returns, is stopped, or crashes too often. Raises that last error if it escalates."""
        try:
            while await self._incarnation():
                self.restarts += 1
        finally:
            self._since = None
            self._ended = True
            self.mailbox.close()

    async def _incarnation(self) -> bool:
        """Run the actor once; returns whether there is to be another time."""
        mailbox = self.mailbox
        mailbox.enter()
        self._since = trio.current_time()
        try:
            await self.actor.run(mailbox)
        except Exception as error:  # noqa: BLE001  raised below, or forgiven and logged
            crash = error
        else:
            return False
        self._since = None
        mailbox.fail_open(_told(mailbox, crash), crash)
        if await self._forgives(crash):
            return not mailbox.is_stopped or mailbox.statistics().waiting > 0
        mailbox.close(_told(mailbox, crash), crash)
        if self.policy.escalates:
            raise crash
        logger.error("actor crashed once more than is forgiven, and is over", actor=mailbox.name, exc_info=crash)
        return False

    async def _forgives(self, error: Exception) -> bool:
        """Count a crash, and wait until the actor may be started again; `False` if there were too many."""
        policy, crashes, name = self.policy, self._crashes, self.mailbox.name
        now = trio.current_time()
        crashes.append(now)
        while crashes[0] < now - policy.seconds:
            crashes.popleft()
        if len(crashes) > policy.limit:
            return False
        wait_seconds = policy.wait_seconds(len(crashes))
        logger.warning("actor crashed, and may start again", actor=name, wait_seconds=wait_seconds, exc_info=error)
        if policy.on_restart is not None:
            try:
                policy.on_restart(Restart(name, error, len(crashes), wait_seconds))
            except Exception:
                logger.exception("on_restart failed", actor=name)
        with trio.move_on_after(wait_seconds) as scope:
            self.mailbox.on_stop(lambda: scope.cancel("the actor is being stopped"))
            if self.mailbox.is_stopped:
                scope.cancel("the actor is being stopped")
            await trio.sleep_forever()
        self.mailbox.on_stop(None)
        return True

    def statistics(self) -> ActorStatistics:
        """A frozen look at the actor."""
        box = self.mailbox.statistics()
        since = self._since
        state: Literal["running", "restarting", "stopping", "ended"] = "running" if since is not None else "restarting"
        if self._ended:
            state = "ended"
        elif box.closed:
            state = "stopping"
        uptime = 0.0 if since is None else trio.current_time() - since
        return ActorStatistics(box.name, state, self.restarts, uptime, box)


def _told(mailbox: Mailbox[Any], error: Exception) -> str:
    return f"{mailbox.name} crashed: {type(error).__name__}"


async def run_once(actor: Actor[Any], mailbox: Mailbox[Any]) -> None:
    """Run one incarnation; whatever its end, whoever waits for an answer gets one. Raises what the actor raises."""
    mailbox.enter()
    try:
        await actor.run(mailbox)
    except Exception as error:
        mailbox.close(_told(mailbox, error), error)
        raise
    finally:
        mailbox.close()


async def supervise(actor: Actor[Any], mailbox: Mailbox[Any], *, restarts: Restarts | None = None) -> None:
    """Run an actor until it returns, starting it again after a crash.

    Raises its error when that happens too often, unless the policy says that it does not escalate.
    """
    await Supervision(actor, mailbox, restarts or Restarts()).run()
