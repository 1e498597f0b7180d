"""Messages and actors that the kit's tests speak with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import trio

from actors.kit import Ask, Mailbox


@attrs.frozen(eq=False)
class Double(Ask[int]):
    """Twice a number, please."""

    number: int


@attrs.frozen
class Note:
    """Something to know."""

    text: str


@attrs.frozen
class Crash:
    """Fail, please."""

    error: Exception = attrs.field(factory=lambda: ValueError("broken"))


@attrs.frozen
class End:
    """Return, please."""


Word: TypeAlias = Double | Note | Crash | End


@attrs.define
class Echo:
    """Answers at once, and keeps what it heard; `hold` keeps asks unanswered."""

    hold: bool = False
    heard: list[Word] = attrs.field(factory=list)
    held: list[Double] = attrs.field(factory=list)
    starts: int = 0

    async def run(self, mailbox: Mailbox[Word]) -> None:
        self.starts += 1
        async for message in mailbox:
            self.heard.append(message)
            match message:
                case Double(number=number):
                    if self.hold:
                        self.held.append(message)
                    else:
                        message.reply.set(2 * number)
                case Note():
                    pass
                case Crash(error=error):
                    raise error
                case End():
                    return


@attrs.define
class Busy:
    """Works on every ask in a scope that the asker's leaving cancels."""

    stopped: list[int] = attrs.field(factory=list)
    started: list[int] = attrs.field(factory=list)
    after: Callable[[Double], object] = attrs.field(default=lambda _: None)

    async def run(self, mailbox: Mailbox[Double]) -> None:
        async for message in mailbox:
            self.started.append(message.number)
            with trio.CancelScope() as scope:
                message.reply.on_drop(scope.cancel)
                await trio.sleep(message.number)
                message.reply.set(2 * message.number)
            if scope.cancelled_caught:
                self.stopped.append(message.number)
            self.after(message)
