"""Group commit: who waits for what, and what is said when a commit fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, open_runtime
from actors.journal import DiskJournal, Source
from actors.models.scripted import Scripted
from protocol.errors import JournalError
from protocol.records import Record
from tests.support.disk import FakeDisk, journal_on


@attrs.define(eq=False)
class Notes:
    """A source that writes numbers."""

    name: str
    number: int = 0
    shown: int = 0

    def take(self) -> Record:
        self.number += 1
        return Record(self.name, self.number, 1, str(self.number).encode(), b"")

    def written(self) -> None:
        self.shown = self.number


async def during(journal: DiskJournal, fn: Callable[[], Awaitable[None]]) -> None:
    async with journal.opened(), trio.open_nursery() as nursery:
        nursery.start_soon(journal.serve, nursery.cancel_scope.cancel)
        await fn()
        await journal.finish()


async def test_a_flush_waits_for_what_was_said(autojump_clock: trio.testing.MockClock) -> None:
    """After it, everything up to then is on the disk, and shown; `after` was called."""
    disk = FakeDisk()
    journal = journal_on(disk)
    one, other = Notes("one"), Notes("other")
    called: list[str] = []

    async def main() -> None:
        position = journal.touch(one)
        journal.touch(other)
        journal.touch(one)
        journal.after(position, lambda: called.append("after"))
        called.append("said")
        await journal.flushed()

    await during(journal, main)

    assert ["said", "after"] == called
    assert [["one", "other"]] == [[record.agent for record in batch] for batch in disk.batches]
    assert (1, 1) == (one.shown, other.shown)


async def test_what_nobody_waits_for_is_held_a_moment(autojump_clock: trio.testing.MockClock) -> None:
    """Several changes in that time make one record."""
    disk = FakeDisk()
    journal = DiskJournal(lambda: disk, threaded=False, hold_seconds=1)
    notes: Source = Notes("one")

    async def main() -> None:
        for _ in range(3):
            journal.touch(notes)
            await trio.sleep(0.25)
        assert disk.batches == []
        await trio.sleep(1)
        assert len(disk.batches) == 1

    await during(journal, main)

    assert 1 == journal.statistics().commits


async def test_a_flush_of_nothing_does_not_wait(autojump_clock: trio.testing.MockClock) -> None:
    """It is a checkpoint all the same."""
    journal = journal_on(FakeDisk())

    async def main() -> None:
        with trio.testing.assert_checkpoints():
            await journal.flushed()

    await during(journal, main)

    assert 0 == journal.statistics().commits


async def test_who_waits_for_a_commit_that_fails_is_told(autojump_clock: trio.testing.MockClock) -> None:
    """And so is whoever comes later; nothing is called durable any more."""
    journal = journal_on(FakeDisk(full_at=1))
    notes = Notes("one")
    told: list[str] = []

    async def main() -> None:
        journal.touch(notes)
        await journal.flushed()
        journal.touch(notes)
        for _ in range(2):
            try:
                await journal.flushed()
            except JournalError as error:
                told.append(str(error))

    with pytest.raises(JournalError, match="the disk is full"):
        await during(journal, main)

    assert ["the disk is full"] * 2 == told
    assert 1 == notes.shown


async def test_more_than_may_wait_is_a_failure(autojump_clock: trio.testing.MockClock) -> None:
    """A disk that does not keep up ends the journal, and says why: nothing is forgotten in silence."""
    journal = DiskJournal(lambda: FakeDisk(), threaded=False, max_buffer_bytes=1000)

    async def main() -> None:
        journal.touch(Notes("one"), 1001)
        await trio.sleep(1)

    with pytest.raises(JournalError, match="does not keep up: 1001 bytes wait"):
        await during(journal, main)


async def test_a_runtime_ends_with_its_journal(autojump_clock: trio.testing.MockClock) -> None:
    """The error leaves `open_runtime` as itself, and what was acknowledged before is on the disk."""
    disk = FakeDisk(full_at=2)
    answers: list[str] = []

    async def main() -> None:
        async with open_runtime(journal=journal_on(disk)) as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted(["one", "two", "three"])))
            for _ in range(3):
                async with agent.run("go") as run:
                    answers.append((await run.result()).text)

    with pytest.raises(JournalError, match="the disk is full"):
        await main()

    assert [] == answers
    assert 2 == len(disk.batches)


async def test_a_journal_that_cannot_be_opened(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing begins."""

    def broken() -> FakeDisk:
        raise JournalError("no such folder")

    with pytest.raises(JournalError, match="no such folder"):
        async with open_runtime(journal=DiskJournal(broken, threaded=False)):
            raise AssertionError("it must not begin")


async def test_an_error_of_the_body_leaves_as_itself(autojump_clock: trio.testing.MockClock) -> None:
    """With a journal as without one."""
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        async with open_runtime(journal=journal_on(FakeDisk())) as runtime:
            await runtime.spawn(AgentSpec(model=Scripted([])))
            raise error

    assert error is caught.value
