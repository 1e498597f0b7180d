"""A bounded mailbox that strands nobody, and the port to it.

The mailbox remembers every ask it has handed out and that is not answered, not only the one in hand: a crash fails
them all. Asks whose asker has left are skipped. Closing answers whoever still waits and counts what nobody will read.

No cycle of asks can hang. An actor's own loop that asks is on record as waiting; an ask that would close a circle
raises `AskCycle` instead of waiting for ever. A task that the actor started may ask whom it likes: the loop goes on.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, cast

import attrs
import trio

from protocol.errors import ActorCrashed, ActorGone, AskCycle, MailboxFull

from ._ask import Ask, Reply

__all__ = ("Mailbox", "MailboxState", "MailboxStatistics", "Port", "current_actor")

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")


@attrs.frozen
class MailboxStatistics:
    """The state of a mailbox."""

    name: str
    waiting: int
    """Messages in the buffer."""
    capacity: int
    open_asks: int
    """Asks received and not answered."""
    dead_letters: int
    """Messages that nobody will read."""
    closed: bool


@attrs.define(eq=False)
class MailboxState:
    """What the two ends share."""

    name: str
    capacity: int
    send: trio.MemorySendChannel[Any]
    receive: trio.MemoryReceiveChannel[Any]
    open: dict[Reply[Any], None] = attrs.field(factory=dict[Reply[Any], None])
    """Asks received and not answered."""
    gone: Callable[[], Exception] | None = None
    """Once it is closed: makes the error that askers get, a new one for each."""
    dead_letters: int = 0
    loop_task: trio.lowlevel.Task | None = None
    """The task that runs the actor's loop."""
    waits_for: MailboxState | None = None
    """Whom that loop has asked and not heard from."""

    def forget(self, reply: Reply[Any]) -> None:
        """The ask is answered."""
        self.open.pop(reply, None)


current_actor: contextvars.ContextVar[MailboxState | None] = contextvars.ContextVar("current_actor", default=None)
"""The actor in whose task tree the code runs."""


class Mailbox(Generic[M]):
    """The receiving end: one per actor; `async for message in mailbox` is an actor's loop."""

    def __init__(self, name: str, *, capacity: int = 8) -> None:
        """`capacity` bounds the messages that wait; an asker waits beyond it, a teller gets `MailboxFull`."""
        send, receive = trio.open_memory_channel[Any](capacity)
        self._state = MailboxState(name, capacity, send, receive)
        self.port: Port[M] = Port(self._state)

    def __repr__(self) -> str:
        return f"<Mailbox {self.name}>"

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._state.name

    def __aiter__(self) -> Mailbox[M]:
        return self

    async def __anext__(self) -> M:
        state = self._state
        while True:
            received: M = await state.receive.receive()
            if isinstance(received, Ask):
                reply = cast("Ask[Any]", received).reply
                if reply.dropped:
                    continue
                state.open[reply] = None
                reply.tracked_by(state.forget)
            return cast("M", received)

    def enter(self) -> None:
        """The calling task becomes the actor's loop."""
        self._state.loop_task = trio.lowlevel.current_task()
        current_actor.set(self._state)

    def fail_open(self, reason: str) -> None:
        """Fail every ask that was received and is not answered with `ActorCrashed(reason)`."""
        for reply in list(self._state.open):
            reply.fail(ActorCrashed(reason))

    def close(self, crash: str | None = None) -> None:
        """Answer whoever waits with `ActorGone`, or `ActorCrashed(crash)`; take nothing more. Closing twice is once."""
        state = self._state
        if state.gone is not None:
            return
        gone = state.gone = partial(ActorCrashed, crash) if crash else partial(ActorGone, f"{state.name} has ended")
        for reply in list(state.open):
            reply.fail(gone())
        while True:
            try:
                message = state.receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                break
            if isinstance(message, Ask):
                cast("Ask[Any]", message).reply.fail(gone())
            else:
                state.dead_letters += 1
        state.receive.close()
        state.send.close()

    def statistics(self) -> MailboxStatistics:
        """A frozen look at the mailbox."""
        state = self._state
        closed = state.gone is not None
        waiting = 0 if closed else state.send.statistics().current_buffer_used
        return MailboxStatistics(state.name, waiting, state.capacity, len(state.open), state.dead_letters, closed)


class Port(Generic[M_contra]):
    """The sending end: what others hold of an actor."""

    __slots__ = ("_state",)

    def __init__(self, state: MailboxState) -> None:
        self._state = state

    def __repr__(self) -> str:
        return f"<Port to {self._state.name}>"

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._state.name

    async def ask(self, message: Ask[R]) -> R:
        """Send a message and wait for its answer; leaving the wait (a cancel) tells the actor to stop the work.

        Raises what the actor failed it with, `ActorGone`, `ActorCrashed`, or `AskCycle`.
        """
        state = self._state
        if state.gone is not None:
            await trio.lowlevel.checkpoint()
            raise state.gone()
        reply = message.reply
        asker = current_actor.get()
        if asker is not None and asker.loop_task is trio.lowlevel.current_task():
            _refuse_cycle(asker, state)
            asker.waits_for = state
        else:
            asker = None
        taken = False
        try:
            try:
                state.send.send_nowait(message)
            except trio.WouldBlock:
                await _send_when_free(state, message)
            if not reply.done:
                waiter = _Waiter(trio.lowlevel.current_task())
                reply.on_done(waiter.wake)
                await trio.lowlevel.wait_task_rescheduled(waiter.abort)
            taken = True
        finally:
            if asker is not None:
                asker.waits_for = None
            if not taken:
                reply.drop()
        return reply.result()

    def request(self, message: Ask[R], notify: Callable[[Reply[R]], None]) -> None:
        """Ask without waiting: `notify` is called, synchronously, when there is an answer.

        Raises `MailboxFull`; an actor that has gone answers at once with its error.
        """
        reply = message.reply
        if self._state.gone is not None:
            reply.fail(self._state.gone())
        else:
            _put(self._state, message)
        reply.on_done(lambda: notify(reply))

    def tell(self, message: M_contra) -> bool:
        """Send a message that wants no answer. Returns whether anybody can read it; raises `MailboxFull`."""
        if self._state.gone is not None:
            self._state.dead_letters += 1
            return False
        _put(self._state, message)
        return True


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


def _put(state: MailboxState, message: object) -> None:
    try:
        state.send.send_nowait(message)
    except trio.WouldBlock:
        raise MailboxFull(f"{state.name} has {state.capacity} messages waiting") from None


async def _send_when_free(state: MailboxState, message: object) -> None:
    try:
        await state.send.send(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        assert state.gone is not None
        raise state.gone() from None


def _refuse_cycle(asker: MailboxState, target: MailboxState) -> None:
    names = [asker.name]
    box: MailboxState | None = target
    while box is not None:
        names.append(box.name)
        if box is asker:
            raise AskCycle(f"asking would never end: {' -> '.join(names)}")
        box = box.waits_for
