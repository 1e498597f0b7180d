"""Calling the user's functions: under a deadline, and with their failures told from ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import trio

from protocol.errors import OnwardError
from protocol.limits import LimitState
from protocol.run import Failed, Finished, RunEnd
from protocol.stop import StopState, reason_of
from protocol.text import clean
from protocol.views import View

from ._core import RunCore
from ._foreign import FOREIGN, as_failure

__all__ = ("call_user", "failed", "met_condition")


async def call_user(fn: Callable[..., Any], *args: Any, seconds: float) -> Any:
    """Call a plain or async function. Raises what it raises, as an `Exception`; `trio.TooSlowError` after `seconds`."""
    try:
        value = fn(*args)
        if value is None or value is False or not inspect.isawaitable(value):
            return value
        with trio.fail_after(seconds):
            return await value
    except FOREIGN as error:
        failure = as_failure(error)
        if failure is None or failure is error:
            raise
        raise failure from error


def failed(code: str, what: str, error: Exception, *, limit: LimitState | None = None) -> Failed:
    """A run's failure. A foreign error's text stays in the cause: it may hold what clients must not see."""
    told = str(error) if isinstance(error, OnwardError) else f"{what} raised {type(error).__name__}"
    return Failed(error, code, clean(told), limit)


async def met_condition(core: RunCore, finish_reason: str | None) -> RunEnd | None:
    """Ask every stop condition, in order; the first that is met ends the run (S2)."""
    if not core.conditions:
        return None
    state = core.state
    view = StopState(
        steps=View(state.steps),
        messages=core.history.view(),
        usage=core.usage,
        step_number=state.step - 1,
        elapsed_seconds=core.elapsed_seconds,
        context=core.context,
    )
    met: str | None = None
    fault: Failed | None = None
    for condition in core.conditions:
        try:
            verdict = await call_user(condition, view, seconds=core.spec.callback_timeout_seconds)
            reason = reason_of(condition, verdict)
        except Exception as error:  # noqa: BLE001  a condition is foreign code
            fault = fault or failed("stop_condition_error", "a stop condition", error)
        else:
            met = met or reason
    if fault is not None:
        return fault
    if met is None:
        return None
    return Finished("stop_condition", finish_reason or "stop", stop_reason=clean(met))
