"""Opening a runtime, and leaving it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

import trio

from protocol.errors import SpecError
from protocol.events import Event
from protocol.ids import renew_ids

from ..agent import (
    Agent,
    Budget,
    RuntimeLimits,
    Shared,
    StepWatch,
    watching,
)
from ..eventlog import EventsLost, Observer
from ..journal import Journal, MemoryJournal, SQLiteJournal
from ._runtime import Runtime

__all__ = ("OnEvent", "open_runtime")

if hasattr(os, "register_at_fork"):  # where processes can fork: a server that does so before it opens a runtime in each
    os.register_at_fork(after_in_child=renew_ids)

OnEvent: TypeAlias = Callable[[Agent, Event | EventsLost], object]
"""A plain or async function that is told of every event of every agent."""


@contextlib.asynccontextmanager
async def open_runtime(
    *,
    journal: str | os.PathLike[str] | Journal | None = None,
    tool_threads: int = 40,
    event_log_bytes: int = 256 * 1024,
    stop_grace_seconds: float = 5.0,
    budget: Budget | None = None,
    on_event: OnEvent | None = None,
    limits: RuntimeLimits | None = None,
    slow_step_seconds: float | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Open a runtime; leaving the block stops its agents in order.

    On a normal exit, runs that still go on end at their next boundary within `stop_grace_seconds` and are cancelled
    after; on an error they are cancelled at once. A single error of the body leaves the block as itself.

    `journal` is the path of a file, or a `SQLiteJournal(...)`, in which everything is kept that is acknowledged: an agent
    that is spawned with the name of one in it is brought back, and its unfinished run goes on. Leaving the block suspends runs
    then. `JournalError` if it cannot be opened; and out of the block, as soon as it cannot be written any more.

    `on_event(agent, event)` is told of every event of every agent, up to its last, in order and one at a time, by a task of
    its own. A plain function must not block; an async one may take its time: what it has not come to waits in the log, and
    what that drops it gets as `EventsLost`. What it raises is logged. On leaving it has `stop_grace_seconds` to catch up.

    `tool_threads` is how many synchronous tools run at a time; `event_log_bytes` is what each agent keeps of its events for
    readers that fall behind (they are told how many they lost). `budget` is what all its agents draw on together, `limits`
    what else they may take together. Where agents wait for a thread or a model call, they take turns.

    With `slow_step_seconds`, whoever holds up all others for longer than that is told of: in the log, by a `warning` event
    of its run, and in `statistics()`. That takes time in every step of every task of the program: a tenth, roughly.

    Raises `SpecError` for a setting that cannot be right.
    """
    if on_event is not None and not callable(on_event):
        raise SpecError(f"open_runtime(on_event=) must be a function of an agent and an event; it is {on_event!r}")
    shared = Shared.of(limits, tool_threads=tool_threads, budget=budget)
    if journal is None:
        kept: Journal = MemoryJournal()
    elif isinstance(journal, (str, os.PathLike)):
        kept = SQLiteJournal(journal)
    else:
        kept = journal
    with watching(slow_step_seconds) as steps:
        async with (
            kept.opened(),
            _hosting(kept, shared, event_log_bytes, stop_grace_seconds, budget, on_event, steps) as runtime,
        ):
            yield runtime


@contextlib.asynccontextmanager
async def _hosting(
    journal: Journal,
    shared: Shared,
    event_log_bytes: int,
    stop_grace_seconds: float,
    budget: Budget | None,
    on_event: OnEvent | None,
    steps: StepWatch | None,
) -> AsyncGenerator[Runtime, None]:
    failure: Exception | SystemExit | KeyboardInterrupt | None = None
    try:
        async with trio.open_nursery() as nursery:
            home = nursery
            if journal.durable:
                # Nothing waits for it to begin: what is touched before is written when it has.
                nursery.start_soon(journal.serve, nursery.cancel_scope.cancel, name="journal")  # noqa: ASYNC113
                home = await nursery.start(_home)
            runtime = Runtime(
                nursery,
                home,
                journal,
                shared,
                event_log_bytes,
                close_seconds=stop_grace_seconds,
                budget=budget,
                steps=steps,
            )
            observer = None if on_event is None else Observer(on_event)
            if observer is not None:
                await nursery.start(observer.run, name="on_event")
                runtime.tell(observer)
            try:
                yield runtime
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  raised below, as itself
                failure = error
            else:
                await runtime.stop(grace_seconds=stop_grace_seconds)
            finally:
                runtime.close()
                if observer is not None:
                    observer.finish(grace_seconds=stop_grace_seconds)
                if journal.durable:
                    runtime.suspend()
                    await journal.finish()  # noqa: ASYNC102  it is shielded and bounded itself
                home.cancel_scope.cancel("the runtime is closed")
            nursery.cancel_scope.cancel("the runtime is closed")
    except BaseExceptionGroup as group:
        if failure is None:
            raise
        raise BaseExceptionGroup(
            "the body of open_runtime() failed, and so did the runtime", [failure, *group.exceptions]
        ) from None
    if failure is not None:
        raise failure


async def _home(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Where agents live that are written down: what cancels the runtime reaches them only when that has been done."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()
