"""A run's way into its root's stream."""

from __future__ import annotations

from collections.abc import Callable

from protocol.events import RunEvent
from protocol.grammar import Grammar

from ._stream import EventStream

__all__ = ("RunLog",)


class RunLog:
    """A run's way into its root's stream: the grammar refuses, and counts, what may not come."""

    __slots__ = (
        "_admit",
        "_append",
        "agent_path",
        "grammar",
        "last",
        "muted",
        "number",
        "refused",
        "run",
        "stream",
        "tap",
    )

    def __init__(self, stream: EventStream, run: str, agent_path: tuple[str, ...] = ()) -> None:
        self.stream = stream
        self.run = run
        self.agent_path = agent_path
        self.grammar = Grammar()
        self.refused = 0
        """Events that came where none may."""
        self.last: int | None = None
        """Number of the terminal event, when it is out."""
        self.number = 0
        """Number of the run's last event."""
        self.muted = False
        """The run is suspended: what it would say now is not said."""
        self.tap: Callable[[RunEvent], object] | None = None
        """Told of each event, once it has its number."""
        self._admit: Callable[[RunEvent], bool] = self.grammar.admit
        self._append = stream.append
        stream.know(run, None)

    @property
    def over(self) -> bool:
        """Whether the terminal event is out."""
        return self.last is not None

    def mute(self) -> None:
        """Say nothing more: the run is suspended, and what it says from now on did not happen."""
        self.muted = True
        self._admit = _nothing

    def emit(self, event: RunEvent) -> bool:
        """Append an event of this run. Never raises; returns whether it could come."""
        if not self._admit(event):
            self.refused += not self.muted
            return False
        self.number = number = self._append(event)
        if self.tap is not None:
            self.tap(event)
        if self.grammar.phase == "over":
            self.last = number
            self.stream.know(self.run, event.type)
        return True


def _nothing(_event: RunEvent) -> bool:
    return False
