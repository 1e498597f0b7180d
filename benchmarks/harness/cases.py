"""Floors and subject as cases to take turns with: one run each, its tool calls counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from .clock import Sample, timed
from .floors import Floor
from .ours import Caller, run_once
from .work import calls_made

__all__ = ("checked", "floor_case", "our_case")


def checked(main: Callable[..., Awaitable[Any]], *args: Any, calls: int) -> Sample:
    """Time one `trio.run`. Raises `AssertionError` unless `add` ran exactly `calls` times in it."""
    before = calls_made()
    sample = timed(lambda: trio.run(main, *args))
    made = calls_made() - before
    assert made == calls, f"{main} made {made} tool calls instead of {calls}"
    return sample


def floor_case(floor: Floor, iterations: int, width: int = 1) -> Callable[[], Sample]:
    """One run of a floor."""
    return lambda: checked(floor, iterations, width, calls=iterations * width)


def our_case(iterations: int, width: int = 1, *, read_events: bool = False) -> Callable[[], Sample]:
    """One run of one agent, its runtime opened and closed around it."""

    async def main() -> None:
        await run_once(iterations, width, model=Caller(iterations, width), read_events=read_events)

    return lambda: checked(main, calls=iterations * width)
