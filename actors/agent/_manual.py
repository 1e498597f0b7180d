"""A loop of the user's own, written with the functions that the engine uses (M4).

    async def my_loop(loop: Loop) -> None:
        while should_continue(loop):
            await generate_step(loop)
            if unanswered_calls(loop.messages):
                await execute_tools(loop)
            await append_exchange(loop)
            if should_continue(loop) and (reason := await evaluate_stop(loop)):
                loop.stop(reason)

    async with agent.run("Audit this folder", loop=my_loop) as run: ...

It takes the place of the driver, inside the same star: the ledger, the gate, approvals, hooks, the wall clock, steering and
cancel hold as ever, and the events are the same. Once the run has come to its end (a limit, a failure, an answer),
`should_continue` is False and the other functions do nothing more.

The run is over when the function returns. What it leaves in hand is put away as the engine would: a turn is stored, calls
without a result are not run. What it raises fails the run, unless the run had come to its end before.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, final

import trio

from protocol.errors import LimitReachedError, SpecError
from protocol.limits import finish_reason_for
from protocol.result import StepResult
from protocol.run import Failed, FinalCall, Finished, RunEnd
from protocol.text import clean, is_visible
from protocol.turns import AssistantMessage, Message, ToolCall, ToolResult, Turn

from ..logs import get_logger
from ._callbacks import failed, met_condition
from ._calls import answer_calls
from ._core import RunCore
from ._driver import within_time
from ._foreign import FOREIGN, as_failure
from ._handle import stopped_by_condition, wants_tools
from ._manual_parts import (
    Driving,
    answer_by_hand,
    do,
    keep_text,
    need_a_step,
    need_no_turn,
    need_turn,
    put_away,
    results_of,
    store_turn,
    think_next,
)
from ._services import Services
from ._star import Drive

__all__ = (
    "Loop",
    "LoopFunction",
    "append_exchange",
    "driver_of",
    "evaluate_stop",
    "execute_tools",
    "generate_step",
    "should_continue",
)

logger = get_logger(__name__)


@final
class Loop:
    """A run, as the loop that drives it sees it. Made for the function given to `agent.run(loop=)`."""

    def __init__(self, driving: Driving) -> None:
        self.driving = driving
        """The runtime's own."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation, the turn in hand included, with those of its calls that may run."""
        core = self.driving.core
        turn, outcome = core.state.turn, core.state.outcome
        stored = core.history.view()
        if turn is None:
            return stored
        parts = turn.parts
        if not wants_tools(core) or (outcome is not None and outcome.cut):
            parts = tuple([part for part in parts if not isinstance(part, ToolCall)])
        return (*stored, AssistantMessage(parts)) if parts else stored

    @property
    def steps(self) -> Sequence[StepResult]:
        """The finished steps."""
        return tuple(self.driving.core.state.steps)

    def stop(self, reason: str) -> None:
        """End the run as a stop condition would, with this reason; an agent with `finalize_on_stop` makes its final call.

        Between two steps. To end it anywhere else, return.
        """
        driving, state = self.driving, self.driving.core.state
        if driving.over or state.final is not None:
            return
        if not isinstance(reason, str) or not is_visible(reason):
            raise SpecError(f"loop.stop(reason): say why the run ends; it is {reason!r}")
        need_no_turn(driving.core, "loop.stop")
        need_a_step(driving.core, "loop.stop")
        end = stopped_by_condition(driving.core, clean(reason))
        if driving.core.spec.finalize_on_stop is None:
            driving.end = end
        else:
            state.final = FinalCall(None, stop_reason=end.stop_reason, stop_finish=end.finish_reason)


LoopFunction: TypeAlias = Callable[[Loop], Awaitable[object]]
"""An async function that drives a run."""


def should_continue(loop: Loop) -> bool:
    """Whether the run goes on: another model call would follow."""
    return not loop.driving.over


async def generate_step(loop: Loop) -> Turn | None:
    """Make one model call; nothing is executed or stored. `None` if the run has come to its end instead.

    Everything that comes before a model call in a run does so here: the ledger, steering, hooks, the final call. Raises
    `SpecError` if a turn is in hand already.
    """
    driving = loop.driving
    if not driving.over:
        need_no_turn(driving.core, "generate_step")
        await do(driving, "generate_step", think_next)
    return driving.core.state.turn


