"""The star of a run: its nursery, the four services in it, and the driver as its body.

When the nursery has closed, every service has ended: only then does `finish` settle the run, so that nothing can speak
after the end. A crash of a service fails the run; the next run has a fresh star. A tool that ignores its cancel is
outlived: the watchdog finishes the run after the grace time, and the agent takes no new run until the star has joined.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from protocol.errors import ActorCrashed, ActorGone
from protocol.run import Cancelled, Failed, RunEnd
from protocol.text import clean

from ..kit import Mailbox, Port, run_once
from ._arbiter import Arbiter, ArbiterAsk
from ._budget import BudgetActor, Reserve
from ._core import RunCore
from ._ending import finish
from ._foreign import leaves_of
from ._services import Services
from ._session import Session, Think
from ._threads import ToolThreads
from ._toolbox import Toolbox, ToolboxAsk

__all__ = ("Drive", "run_star", "watch_over")


Drive: TypeAlias = Callable[[RunCore, Services], Awaitable[RunEnd]]
"""What drives a run: the engine's driver, or the user's own loop."""


async def run_star(core: RunCore, threads: ToolThreads, drive: Drive) -> None:
    """Run a run to its end, whatever that is. Raises only what no run may swallow (an interrupt, a cancel)."""
    crash: Failed | None = None
    prefix = f"{core.spec.name}/{core.state.run}"
    budget = Mailbox[Reserve](f"{prefix}/budget", capacity=1, inner=True)
    session = Mailbox[Think](f"{prefix}/session", capacity=1, inner=True)
    toolbox = Mailbox[ToolboxAsk](f"{prefix}/toolbox", capacity=1, inner=True)
    try:
        with core.scope:
            async with trio.open_nursery() as nursery:
                core.nursery = nursery
                nursery.start_soon(run_once, BudgetActor(core.account), budget, name=budget.name)
                nursery.start_soon(run_once, Session(core), session, name=session.name)
                nursery.start_soon(run_once, Toolbox(core, threads), toolbox, name=toolbox.name)

                def open_arbiter() -> Port[ArbiterAsk]:
                    arbiter = Mailbox[ArbiterAsk](f"{prefix}/arbiter", capacity=1, inner=True)
                    nursery.start_soon(run_once, Arbiter(core), arbiter, name=arbiter.name)
                    return arbiter.port

                core.activity.start()
                core.coming_end = await drive(core, Services(budget.port, session.port, toolbox.port, open_arbiter))
                core.activity.finish()  # what is left is bookkeeping: no tool above is timed out for it (N2)
                core.stirred.set()
                nursery.cancel_scope.cancel("the run is over")
    except* Exception as group:  # noqa: BLE001  the boundary of a run
        crash = _crash_of(group)
    finally:
        # A cancel, or an interrupt that passes, wins over what was raised while it was taking effect.
        cancelled = core.scope.cancel_called or trio.current_effective_deadline() == -math.inf or sys.exception()
        finish(core, core.coming_end or (None if cancelled else crash) or _cancelled(core))


def _crash_of(group: ExceptionGroup[Exception]) -> Failed:
    """The cause of a crash: not those who merely waited for the one that crashed."""
    leaves = leaves_of(group)
    causes = [leaf for leaf in leaves if not isinstance(leaf, (ActorCrashed, ActorGone))] or leaves
    cause = causes[0]
    assert isinstance(cause, Exception)
    return Failed(cause, "actor_crashed", clean(f"the run's star crashed: {type(cause).__name__}: {cause}"))


async def watch_over(core: RunCore, grace_seconds: float) -> None:
    """Finish a run that was cancelled, or has come to its end, and whose star does not join in time."""
    try:
        await core.stirred.wait()
    finally:
        with trio.move_on_after(grace_seconds, shield=True):
            await core.over.wait()
        finish(core, core.coming_end or _cancelled(core))


def _cancelled(core: RunCore) -> Cancelled:
    error = sys.exception()
    from_outside = error is None or isinstance(error, trio.Cancelled)
    return Cancelled(core.cancel_reason or ("cancelled from outside" if from_outside else "interrupted"))
