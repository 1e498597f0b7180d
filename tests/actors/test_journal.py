"""The journal's seam, where there is none: everything is durable the moment it is said, and nobody waits."""

from __future__ import annotations

import pytest
import trio.testing

from actors.journal import Journal, MemoryJournal
from protocol.records import Record


class Silent:
    """A source that has nothing to say."""

    def take(self) -> Record | None:
        return None

    def written(self) -> None:
        pass


def test_it_keeps_nothing_and_calls_at_once() -> None:
    """`after` calls synchronously, whatever the position."""
    journal: Journal = MemoryJournal()
    order: list[str] = []
    position = journal.touch(Silent())
    journal.after(position, lambda: order.append("durable"))
    order.append("said")

    assert ["durable", "said"] == order
    assert not journal.durable


@pytest.mark.parametrize("position", [None, 0, 1000])
async def test_a_flush_is_a_checkpoint(position: int | None) -> None:
    """What may wait with a disk always checkpoints without one: a program behaves the same with both."""
    with trio.testing.assert_checkpoints():
        await MemoryJournal().flushed(position)