async def execute_tools(loop: Loop) -> tuple[ToolResult, ...]:
    """Answer the calls of the turn in hand: the gate or the limit, approvals, the tools. The results, in call order.

    Raises `SpecError` if no turn is in hand.
    """
    driving = loop.driving
    core = driving.core
    if not driving.over:
        need_turn(core, "execute_tools")
        if wants_tools(core):
            await do(driving, "execute_tools", answer_calls)
    return tuple([core.state.results[call.id] for call in core.calls if call.id in core.state.results])


async def append_exchange(loop: Loop, results: Mapping[str, Any] | None = None) -> None:
    """Store the turn in hand, with the results of its calls, and close the step.

    `results` are those of calls that the loop has run itself, by id: values as a tool returns them, or exceptions. They
    are a round like any other: where the window is full, the limit or the gate comes first, and what it does not let
    run has no other result. Raises `SpecError`, and stores nothing, if a call has no result, an id is unknown or
    answered, a value is none that a tool may return, or no turn is in hand.
    """
    driving = loop.driving
    core = driving.core
    if driving.over:
        return
    need_turn(core, "append_exchange")
    assert core.state.outcome is not None
    if wants_tools(core) and core.state.outcome.cut:  # none of its calls may run, whoever would run them
        await do(driving, "append_exchange", answer_calls)
    else:
        given = results_of(core, {} if results is None else results)
        if given:
            await do(driving, "append_exchange", partial(answer_by_hand, given=given))
    if not driving.over:
        await do(driving, "append_exchange", store_turn)


async def evaluate_stop(loop: Loop) -> str | None:
    """Ask the agent's stop conditions: the reason of the first that is met. Raises `SpecError` inside a step."""
    driving = loop.driving
    core = driving.core
    if driving.over or core.state.final is not None or core.state.stop_requested is not None:
        return None
    need_no_turn(core, "evaluate_stop")
    need_a_step(core, "evaluate_stop")
    met = await met_condition(core)
    if isinstance(met, Failed):
        driving.end = met
        return None
    return met


def driver_of(function: LoopFunction) -> Drive:
    """The driver that a user's loop is. Raises `SpecError` for what is no function."""
    if not callable(function):
        raise SpecError(f"loop must be an async function of a Loop, or None for the engine's own; it is {function!r}")

    async def drive_by_hand(core: RunCore, services: Services) -> RunEnd:
        driving = Driving(core, services)
        try:
            end = await within_time(core, partial(_follow, function, driving))
        finally:
            keep_text(core)
        driving.end = driving.end or end  # what it came to first, whatever cut the loop after that
        return driving.end

    return drive_by_hand


async def _follow(function: LoopFunction, driving: Driving) -> RunEnd:
    core = driving.core
    try:
        running: object = function(Loop(driving))
        if not inspect.isawaitable(running):
            raise SpecError("loop must be an async function of a Loop: write `async def`")
        await running
    except FOREIGN as error:
        failure = as_failure(error)
        if failure is None or driving.fault is not None:
            raise
        await trio.lowlevel.checkpoint_if_cancelled()  # a cut wins over what was raised while it took effect
        if driving.end is None:
            return _failure(failure)
        logger.exception("a loop failed after the end of its run", agent_name=core.spec.name)
        core.warn("loop_failed", f"the loop raised {type(failure).__name__} after the run had come to its end")
    if driving.fault is not None:
        raise driving.fault
    if not driving.over and core.state.turn is not None:
        await do(driving, "the loop", put_away)
    word = core.state.steps[-1].finish_reason if core.state.steps else None
    why = "the loop cut off a step of its own" if driving.cut_off else "the loop returned"
    return driving.end or Finished("caller", word or "stop", stop_reason=why)


def _failure(error: Exception) -> RunEnd:
    """How a run ends whose loop raised; a helper call that the limits refused is the limit, as with hooks (B2)."""
    limit = error.partial.limit if isinstance(error, LimitReachedError) else None
    if limit is not None:
        return Finished(limit.name, finish_reason_for(limit.name), limit=limit, tell_limit=True)
    return failed("loop_error", "the loop", error)
