"""A bounded mailbox that strands nobody.

The mailbox remembers every ask it has handed out and that is not answered, not only the one in hand: a crash fails
them all. Asks whose asker has left are skipped. Closing answers whoever still waits and counts what nobody will read.

The task that reads it is the actor's loop. While the loop handles a message it is marked in the context what it works for:
a task that it starts there works for that ask (see `_waits`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, cast

import attrs
import trio

from protocol.errors import ActorCrashed, ActorGone

from ._ask import Ask, Reply
from ._port import Door, Port
from ._waits import Party, current_party

__all__ = ("Mailbox", "MailboxStatistics")

M = TypeVar("M")


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
    """It takes no more messages."""
    waiting_senders: int = 0
    """Tasks that wait for room in the buffer."""


@attrs.define(eq=False)
class _State(Party):
    """What the two ends share: the actor's side of it is here, the senders' in `Door`."""

    door: Door
    receive: trio.MemoryReceiveChannel[Any]
    is_inner: bool
    waits: dict[object, tuple[Party, ...]] | None = None
    open: dict[Reply[Any], None] = attrs.field(factory=dict[Reply[Any], None])
    """Asks received and not answered."""
    loop: trio.lowlevel.Task | None = None
    """The task that stands still where the actor's loop waits; `None` where several tasks read."""
    reader: trio.lowlevel.Task | None = None
    """The task that has read last."""
    in_hand: bool = False
    """The loop has a message, and has not come for the next one."""
    closed: bool = False
    on_stop: Callable[[], object] | None = None

    @property
    def title(self) -> str:
        return self.door.name

    def here(self) -> Party | None:
        return self if self.loop is trio.lowlevel.current_task() else None

    def forget(self, reply: Reply[Any]) -> None:
        self.open.pop(reply, None)

    def read_by(self, task: trio.lowlevel.Task) -> None:
        """Another task than before reads: the loop, or where there are several, none of them alone."""
        self.loop = task if self.reader is None else None
        self.reader = task


class Mailbox(Generic[M]):
    """The receiving end: one per actor; `async for message in mailbox` is an actor's loop."""

    def __init__(self, name: str, *, capacity: int = 8, inner: bool = False) -> None:
        """`capacity` bounds the messages that wait; an asker waits beyond it, a teller gets `MailboxFull`.

        `inner` is for the actors that one party is made of (the services of a run): whoever waits there waits as that one.
        """
        send, receive = trio.open_memory_channel[Any](capacity)
        door = Door(name, capacity, send)
        self._state = state = _State(door, receive, inner)
        door.party = None if inner else state
        self.port: Port[M] = Port(door)

    def __repr__(self) -> str:
        return f"<Mailbox {self.name}>"

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._state.door.name

    @property
    def party(self) -> Party | None:
        """Whom others wait for when they wait for its actor; `None` within one party."""
        return self._state.door.party

    def __aiter__(self) -> Mailbox[M]:
        return self

    async def __anext__(self) -> M:
        state = self._state
        state.in_hand = False
        task = trio.lowlevel.current_task()
        if state.reader is not task:
            state.read_by(task)
        while True:
            try:
                received: M = await state.receive.receive()
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
            party: Party = state
            if isinstance(received, Ask):
                reply = cast("Ask[Any]", received).reply
                if reply.dropped:
                    continue
                state.open[reply] = None
                reply.kept_by(state)
                party = reply
            if not state.is_inner:
                current_party.set(party)
            state.in_hand = True
            return cast("M", received)

    def enter(self) -> None:
        """The calling task becomes the actor's loop, until another one reads."""
        state = self._state
        state.loop, state.reader = trio.lowlevel.current_task(), None
        if not state.is_inner:
            current_party.set(state)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost if its actor ends now: no message waits or is in hand, and no ask is open."""
        state = self._state
        return not (state.in_hand or state.open or self.statistics().waiting)

    @property
    def is_read(self) -> bool:
        """Whether a task of the present incarnation has come for a message."""
        return self._state.reader is not None

    @property
    def is_stopped(self) -> bool:
        """Whether it takes no more messages."""
        return self._state.door.gone is not None

    def on_stop(self, wake: Callable[[], object] | None) -> None:
        """Call `wake` at `stop()`: how one who waits before a restart learns of it. `None` takes it back."""
        self._state.on_stop = wake

    def stop(self, *, drain: bool = True) -> None:
        """Take no more messages, and end the actor's loop: when it has handled those that wait, or else at once.

        Without `drain` those that wait are answered with `ActorGone`, or counted as dead letters. Whoever waits for room, or
        comes later, gets `ActorGone`. A second call may still take back the `drain`.
        """
        state = self._state
        if state.door.gone is None:
            state.door.gone = partial(ActorGone, f"{self.name} has been stopped")
        state.door.send.close()
        if not drain:
            self._refuse_waiting()
        if state.on_stop is not None:
            state.on_stop()

    def fail_open(self, reason: str, cause: Exception | None = None) -> None:
        """Fail every ask that was received and is not answered with `ActorCrashed(reason)`, raised from `cause`."""
        for reply in list(self._state.open):
            reply.fail(_crashed(reason, cause))

    def close(self, crash: str | None = None, cause: Exception | None = None) -> None:
        """Answer whoever waits with `ActorGone`, or `ActorCrashed(crash)`; take nothing more. Closing twice is once."""
        state = self._state
        if state.closed:
            return
        state.closed = True
        state.in_hand = False
        if crash is not None:
            state.door.gone = partial(_crashed, crash, cause)
        elif state.door.gone is None:
            state.door.gone = partial(ActorGone, f"{self.name} has ended")
        for reply in list(state.open):
            reply.fail(state.door.gone())
        state.door.send.close()  # first: what is taken out of the buffer makes no room for others
        self._refuse_waiting()
        state.receive.close()

    def _refuse_waiting(self) -> None:
        state = self._state
        assert state.door.gone is not None
        while True:
            try:
                message = state.receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
                return
            if isinstance(message, Ask):
                cast("Ask[Any]", message).reply.fail(state.door.gone())
            else:
                state.door.dead_letters += 1

    def statistics(self) -> MailboxStatistics:
        """A frozen look at the mailbox."""
        state, door = self._state, self._state.door
        waiting = senders = 0
        if not state.closed:
            channel = state.receive.statistics()
            waiting, senders = channel.current_buffer_used, channel.tasks_waiting_send
        closed = door.gone is not None
        return MailboxStatistics(
            door.name, waiting, door.capacity, len(state.open), door.dead_letters, closed, waiting_senders=senders
        )


def _crashed(reason: str, cause: Exception | None) -> ActorCrashed:
    error = ActorCrashed(reason)
    error.__cause__ = cause
    return error
