"""A deadlock is a failure, not a wait: the async tests of these two folders end within an hour of virtual time."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio
import trio.testing

HERE = Path(__file__).parent
BOUNDED = {HERE, HERE / "kit"}


@pytest.fixture
async def bounded(autojump_clock: trio.testing.MockClock) -> AsyncGenerator[None, None]:
    """Cancel the test, and say why, where all of it waits for ever."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail_after_an_hour)
        yield
        nursery.cancel_scope.cancel("the test has ended")


async def fail_after_an_hour() -> None:
    await trio.sleep(3600)
    raise trio.TooSlowError("everything in the test waits")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent in BOUNDED and isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.fixturenames.insert(0, "bounded")
