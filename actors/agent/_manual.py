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
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, final

import attrs

from protocol.errors import SpecError
from protocol.result import StepResult
from protocol.run import Failed, Finished, RunEnd
from protocol.turns import AssistantMessage, Message, ToolResult, Turn

from ..tools import render_error, render_output
from ._callbacks import EndRun, met_condition
from ._calls import answer_calls
from ._core import RunCore
from ._driver import observe, within_time
from ._handle import stopped_by_condition, store, wants_tools
from ._services import Services
from ._star import Drive
from ._think import think

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


@attrs.define(eq=False)
class Driving:
    """What the functions of a loop work on."""

    core: RunCore
    services: Services
    end: RunEnd | None = None


@final
class Loop:
    """A run, as the loop that drives it sees it. Made for the function given to `agent.run(loop=)`."""

    def __init__(self, driving: Driving) -> None:
        self.driving = driving
        """The runtime's own."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation, the turn in hand included."""
        core = self.driving.core
        turn = core.state.turn
        stored = core.history.view()
        return stored if turn is None else (*stored, AssistantMessage(turn.parts))

    @property
    def steps(self) -> Sequence[StepResult]:
        """The finished steps."""
        return tuple(self.driving.core.state.steps)

    def stop(self, reason: str) -> None:
        """End the run as a stop condition would, with this reason. After the first step only: before it, just return."""
        driving = self.driving
        if driving.end is None:
            driving.end = stopped_by_condition(driving.core, reason)


LoopFunction: TypeAlias = Callable[[Loop], Awaitable[object]]


def should_continue(loop: Loop) -> bool:
    """Whether the run goes on: another model call would follow."""
    return loop.driving.end is None


async def generate_step(loop: Loop) -> Turn | None:
    """Make one model call; nothing is executed or stored. `None` if the run has come to its end instead.

    Everything that comes before a model call in a run does so here: the ledger, steering, hooks, the final call.
    """
    core = loop.driving.core
    if loop.driving.end is None:
        if core.state.turn is not None:
            raise SpecError("generate_step: the turn in hand is not stored yet: call append_exchange(loop) first")
        await _do(loop, think(core, loop.driving.services))
    return core.state.turn


async def execute_tools(loop: Loop) -> tuple[ToolResult, ...]:
    """Answer the calls of the turn in hand: the gate or the limit, approvals, the tools. The results, in call order."""
    core = loop.driving.core
    if loop.driving.end is None and wants_tools(core):
        await _do(loop, answer_calls(core, loop.driving.services))
    return tuple([core.state.results[call.id] for call in core.calls if call.id in core.state.results])


async def append_exchange(loop: Loop, results: Mapping[str, Any] | None = None) -> None:
    """Store the turn in hand, with the results of its calls, and close the step.

    `results` are those of calls that were not executed, by id: values as a tool returns them, or exceptions. Raises
    `SpecError`, and stores nothing, if a call has no result or an id is unknown or answered.
    """
    core = loop.driving.core
    if loop.driving.end is not None or core.state.turn is None:
        return
    if wants_tools(core):
        _take_results(core, results or {})
    await _do(loop, store(core))


async def evaluate_stop(loop: Loop) -> str | None:
    """Ask the agent's stop conditions: the reason of the first that is met."""
    core = loop.driving.core
    if loop.driving.end is not None or core.state.final is not None:
        return None
    met = await met_condition(core)
    if isinstance(met, Failed):
        loop.driving.end = met
        return None
    return met


def driver_of(function: LoopFunction) -> Drive:
    """The driver that a user's loop is."""

    async def drive_by_hand(core: RunCore, services: Services) -> RunEnd:
        return await within_time(core, partial(_follow, function, core, services))

    return drive_by_hand


async def _follow(function: LoopFunction, core: RunCore, services: Services) -> RunEnd:
    driving = Driving(core, services)
    await function(Loop(driving))
    if driving.end is not None:
        return driving.end
    word = core.state.steps[-1].finish_reason if core.state.steps else None
    return Finished("caller", word or "stop", stop_reason="the loop returned")


async def _do(loop: Loop, part: Awaitable[RunEnd | None]) -> None:
    try:
        loop.driving.end = await part
    except EndRun as over:
        loop.driving.end = over.end
    if loop.driving.core.acting.on_step is not None:
        await observe(loop.driving.core)


def _take_results(core: RunCore, results: Mapping[str, Any]) -> None:
    waiting = {call.id: call for call in core.calls if call.id not in core.state.results}
    wrong = [str(call) for call in results if call not in waiting] or [call for call in waiting if call not in results]
    if wrong:
        raise SpecError(
            f"append_exchange: each call needs one result: {', '.join(wrong)}; without one are {', '.join(waiting) or 'none'}"
        )
    for call, value in results.items():
        if isinstance(value, Exception):
            core.answer(waiting[call], "error", render_error(value))
        else:
            name, most = waiting[call].name, core.acting.max_tool_output_chars
            core.answer(waiting[call], "ok", render_output(value, tool_name=name, max_chars=most))
