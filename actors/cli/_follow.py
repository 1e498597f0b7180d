"""Follow a run to its end: its events to a view, Ctrl-C to the run."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Protocol

import trio

from protocol.events import ContinuationRequired, Event
from protocol.gate import ContinuationRequest

from ..eventlog import EventsLost
from ._screen import Screen

__all__ = ("Follower", "Reader", "Stoppable", "View", "obey_signals")


class View(Protocol):
    """What shows events."""

    async def show(self, event: Event, seq: int, /) -> None:
        """Show one event, which has this number."""
        ...

    async def lost(self, count: int, /) -> None:
        """Say that so many events were dropped."""
        ...


class Reader(Protocol):
    """A cursor over a run's events."""

    @property
    def seq(self) -> int:
        """Number of the last event returned."""
        ...

    def __aiter__(self) -> AsyncIterator[Event | EventsLost]:
        """The events, up to the terminal one."""
        ...


class Stoppable(Protocol):
    """A run, as far as signals go."""

    def stop(self, reason: str, /) -> object:
        """End it after the step in hand."""
        ...

    def cancel(self, reason: str, /) -> object:
        """End it at once."""
        ...


class Follower:
    """Hands events to the view, and lets a question wait until the view has shown what came before it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._shown: defaultdict[str, trio.Event] = defaultdict(trio.Event)
        self._skipping = False

    async def follow(self, reader: Reader) -> None:
        """Show all events of the run."""
        async for item in reader:
            if isinstance(item, EventsLost):
                self._skipping = True
                for event in self._shown.values():
                    event.set()
                await self._view.lost(item.count)
            else:
                await self._view.show(item, reader.seq)
                if isinstance(item, ContinuationRequired):
                    self._shown[item.request].set()

    async def wait_shown(self, request: ContinuationRequest) -> None:
        """Wait until the request's own event has been shown, or may have been dropped."""
        if not self._skipping:
            await self._shown[request.request].wait()


async def obey_signals(signals: AsyncIterator[int], run: Stoppable, screen: Screen) -> None:
    """The first interrupt ends the run after the step in hand, the second at once."""
    heard = 0
    async for number in signals:
        heard += 1
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if heard == 1:
            run.stop(f"interrupted by {name}")
            await screen.note(f"{name}: the run ends after the step in hand. Once more: at once.")
        else:
            run.cancel(f"interrupted twice by {name}")
