"""Group commit: one batch is being written, the next one forms meanwhile, and whoever waits waits for all of it.

    touch()  -> the forming batch         each source at most once, however often it touches
    the pump -> asks the sources for their records, in one step, and gives them to the writer
    the writer (a thread) -> one commit -> the pump: written(), after(), flushed()

A batch is written as soon as anybody waits for it, and soon after it began to form where nobody does: records that nobody
waits for are few and large. A source that touches while a batch is being written goes into the next one. So what is on disk is, at any instant, what
all agents had been at one moment. A commit that fails ends the journal: nothing is called durable any more, everybody who
waits is told, and the runtime is stopped by the error.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import attrs
import trio

from protocol.codec import decode
from protocol.errors import JournalError
from protocol.records import Record, StoredAgent, StoredEvents, fold, fold_until
from protocol.spending import AccountFacts

from ._journal import DiskStatistics, KnownAgent, Source

__all__ = ("DiskJournal", "Store")

T = TypeVar("T")
CLOSE_SECONDS = 30.0
IDLE_SECONDS = 60.0
"""How often the store may tidy up."""


class Store(Protocol):
    """The file. Its calls block, and are made by one thread at a time. What they raise is a `JournalError`."""

    def open(self) -> tuple[KnownAgent, ...]:
        """Open or make it; the agents it holds, oldest first."""
        ...

    def budgets(self) -> Mapping[str, bytes]:
        """By the names of budgets, the facts of their last records."""
        ...

    def close(self) -> None:
        """Close it."""
        ...

    def commit(self, records: Sequence[Record]) -> None:
        """Write them all, or none. They are durable when it returns."""
        ...

    def read(self, agent: str) -> Sequence[Record]:
        """The records that bring an agent back: the last whole one and those behind it."""
        ...

    def read_all(self, run: str) -> tuple[str, Sequence[Record]]:
        """All records of the agent that a run belongs to, and its id; an empty id if there is no such run."""
        ...

    def read_events(self, agent: str, max_bytes: int) -> StoredEvents:
        """The newest events of an agent."""
        ...

    def tidy(self) -> bool:
        """Let go of a slice of what need not be kept any longer; whether there is more."""
        ...


@attrs.define(eq=False)
class _Batch:
    """What one commit makes durable, and who waits for it."""

    number: int
    began: float = 0.0
    """When the first of what is in it came."""
    sources: dict[Source, None] = attrs.field(factory=dict[Source, None])
    bytes: int = 0
    done: trio.Event = attrs.field(factory=trio.Event)
    calls: list[Callable[[], None]] = attrs.field(factory=list[Callable[[], None]])


class DiskJournal:
    """A journal over the store that a function makes; `threaded` says whether its calls take long enough to need a thread.

    What nobody waits for is held for `hold_seconds`, for more to come along.
    """

    durable = True

    def __init__(
        self,
        make_store: Callable[[], Store],
        *,
        threaded: bool = True,
        hold_seconds: float = 0.005,
        max_buffer_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._make_store = make_store
        self._threaded = threaded
        self._opened: Store | None = None
        self._hold_seconds = hold_seconds
        self._max_buffer_bytes = max_buffer_bytes
        self._known: tuple[KnownAgent, ...] = ()
        self._budgets: dict[str, AccountFacts] = {}
        self._forming = _Batch(1)
        self._writing: _Batch | None = None
        self._stirred = trio.Event()
        self._wanted = trio.Event()
        self._failure: str | None = None
        self._finished = False
        self._scope = trio.CancelScope()
        self._commits = self._records = 0
        self._writer: _Writer | None = None

    # ------------------------------------------------------------ the seam

    def touch(self, source: Source, size: int = 0) -> int:
        """Take note that `source` has something to write; return the number of the batch that it will be in."""
        batch = self._forming
        if source not in batch.sources:
            if not batch.sources:
                batch.began = trio.current_time()
            batch.sources[source] = None
            self._stirred.set()
        if size:
            batch.bytes += size
            if batch.bytes > self._max_buffer_bytes:
                self._fail(
                    f"the disk does not keep up: {batch.bytes} bytes wait to be written, and at most"
                    f" {self._max_buffer_bytes} may (max_buffer_bytes=)"
                )
        return batch.number

    def after(self, position: int, fn: Callable[[], None]) -> None:
        """Call `fn` once everything up to `position` is durable: at once if it is; never, if the journal fails."""
        batch = self._batch_of(position)
        if batch is None:
            fn()
        else:
            batch.calls.append(fn)
            self._wanted.set()

    async def flushed(self, position: int | None = None) -> None:
        """Wait until everything up to `position` (`None`: all up to now) is durable. Raises `JournalError`."""
        if position is None:
            position = self._forming.number if self._forming.sources else self._forming.number - 1
        batch = self._batch_of(position)
        if batch is None:
            await trio.lowlevel.checkpoint()
        elif self._failure is None and not self._finished:
            if batch is self._forming:
                self._wanted.set()
            await batch.done.wait()
            batch = self._batch_of(position)
        self._raise_failure()
        if batch is not None:
            raise JournalError("the journal has been closed")

    def agents(self) -> tuple[KnownAgent, ...]:
        """The agents that were in it when it was opened, oldest first."""
        return self._known

    def budgets(self) -> Mapping[str, AccountFacts]:
        """What had been used of named budgets by runs that had ended, when it was opened."""
        return self._budgets

    async def load(self, agent: str, max_bytes: int) -> tuple[StoredAgent, StoredEvents]:
        """An agent, and its newest events. Raises `JournalError`."""
        return await self._call(lambda: self._load(agent, max_bytes))

    async def load_step(self, run: str, step: int) -> StoredAgent | None:
        """The agent of a run as it was when a step had ended. Raises `JournalError`."""
        await self.flushed()
        return await self._call(lambda: self._load_step(run, step))

    def statistics(self) -> DiskStatistics:
        """A frozen look at the journal."""
        waiting = sum(
            batch.done.statistics().tasks_waiting for batch in (self._writing, self._forming) if batch is not None
        )
        forming = self._forming
        late = [batch.began for batch in (self._writing, forming) if batch is not None and batch.sources]
        lag_seconds = trio.current_time() - min(late) if late else 0.0
        return DiskStatistics(
            self._commits, self._records, len(forming.sources), forming.bytes, waiting, self._failure, lag_seconds
        )

    # ------------------------------------------------------------ its life

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Inside the block it can be used, while `serve` runs. Raises `JournalError` if it cannot be opened, or has failed."""
        if self._opened is not None or self._commits:
            raise JournalError("this journal has been opened before: each runtime needs one of its own")
        writer = self._writer = _Writer() if self._threaded else None
        try:
            self._known = await self._call(self._open)
            yield
        finally:
            await self._close()  # noqa: ASYNC102  it is shielded and bounded itself
            if writer is not None:
                writer.stop()
            self._raise_failure()  # it is the cause of whatever came of it

    async def serve(self, on_failure: Callable[[], object]) -> None:
        """Write what is touched, until `finish`: cancelling alone does not stop it. A commit that fails is told of."""
        with trio.CancelScope(shield=True) as self._scope:
            await self._pump()
        if self._failure is not None:
            on_failure()

    async def finish(self) -> None:
        """Write what has been touched up to now, within some time, and nothing after it."""
        with trio.move_on_after(CLOSE_SECONDS, shield=True), contextlib.suppress(JournalError):
            await self.flushed()
        self._finished = True
        self._release()
        self._scope.cancel("the journal is closed")

    async def _close(self) -> None:
        store = self._opened
        if store is not None:
            with trio.move_on_after(CLOSE_SECONDS, shield=True), contextlib.suppress(JournalError):
                await self._call(store.close)

    def _open(self) -> tuple[KnownAgent, ...]:
        store = self._make_store()
        known = store.open()
        self._opened = store
        try:
            self._budgets = {name: decode(facts, AccountFacts) for name, facts in store.budgets().items()}
        except ValueError as error:
            raise JournalError(f"the journal holds a record of a budget that cannot be read: {error}") from error
        return known

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise JournalError("this journal is not open")
        return self._opened

    async def _pump(self) -> None:
        """Commit batch after batch."""
        tidied = trio.current_time()
        while self._failure is None:
            with trio.move_on_after(IDLE_SECONDS) if self._threaded else contextlib.nullcontext():
                await self._stirred.wait()
            if not self._forming.sources and self._failure is None:
                while await self._tidy() and not self._forming.sources:
                    pass
                tidied = trio.current_time()
                continue
            if not self._wanted.is_set() and self._hold_seconds:
                with trio.move_on_after(self._hold_seconds):
                    await self._wanted.wait()
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()  # those who are on their way come along
            if self._failure is None:
                await self._commit()
            late = self._threaded and trio.current_time() > tidied + IDLE_SECONDS
            if late and not await self._tidy():  # more of it follows the next commit
                tidied = trio.current_time()
        self._release()

    async def _commit(self) -> None:
        self._stirred, self._wanted = trio.Event(), trio.Event()
        batch, self._forming = self._forming, _Batch(self._forming.number + 1)
        self._writing = batch
        records = [record for source in batch.sources if (record := source.take()) is not None]
        if records:
            try:
                await self._call(lambda: self._store.commit(records))
            except JournalError as error:
                self._fail(str(error))
                return
            self._commits += 1
            self._records += len(records)
        self._writing = None
        for source in batch.sources:
            source.written()
        batch.done.set()
        for fn in batch.calls:
            fn()

    async def _tidy(self) -> bool:
        if self._failure is not None:
            return False
        try:
            return await self._call(self._store.tidy)
        except JournalError as error:
            self._fail(str(error))
            return False

    def _release(self) -> None:
        """Let go on whoever waits: what they wait for does not come."""
        for batch in (self._writing, self._forming):
            if batch is not None:
                batch.done.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise JournalError(self._failure)

    def _fail(self, reason: str) -> None:
        if self._failure is None:
            self._failure = reason
            self._stirred.set()
            self._wanted.set()

    def _batch_of(self, position: int) -> _Batch | None:
        """The batch of that number, if it is not durable yet."""
        if position >= self._forming.number:
            return self._forming
        writing = self._writing
        return writing if writing is not None and position >= writing.number else None

    async def _call(self, fn: Callable[[], T]) -> T:
        if self._writer is not None:
            return await self._writer.call(fn)
        await trio.lowlevel.checkpoint()
        return fn()

    def _load(self, agent: str, max_bytes: int) -> tuple[StoredAgent, StoredEvents]:
        try:
            return fold(agent, self._store.read(agent)), self._store.read_events(agent, max_bytes)
        except ValueError as error:  # msgspec's: the text says what, and where in the record
            raise JournalError(f"the journal holds a record of agent {agent} that cannot be read: {error}") from error

    def _load_step(self, run: str, step: int) -> StoredAgent | None:
        try:
            agent, records = self._store.read_all(run)
            return fold_until(agent, records, run, step) if agent else None
        except ValueError as error:
            raise JournalError(f"the journal holds a record of run {run} that cannot be read: {error}") from error


class _Writer:
    """The thread that makes the store's calls: one of our own, as a lone agent waits a quarter longer for a pool's."""

    def __init__(self) -> None:
        self._jobs = queue.SimpleQueue[Callable[[], None] | None]()
        self._token = trio.lowlevel.current_trio_token()
        threading.Thread(target=self._work, name="onward-journal", daemon=True).start()

    async def call(self, fn: Callable[[], T]) -> T:
        """What `fn` returns or raises; the wait cannot be cancelled, as the disk cannot."""
        done = trio.Event()
        results: list[T] = []
        errors: list[Exception] = []

        def job() -> None:
            try:
                results.append(fn())
            except Exception as error:  # noqa: BLE001  raised where it was asked for
                errors.append(error)
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(done.set)

        self._jobs.put(job)
        with trio.CancelScope(shield=True):
            await done.wait()
        if errors:
            raise errors[0]
        return results[0]

    def stop(self) -> None:
        """Let the thread end when it has done what it was given."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
