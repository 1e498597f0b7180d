"""A deadlock is a failure, not a wait: the async tests of these two folders end within an hour of virtual time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

HERE = Path(__file__).parent
BOUNDED = {HERE, HERE / "kit"}


def run_bounded(
    fn: Callable[[], Awaitable[object]],
    *,
    clock: trio.abc.Clock | None = None,
    instruments: Sequence[trio.abc.Instrument] = (),
) -> None:
    """Run a test in virtual time; where everything in it waits, it fails at once."""

    async def main() -> None:
        with trio.fail_after(3600):
            await fn()

    trio.run(main, clock=clock or trio.testing.MockClock(autojump_threshold=0), instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent in BOUNDED and isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.add_marker(pytest.mark.trio(run=run_bounded))
