"""The driver: what a run does, in order (loop.md section 3). Straight-line code over `RunState`.

    loop:
        no turn in hand, and none to follow up?  think: reserve - final? - steering - hooks - the model call
        then handle it:   gate or limit - tools - store the exchange - conditions

Each function returns how the run ends, or `None` to go on. All that must outlive an await stands in the state, and
that first question is the whole of re-entry: a state restored with a turn goes on at its gate or its tools.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from protocol.limits import finish_reason_for
from protocol.run import Finished, RunEnd
from protocol.stopwatch import Stopwatch

from ..logs import get_logger
from ._callbacks import EndRun, call_user
from ._calls import answer_calls
from ._core import RunCore
from ._handle import settle, wants_tools
from ._park import park
from ._services import Services
from ._spec import AgentSpec
from ._think import think

__all__ = ("drive", "observe", "wait_for_reader", "within_time")

logger = get_logger(__name__)


def drive(core: RunCore, services: Services) -> Awaitable[RunEnd]:
    """Drive the run to its end, and say which that is."""
    return within_time(core, partial(_steps, core, services))


def within_time(core: RunCore, steps: Callable[[], Awaitable[RunEnd]]) -> Awaitable[RunEnd]:
    """Take the steps of a run; when its time is over, what is running is cut (B5).

    Not a coroutine itself: where time is not limited there is no layer between a step and the star.
    """
    limits = [account.stopwatch for account in core.account.chain if account.stopwatch is not None]
    return _within(core, limits, steps) if limits else steps()


async def _within(core: RunCore, limits: list[Stopwatch], steps: Callable[[], Awaitable[RunEnd]]) -> RunEnd:
    with trio.CancelScope() as scope:

        def move() -> None:
            scope.deadline = min(
                (deadline for watch in limits if (deadline := watch.deadline) is not None), default=math.inf
            )

        for watch in limits:
            watch.watchers.append(move)
        try:
            move()
            return await steps()
        finally:
            for watch in limits:
                watch.watchers.remove(move)
    limit = core.time_is_up
    assert limit is not None
    return Finished(limit.name, finish_reason_for(limit.name), limit=limit, tell_limit=True)


async def _steps(core: RunCore, services: Services) -> RunEnd:
    state = core.state
    while True:
        end: RunEnd | None = None
        acting = core.acting
        try:
            if core.parking:
                await park(core)
            if state.turn is None and state.stored is None:
                end = await _next_turn(core, services)
            if end is None and wants_tools(core):
                end = await answer_calls(core, services)
            if end is None:
                end = await settle(core)
        except EndRun as over:
            end = over.end
        if end is not None:
            core.coming_end = end
            core.activity.finish()  # what is left is bookkeeping: no tool above is timed out for it (N2)
        if acting.on_step is not None:
            await observe(core, acting)
        if end is not None:
            return end


async def _next_turn(core: RunCore, services: Services) -> RunEnd | None:
    if core.steps_asked is not None:
        await wait_for_reader(core)
    return await think(core, services)


async def wait_for_reader(core: RunCore) -> None:
    """Hold the loop until a reader of `run.steps()` asks for the next step (M1)."""
    core.activity.wait()
    try:
        while core.steps_asked is not None and len(core.state.steps) >= core.steps_asked:
            if core.state.stop_requested is not None:
                return
            await core.steps_stirred.wait()
    finally:
        core.activity.resume()


async def observe(core: RunCore, acting: AgentSpec) -> None:
    """Tell the `on_step` of the agent that made them of the steps it has not seen; what it raises is an event and changes nothing (H4)."""
    hook = acting.on_step
    assert hook is not None
    for step in core.state.steps[core.observed :]:
        core.observed += 1
        try:
            await call_user(hook, step, seconds=acting.callback_timeout_seconds)
        except Exception as error:
            logger.exception("on_step failed", agent_name=acting.name)
            core.warn("observer_failed", f"on_step raised {type(error).__name__}; the run goes on")
