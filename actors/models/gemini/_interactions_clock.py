"""The time that one call may take, all its requests, replies and waits included."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import trio

__all__ = ("CallClock",)


class CallClock:
    """A deadline that stands still while the call waits for its consumer.

    What has been received is always handed over: the deadline cuts off what is still to come.
    """

    def __init__(self, seconds: float, *, counts_consumer: bool = True) -> None:
        """Its time begins now. `counts_consumer`: the consumer's time is part of the call's."""
        self.seconds = seconds
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._counts_consumer = counts_consumer

    @contextmanager
    def paused(self) -> Generator[None]:
        """The consumer is waited for."""
        began, deadline = trio.current_time(), self.scope.deadline
        self.scope.deadline = math.inf
        try:
            yield
        finally:
            self.scope.deadline = deadline if self._counts_consumer else deadline + trio.current_time() - began
