"""Calling the user's functions: under a deadline, and with their failures told from ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import trio

from protocol.errors import LimitReachedError, OnwardError
from protocol.limits import LimitState, finish_reason_for
from protocol.run import Failed, Finished, RunEnd
from protocol.stop import StopState, reason_of
from protocol.text import clean
from protocol.views import View

from ._core import RunCore
from ._foreign import FOREIGN, as_failure

__all__ = ("EndRun", "call_hook", "call_user", "failed", "met_condition", "stop_state")


class EndRun(Exception):
    """The run ends here: raised where several calls lie between the reason and the driver."""

    def __init__(self, end: RunEnd) -> None:
        super().__init__(end)
        self.end = end


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
        if failure is None:
            raise
        if failure is error:
            raise
        raise failure from error


async def call_hook(core: RunCore, name: str, fn: Callable[..., Any], *args: Any) -> Any:
    """Call a hook. Raises `EndRun`: with `HookError`'s end, or a limit's, if that is what left the hook (B2)."""
    try:
        return await call_user(fn, *args, seconds=core.acting.callback_timeout_seconds)
    except LimitReachedError as reached:
        limit = reached.partial.limit
        if limit is None:
            raise EndRun(failed("hook_error", name, reached)) from reached
        end = Finished(limit.name, finish_reason_for(limit.name), limit=limit, tell_limit=True)
        raise EndRun(end) from reached
    except Exception as error:
        raise EndRun(failed("hook_error", f"the hook {name}", error)) from error


def failed(code: str, what: str, error: Exception, *, limit: LimitState | None = None) -> Failed:
    """A run's failure. A foreign error's text stays in the cause: it may hold what clients must not see."""
    told = str(error) if isinstance(error, OnwardError) else f"{what} raised {type(error).__name__}"
    return Failed(error, code, clean(told), limit)


def stop_state(core: RunCore) -> StopState:
    """What conditions and `continue_when` may look at."""
    state = core.state
    return StopState(
        steps=View(state.steps),
        messages=core.history.view(),
        usage=core.usage,
        step_number=state.step - 1,
        elapsed_seconds=core.elapsed_seconds,
        cost=core.cost,
        context=core.context,
    )


async def met_condition(core: RunCore) -> str | Failed | None:
    """Ask every stop condition, in order: the reason of the first that is met; or the failure of one (S2)."""
    if not core.conditions:
        return None
    view = stop_state(core)
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
    return fault or (None if met is None else clean(met))
