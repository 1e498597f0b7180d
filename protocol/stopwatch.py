"""Time that counts only while somebody works: a limit's or a tool's, with the waits for a person left out (B5, N3).

A stopwatch runs while at least one activity that drives it is going on. A run is an activity, and so is the body of
each of its tool calls; while a run waits for its tools, they are what is going on. A body that has started a run of its
own delegates: as long as that run lives, only what the run does counts. So a tool that waits for its agent, which waits
for a person, stands still, up to the root.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

__all__ = ("Activity", "Stopwatch")

_ROUNDING = 1e-6  # seconds: a deadline that has passed by the clock is passed by the sum, too


@attrs.define(eq=False)
class Stopwatch:
    """Counts seconds of work towards a limit."""

    limit: float
    """Seconds."""
    clock: Callable[[], float]
    """Monotonic seconds."""
    watchers: list[Callable[[], None]] = attrs.field(factory=list[Callable[[], None]])
    """Called whenever `deadline` has changed."""
    _working: int = 0
    _used: float = 0.0
    _since: float = 0.0

    @property
    def used(self) -> float:
        """Seconds of work up to now."""
        return self._used + (self.clock() - self._since if self._working else 0.0)

    @property
    def deadline(self) -> float | None:
        """When the limit is reached if work goes on, on the clock; `None` while nobody works."""
        return self._since + self.limit - self._used if self._working else None

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self.used >= self.limit - _ROUNDING

    def begin(self) -> None:
        """One more activity goes on."""
        self._working += 1
        if self._working == 1:
            self._since = self.clock()
            self._tell()

    def end(self) -> None:
        """One activity less."""
        if self._working == 1:
            self._used = self.used
        self._working -= 1
        if not self._working:
            self._tell()

    def take_up(self, limit: float, used: float) -> None:
        """Go on from a limit and seconds of work that were written down."""
        self.limit, self._used = limit, used
        self._tell()

    def extend(self, seconds: float) -> None:
        """Raise the limit."""
        self.limit += seconds
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self.watchers):
            watcher()


@attrs.define(eq=False)
class Activity:
    """Something that works or waits, and the stopwatches it drives."""

    watches: tuple[Stopwatch, ...]
    _works: bool = False
    _waits: int = 0
    _delegates: int = 0
    _over: bool = False

    def start(self) -> None:
        """Begin to work."""
        self._settle()

    def wait(self) -> None:
        """All it does from now on is wait for a decision or a caller, or others do its work; waits may nest."""
        self._waits += 1
        if self.watches:
            self._settle()

    def resume(self) -> None:
        """One wait is over."""
        self._waits -= 1
        if self.watches:
            self._settle()

    def delegate(self) -> None:
        """It has started a run, whose work counts in place of its own."""
        self._delegates += 1
        self._settle()

    def take_back(self) -> None:
        """A run that it started is gone."""
        self._delegates -= 1
        self._settle()

    def finish(self) -> None:
        """It is over, for good."""
        self._over = True
        self._settle()

    def _settle(self) -> None:
        works = not (self._over or self._waits or self._delegates)
        if works == self._works:
            return
        self._works = works
        for watch in self.watches:
            (watch.begin if works else watch.end)()
