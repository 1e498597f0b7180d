"""The body of one tool call: entered, timed, and left with a result, whatever way it is left."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from types import CoroutineType
from typing import Any, cast

import attrs
import msgspec
import trio

from protocol.errors import FailRun, StopRun, ToolError
from protocol.events import ToolStarted
from protocol.history import INTERRUPTED_TEXT
from protocol.stopwatch import Activity, Stopwatch
from protocol.text import clean, cut_middle
from protocol.turns import ToolResult, ToolStatus

from ..tools import OutputUnfit, render_error, render_output
from ._context import current_activity
from ._core import RunCore
from ._ending import TIME_TEXT
from ._foreign import FOREIGN, as_failure
from ._probe import RunProbe, ToolProbe
from ._resolve import Ready
from ._threads import ToolThreads

__all__ = ("Body", "ToolTimedOut")


_COROUTINE: Any = CoroutineType
THREAD_TEXT = "Interrupted before it ended: its thread may still run, and it may have had an effect."


class ToolTimedOut(ToolError):
    """What `proceed()` raises when the body took longer than it may."""


@attrs.define(eq=False)
class Body:
    """A call that may run, and where."""

    core: RunCore
    threads: ToolThreads
    item: Ready
    batch: trio.CancelScope
    """Of all calls of the turn: cancelled where one of them fails the run."""

    async def run(self) -> None:
        """Enter the body and record its result."""
        # A task that has just been started runs up to its first checkpoint even where it is cancelled.
        await trio.lowlevel.checkpoint_if_cancelled()
        status: ToolStatus = "interrupted"
        text = THREAD_TEXT if self.item.tool.in_thread else INTERRUPTED_TEXT
        if self.core.journal.durable:
            await self.announce()
        self.enter()
        try:
            status, text = await self._probed_outcome()
        finally:
            self.record(status, text)

    async def announce(self) -> None:
        """Have it on disk that the body may be entered, if that was not written with the others that start together."""
        entering = self.core.state.entering
        if self.item.call.id not in entering:
            entering.append(self.item.call.id)
            await self.core.barrier()

    def enter(self) -> None:
        """Count the body, and say that it is entered."""
        core, call = self.core, self.item.call
        core.state.tool_calls += 1
        core.bodies_allowed -= 1
        core.log.emit(ToolStarted(run=core.run, agent_path=core.path, call=call.id, name=call.name))

    def record(self, status: ToolStatus, text: str) -> None:
        """Enter the result of a body that was entered."""
        call = self.item.call
        if status == "interrupted" and self.core.time_is_up is not None:
            status, text = "timed_out", TIME_TEXT
        if self.item.edited:
            shown = cut_middle(msgspec.json.encode(self.item.shown).decode(), 1000)
            text = f"(The arguments were changed before it ran: {shown})\n{text}"
        self.core.record(ToolResult(call.id, call.name, status, text, True))

    def _probed_outcome(self) -> Coroutine[Any, Any, tuple[ToolStatus, str]]:
        probe = self.core.probe
        return self._outcome() if probe is None else self._outcome_in(probe)

    async def _outcome_in(self, probe: RunProbe) -> tuple[ToolStatus, str]:
        with self._probe(probe) as span:
            status, text = await self._outcome()
            span.came(status, text)
            return status, text

    def _probe(self, probe: RunProbe) -> ToolProbe:
        call = self.item.call
        return probe.tool_call(call.id, call.name, self.item.shown)

    async def _outcome(self) -> tuple[ToolStatus, str]:
        tool = self.item.tool
        try:
            if tool.in_thread:
                # The result is made text in the thread too: a huge one would hold up everybody here.
                text = await self.timed(partial(self._in_thread, lambda: self.render(self._call())))
            elif self._is_timed():
                text = self.render(await self.timed(self._in_task))
            else:  # the same, without the layers between: this is the path of most calls
                called: Any = self._call()
                made: Awaitable[Any] = called if type(called) is _COROUTINE else _settled(called)
                text = self.render(await made)
        except FOREIGN as error:
            return self.outcome_of(error)
        return self.succeed(text)

    def succeed(self, text: str) -> tuple[ToolStatus, str]:
        """The outcome of a body that returned."""
        if self.item.tool.ends_run:
            self.core.stop_by_tool("")
        return "ok", text

    def outcome_of(self, error: BaseException) -> tuple[ToolStatus, str]:
        """The outcome of a body that raised. Raises what no tool may swallow."""
        failure = as_failure(error)
        match failure:
            case None:
                raise _of_others(error)
            case OutputUnfit():
                return "error", clean(str(failure))
            case ToolTimedOut():
                return "timed_out", str(failure)
            case StopRun(text=text):
                self.core.stop_by_tool(text)
                return "ok", clean(text) or "The run is stopped."
            case FailRun(cause=cause):
                self.core.failure = self.core.failure or cause
                self.batch.cancel("a tool failed the run")
                return "error", render_error(cause)
            case _:
                return "error", render_error(error)

    async def value(self) -> Any:
        """What the body returns, raising what it raises."""
        probe = self.core.probe
        if probe is None:
            return await self._value()
        with self._probe(probe) as span:
            value = await self._value()
            span.came("ok", "")
            return value

    async def _value(self) -> Any:
        return await self.timed(partial(self._in_thread, self._call) if self.item.tool.in_thread else self._in_task)

    async def timed(self, fn: Callable[[], Awaitable[Any]]) -> Any:
        """Call `fn` within the tool's time, which stands still while its agent waits for a decision (N3)."""
        core = self.core
        seconds = self.item.tool.timeout_seconds or core.acting.tool_timeout_seconds
        watches = core.activity.watches
        if not self._is_timed():
            return await fn()
        with trio.CancelScope() as scope, _working(watches, seconds, scope):
            return await fn()
        assert scope.cancelled_caught
        raise ToolTimedOut(
            f"The tool {self.item.tool.name} timed out after {seconds:g} seconds; it may have had an effect."
        )

    def _is_timed(self) -> bool:
        core = self.core
        timeout = self.item.tool.timeout_seconds or core.acting.tool_timeout_seconds
        return timeout is not None or bool(core.activity.watches)

    async def _in_task(self) -> Any:
        return await _settled(self._call())

    async def _in_thread(self, fn: Callable[[], Any]) -> Any:
        return await self.threads.run(fn, self.core.root, self._left_behind)

    def _call(self) -> Any:
        return self.item.tool.call(self.item.arguments)

    def render(self, value: object) -> str:
        """The text of a value that the tool returned. Raises `OutputUnfit`."""
        limit = self.core.acting.max_tool_output_chars
        return render_output(value, tool_name=self.item.tool.name, max_chars=limit)

    def _left_behind(self) -> None:
        name = self.item.tool.name
        text = f"the thread of {name} ignores that its call is over and still runs; what it returns is dropped"
        self.core.warn("thread_abandoned", text, self.item.call.id)


async def _settled(value: Any) -> Any:
    if not inspect.isawaitable(value):
        return value
    result: Any = await value
    return result


def _of_others(error: BaseException) -> BaseException:
    """A cancel or an interrupt, without the errors that a body raised while it took effect: those are its own."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return group.split(Exception)[1] or group


@contextmanager
def _working(
    watches: tuple[Stopwatch, ...], seconds: float | None, scope: trio.CancelScope
) -> Generator[None, None, None]:
    """Be an activity of its own: what the body starts counts in its place."""
    if seconds is not None:
        own = Stopwatch(seconds, trio.current_time)

        def move() -> None:
            deadline = own.deadline
            scope.deadline = math.inf if deadline is None else deadline

        own.watchers.append(move)
        watches = (*watches, own)
    activity = Activity(watches)
    token = current_activity.set(activity)
    activity.start()
    try:
        yield
    finally:
        activity.finish()
        current_activity.reset(token)
