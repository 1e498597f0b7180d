"""The port to a mailbox: asking, telling and sending, with or without a wait.

No wait can hang on itself: an ask, or a send into a full mailbox, that would close a circle of waits is refused with
`AskCycle` (see `_waits`). What never waits (`tell`, `request`) needs no such care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
import trio

from protocol.errors import MailboxFull

from ._ask import Ask, Reply
from ._waits import Party, party_here, waiting_for

__all__ = ("Door", "Port")

M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")

_USED = "this ask has been used: an ask has one answer, so ask again with a new message"


@attrs.define(eq=False)
class Door:
    """The senders' side of a mailbox."""

    name: str
    capacity: int
    send: trio.MemorySendChannel[Any]
    party: Party | None = None
    """The actor, where others wait for it; `None` within one party."""
    gone: Callable[[], Exception] | None = None
    """Once it takes no more: makes the error that askers get, a new one for each."""
    dead_letters: int = 0


class Port(Generic[M_contra]):
    """The sending end: what others hold of an actor."""

    __slots__ = ("_door",)

    def __init__(self, door: Door) -> None:
        self._door = door

    def __repr__(self) -> str:
        return f"<Port to {self._door.name}>"

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._door.name

    async def ask(self, message: Ask[R]) -> R:
        """Send a message and wait for its answer; leaving the wait (a cancel, a deadline) tells the actor to stop the work.

        Where the mailbox is full it waits for room. A deadline is the caller's: `with trio.fail_after(2): await port.ask(...)`.

        Raises what the actor failed it with, `ActorGone`, `ActorCrashed`, or `AskCycle`; `RuntimeError` for a message that
        has been asked before.
        """
        door, reply = self._door, message.reply
        if door.gone is not None or not reply.is_fresh:
            await trio.lowlevel.checkpoint()
            raise RuntimeError(_USED) if door.gone is None else door.gone()
        asker = None if door.party is None else party_here()
        if asker is not None and door.party is not None:
            asker.begin_wait(reply, door.party, reply)
        taken = False
        try:
            try:
                door.send.send_nowait(message)
            except trio.WouldBlock:
                await _send_when_free(door, message)
            if not reply.done:
                waiter = _Waiter(trio.lowlevel.current_task())
                reply.on_done(waiter.wake)
                await trio.lowlevel.wait_task_rescheduled(waiter.abort)
            taken = True
        finally:
            if asker is not None:
                asker.end_wait(reply)
            if not taken:
                reply.drop()
        return reply.result()

    def request(self, message: Ask[R], notify: Callable[[Reply[R]], None]) -> None:
        """Ask without waiting: `notify` is called, synchronously, when there is an answer.

        Raises `MailboxFull`, and `RuntimeError` as `ask` does; an actor that has gone answers at once with its error.
        """
        reply = message.reply
        if not reply.is_fresh:
            raise RuntimeError(_USED)
        if self._door.gone is not None:
            reply.fail(self._door.gone())
        else:
            _put(self._door, message)
        reply.on_done(lambda: notify(reply))

    def tell(self, message: M_contra) -> bool:
        """Send a message that wants no answer, without waiting.

        Returns whether anybody can read it; raises `MailboxFull`. `send` waits for room instead.
        """
        if self._door.gone is not None:
            self._door.dead_letters += 1
            return False
        _put(self._door, message)
        return True

    async def send(self, message: M_contra) -> bool:
        """Send a message that wants no answer, and wait while the mailbox is full: the sender goes as fast as the actor.

        Returns whether anybody can read it. Raises `AskCycle` if the actor waits for the sender.
        """
        door = self._door
        if door.gone is None:
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                try:
                    door.send.send_nowait(message)
                except trio.WouldBlock:
                    with waiting_for(door.party):
                        await door.send.send(message)
                else:
                    await trio.lowlevel.cancel_shielded_checkpoint()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # it ended while the sender waited
            else:
                return True
        else:
            await trio.lowlevel.checkpoint()
        door.dead_letters += 1
        return False


class _Waiter:
    """One task that sleeps until an answer comes: an event for one, at a third of the cost."""

    __slots__ = ("_task",)

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self._task: trio.lowlevel.Task | None = task

    def wake(self) -> None:
        """The answer is there. If the task was cancelled first, it is on its way already."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        """The task is cancelled while it sleeps."""
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


def _put(door: Door, message: object) -> None:
    try:
        door.send.send_nowait(message)
    except trio.WouldBlock:
        raise MailboxFull(f"{door.name} has {door.capacity} messages waiting") from None


async def _send_when_free(door: Door, message: object) -> None:
    try:
        await door.send.send(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        assert door.gone is not None
    else:
        return
    raise door.gone()  # with the cause that it has
