"""Running an actor: once, where a crash is the end of the whole; or again and again, where it lives long.

A crash fails the asks in hand and the mailbox stays open: the next incarnation takes the next message. Incarnations
never overlap. More than `limit` crashes within `seconds` escalate: the error leaves, wrapped in nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, TypeVar

import attrs
import trio

from ._mailbox import Mailbox

__all__ = ("Actor", "Restarts", "run_once", "supervise")

M = TypeVar("M")


class Actor(Protocol[M]):
    """Plain data with one loop over its mailbox. It ends by returning, and fails by raising."""

    async def run(self, mailbox: Mailbox[M], /) -> None:
        """Handle messages: `async for message in mailbox: match message: ...`."""
        ...


@attrs.frozen(kw_only=True)
class Restarts:
    """How often a crashed actor is started again."""

    limit: int = 3
    """Crashes within `seconds` that are forgiven; one more escalates."""
    seconds: float = 5.0
    backoff_seconds: float = 0.0
    """Wait before a restart; doubled with each crash within the window."""


async def run_once(actor: Actor[Any], mailbox: Mailbox[Any]) -> None:
    """Run one incarnation; whatever its end, whoever waits for an answer gets one. Raises what the actor raises."""
    mailbox.enter()
    try:
        await actor.run(mailbox)
    except Exception as error:
        mailbox.close(f"{mailbox.name} crashed: {type(error).__name__}")
        raise
    finally:
        mailbox.close()


async def supervise(actor: Actor[Any], mailbox: Mailbox[Any], *, restarts: Restarts | None = None) -> None:
    """Run an actor until it returns, starting it again after a crash. Raises its error when that happens too often."""
    policy = restarts or Restarts()
    mailbox.enter()
    crashes: deque[float] = deque()
    try:
        while True:
            try:
                await actor.run(mailbox)
            except Exception as error:
                mailbox.fail_open(f"{mailbox.name} crashed: {type(error).__name__}")
                now = trio.current_time()
                crashes.append(now)
                while crashes[0] < now - policy.seconds:
                    crashes.popleft()
                if len(crashes) > policy.limit:
                    raise
                await trio.sleep(policy.backoff_seconds * 2 ** (len(crashes) - 1))
            else:
                return
    finally:
        mailbox.close()
