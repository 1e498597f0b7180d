"""An observer: told of every event of many streams, one at a time, by a task that nobody waits for.

It is a reader like any other: what it has not come to yet waits in the log, and what the log drops it is told as lost. So it
cannot hold anybody up, however slow it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs
import trio

from protocol.events import Event

from ..logs import get_logger
from ._reader import EventsLost
from ._stream import EventStream

__all__ = ("Observer",)

S = TypeVar("S")

logger = get_logger(__name__)

_BATCH = 64
"""Events of one stream after which the others have their turn."""


@attrs.define(eq=False)
class _Cursor(Generic[S]):
    source: S
    stream: EventStream
    seq: int
    ready: dict[_Cursor[S], None]
    stir: Callable[[], None]

    def wake(self) -> None:
        self.ready[self] = None
        self.stir()


class Observer(Generic[S]):
    """Tells `fn(source, event)` of what streams say: in order for each, one call at a time.

    `fn` is a plain function, which must not block, or an async one, which may take its time. What it raises is logged, and
    the next event comes all the same.
    """

    def __init__(self, fn: Callable[[S, Event | EventsLost], object]) -> None:
        self._fn = fn
        self._ready: dict[_Cursor[S], None] = {}
        self._open = 0
        self._stirred = trio.Event()
        self._closing = False
        self._scope = trio.CancelScope(shield=True)

    def watch(self, source: S, stream: EventStream) -> None:
        """Tell of this stream too, from now on until it is closed."""
        self._open += 1
        _Cursor(source, stream, stream.end, self._ready, self._stir).wake()

    def finish(self, *, grace_seconds: float) -> None:
        """No more streams come: `run` ends when these are closed and told, or the time is over."""
        self._closing = True
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + grace_seconds)
        self._stir()

    def _stir(self) -> None:
        self._stirred.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell, until `finish`. A cancel from outside does not end it: what is said while all is cancelled is told, too."""
        task_status.started()
        with self._scope:
            while not (self._closing and not self._open):
                if not self._ready:
                    await self._stirred.wait()
                    self._stirred = trio.Event()
                for cursor in list(self._ready):
                    await self._tell(cursor)

    async def _tell(self, cursor: _Cursor[S]) -> None:
        """Tell what a stream has said, at most a batch of it."""
        first, entries = cursor.stream.read(cursor.seq, _BATCH)
        if first > cursor.seq + 1:
            lost, cursor.seq = first - 1 - cursor.seq, first - 1
            await self._call(cursor.source, EventsLost(lost))
        for event, _ in entries:
            cursor.seq += 1
            await self._call(cursor.source, event)
        if cursor.seq < cursor.stream.end:
            pass  # it stays ready
        elif cursor.stream.closed:
            self._open -= 1
            del self._ready[cursor]
        else:
            del self._ready[cursor]
            cursor.stream.arm(cursor.wake)
        await trio.lowlevel.checkpoint()

    async def _call(self, source: S, event: Event | EventsLost) -> None:
        try:
            value = self._fn(source, event)
            if inspect.isawaitable(value):
                await value
        except Exception:
            logger.exception("on_event failed", event_type=getattr(event, "type", "lost events"), source=str(source))
