"""The tasks of a run, started in its agent's nursery."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from ._context import RunContext, current_activity, current_run
from ._core import RunCore
from ._observed import tell_end
from ._star import Drive, run_star, watch_over
from ._threads import ToolThreads

__all__ = ("Launched", "launch")


@attrs.frozen(eq=False)
class Launched:
    """A run, and what it needs to go."""

    core: RunCore
    context: RunContext
    agent: str
    """Its agent's id."""
    driver: Drive
    threads: ToolThreads


def launch(nursery: trio.Nursery, run: Launched, release: Callable[[], object]) -> None:
    """Start a run; `release` is called when all is over.

    The tasks start in the caller's context: the run, its tools and its spans see the caller's context variables.
    """
    core = run.core
    name = core.spec.name
    tokens = current_run.set(run.context), current_activity.set(core.activity)
    try:
        nursery.start_soon(_serve, run, release, name=f"{name}/{core.run}")
        nursery.start_soon(watch_over, core, core.spec.cancel_grace_seconds, name=f"{name}/watchdog")
    finally:
        current_run.reset(tokens[0])
        current_activity.reset(tokens[1])


async def _serve(run: Launched, release: Callable[[], object]) -> None:
    core = run.core
    try:
        await run_star(core, run.threads, run.driver)
    finally:
        if core.spec.on_run_end is not None:
            # The hook's own bound is shorter: that it was too slow is told.
            with trio.move_on_after(core.spec.callback_timeout_seconds + 1, shield=True):
                await tell_end(core, run.context.stream, run.agent)
        core.closed.set()
        release()
