"""Results that the caller of a run gives for its own tools (T7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from protocol.errors import RunOver, SubmissionRefused
from protocol.events import PendingCall
from protocol.turns import ToolResult

from ..tools import OutputUnfit, render_error, render_output
from ._core import RunCore

__all__ = ("submit", "waiting_calls")


def waiting_calls(core: RunCore) -> tuple[PendingCall, ...]:
    """The calls whose results the run waits for."""
    pause = core.state.pause
    if pause is None or core.over.is_set():
        return ()
    return tuple([call for call in pause.calls if call.id not in pause.results])


def submit(core: RunCore, results: Mapping[str, Any]) -> None:
    """Take results; with the last one the run goes on. Raises `SubmissionRefused` and `RunOver`."""
    if not isinstance(results, Mapping):
        raise SubmissionRefused(f"submit takes a mapping from call ids to results; it is {type(results).__name__}")
    if core.over.is_set():
        raise RunOver(f"run {core.run} has ended and takes no more results")
    pause = core.state.pause
    waiting = {call.id: call for call in waiting_calls(core)}
    unknown = [str(call) for call in results if call not in waiting]
    if pause is None or unknown:
        raise SubmissionRefused(
            f"not waited for: {', '.join(unknown) or 'anything'}; waited for are {', '.join(waiting) or 'none'}"
        )
    most = core.acting.max_tool_output_chars
    given = {call: _result_of(waiting[call], value, most) for call, value in results.items()}
    pause.results.update(given)
    core.keep()
    if len(pause.results) == len(pause.calls):
        core.rests = trio.Event()
        core.submitted.set()
        core.submitted = trio.Event()


def _result_of(call: PendingCall, value: Any, max_chars: int) -> ToolResult:
    if isinstance(value, Exception):
        return ToolResult(call.id, call.name, "error", render_error(value))
    try:
        return ToolResult(call.id, call.name, "ok", render_output(value, tool_name=call.name, max_chars=max_chars))
    except OutputUnfit as error:
        raise SubmissionRefused(str(error)) from error
