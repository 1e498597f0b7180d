"""What the functions of a loop of the user's own are made of: one part of a step at a time, and the end it comes to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import trio

from protocol.errors import SpecError
from protocol.run import RunEnd
from protocol.turns import AssistantMessage, TextPart, ToolCall, ToolResult

from ..tools import OutputUnfit, render_error, render_output
from ._callbacks import EndRun
from ._calls import answer_calls, at_full_window
from ._core import RunCore
from ._driver import observe, wait_for_reader
from ._handle import store, wants_tools
from ._services import Services
from ._think import think

__all__ = (
    "Driving",
    "answer_by_hand",
    "do",
    "keep_text",
    "need_a_step",
    "need_no_turn",
    "need_turn",
    "put_away",
    "results_of",
    "store_turn",
    "think_next",
)

LEFT_TEXT = "Not run: the run ended before this call began."


@attrs.define(eq=False)
class Driving:
    """What the functions of a loop work on."""

    core: RunCore
    services: Services
    end: RunEnd | None = None
    busy: str | None = None
    """The function that is at work."""
    cut_off: bool = False
    """A function was left before it was done, by a cancel: what it began cannot be taken up again."""
    fault: Exception | None = None
    """What a function raised that is the engine's own."""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.end is not None or self.cut_off


Part: TypeAlias = Callable[[RunCore, Services], Awaitable[RunEnd | None]]
"""A part of a step: how it ends the run, or `None`."""


async def do(driving: Driving, name: str, part: Part) -> None:
    """Do a part of a step, one at a time, and keep the end that it comes to."""
    if driving.busy is not None:
        raise SpecError(f"{name}: {driving.busy} is still at work: a loop does one thing after the other")
    driving.busy = name
    try:
        driving.end = await part(driving.core, driving.services)
    except EndRun as over:
        driving.end = over.end
    except trio.Cancelled:
        driving.cut_off = True
        raise
    except Exception as error:
        driving.fault = error
        raise
    finally:
        driving.busy = None
    if driving.core.acting.on_step is not None:
        await observe(driving.core, driving.core.acting)


async def think_next(core: RunCore, services: Services) -> RunEnd | None:
    """Make one model call, when a reader of the steps lets it (M1)."""
    if core.steps_asked is not None:
        await wait_for_reader(core)
    return await think(core, services)


async def store_turn(core: RunCore, _services: Services) -> RunEnd | None:
    """Store the turn in hand, its calls answered."""
    return await store(core)


async def put_away(core: RunCore, _services: Services) -> RunEnd | None:
    """Store a turn that the loop has left in hand."""
    if wants_tools(core):
        for call in core.calls:
            core.answer(call, "not_run", LEFT_TEXT)
    return await store(core)


async def answer_by_hand(core: RunCore, services: Services, *, given: Sequence[ToolResult]) -> RunEnd | None:
    """Take results that the loop made itself, where the limit or the gate lets their calls run."""
    state = core.state
    if state.window_is_full() and state.decision is None:
        end = await at_full_window(core, services)
        if end is not None:
            return end
    decision = state.decision
    if decision is None or decision.goes_on:
        kept = [result for result in given if decision is None or result.call not in decision.discarded]
        if kept:
            state.counted = True
            state.window += 1
            state.tool_iterations += 1
        for result in kept:
            core.record(result)
            tool = core.offered.get(result.name)
            if result.status == "ok" and tool is not None and tool.ends_run:
                core.stop_by_tool("")
    return await answer_calls(core, services)  # those that the gate does not let run


def results_of(core: RunCore, results: Mapping[str, Any]) -> list[ToolResult]:
    """Results that the loop made itself, in call order; each call that was not executed has one."""
    if not isinstance(results, Mapping):
        raise SpecError(f"append_exchange: results must be a mapping from call ids to results; it is {results!r}")
    calls = core.calls if wants_tools(core) else ()
    waiting = [call for call in calls if call.id not in core.state.results]
    ids = [call.id for call in waiting]
    unknown = [str(call) for call in results if call not in ids]
    if unknown:
        raise SpecError(
            f"append_exchange: no result is wanted for {', '.join(unknown)}; wanted are {', '.join(ids) or 'none'}"
        )
    missing = [call for call in ids if call not in results]
    if missing:
        raise SpecError(
            f"append_exchange: {', '.join(missing)} has no result: call execute_tools(loop) first, or give results= by id"
        )
    return [_result_of(core, call, results[call.id]) for call in waiting]


def _result_of(core: RunCore, call: ToolCall, value: Any) -> ToolResult:
    if isinstance(value, Exception):
        return ToolResult(call.id, call.name, "error", render_error(value))
    try:
        text = render_output(value, tool_name=call.name, max_chars=core.acting.max_tool_output_chars)
    except OutputUnfit as error:
        raise SpecError(f"append_exchange: {error}") from error
    return ToolResult(call.id, call.name, "ok", text)


def keep_text(core: RunCore) -> None:
    """Store the text of a turn in hand that the run ends with, as that of any turn that was cut (R3)."""
    if core.state.turn is None or wants_tools(core) or core.log.over:
        return
    if core.text:
        core.history.append(AssistantMessage((TextPart(core.text),), partial=True))
    core.close_step()


def need_turn(core: RunCore, name: str) -> None:
    """Raise `SpecError` if there is no turn in hand."""
    if core.state.turn is None:
        raise SpecError(f"{name}: there is no turn in hand: call generate_step(loop) first")


def need_no_turn(core: RunCore, name: str) -> None:
    """Raise `SpecError` if there is one."""
    if core.state.turn is not None:
        raise SpecError(f"{name}: the turn in hand is not stored yet: call append_exchange(loop) first")


def need_a_step(core: RunCore, name: str) -> None:
    """Raise `SpecError` before the first step is finished."""
    if not core.state.steps:
        raise SpecError(f"{name}: no step is finished yet, and nothing to stop: just return from the loop")
