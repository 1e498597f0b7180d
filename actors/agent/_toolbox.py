"""The toolbox actor: owns the tasks of the tools that run.

Every call is resolved first (is the tool there, are the arguments right), then those that may run do, in one nursery
per batch: a single call too, for it is the one path, and it keeps context variables apart. Results are entered in the
run's record as they come; whatever way a body is left, its call has a result.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator
from functools import partial
from types import CoroutineType
from typing import Any, cast

import attrs
import trio

from protocol.errors import ToolError
from protocol.events import ToolStarted, Warned
from protocol.history import INTERRUPTED_TEXT
from protocol.text import clean, cut_middle
from protocol.turns import ToolCall, ToolResult, ToolStatus

from ..kit import Ask, Mailbox
from ..tools import ArgumentsInvalid, OutputUnfit, Tool, render_error, render_output
from ._core import RunCore
from ._foreign import FOREIGN, as_failure
from ._threads import ToolThreads

__all__ = ("RunTools", "Toolbox")


@attrs.define(eq=False)
class RunTools(Ask[None]):
    """Run these calls of the turn in hand; the answer comes when each has its result in the record."""

    calls: tuple[ToolCall, ...]


@attrs.define(eq=False)
class _Ready:
    """A call that may run."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


@attrs.define(eq=False)
class Toolbox:
    """Owns the tool calls in flight."""

    core: RunCore
    threads: ToolThreads

    async def run(self, mailbox: Mailbox[RunTools]) -> None:
        """Run one batch at a time; a batch whose asker leaves is cancelled."""
        async for message in mailbox:
            ready = [ready for call in message.calls if (ready := self._resolve(call)) is not None]
            async with trio.open_nursery() as batch:
                message.reply.on_drop(partial(batch.cancel_scope.cancel, "the asker left"))
                width = self.core.spec.max_parallel_tools
                if width is None or width >= len(ready):
                    for item in ready:
                        run = self._run if item.tool.in_thread else self._run_entered
                        batch.start_soon(run, item, name=item.call.name)
                else:
                    queue = iter(ready)
                    for _ in range(width):
                        batch.start_soon(self._run_in_turn, queue)
            message.reply.set(None)

    def _resolve(self, call: ToolCall) -> _Ready | None:
        """Say that the call may run, or enter an error result that the model can act on."""
        core = self.core
        if call.id in core.state.results:
            return None
        tool = core.tools.get(call.name)
        if tool is None:
            offered = ", ".join(core.tools) or "none"
            text = f"There is no tool named {call.name!r}. The tools are: {offered}."
        elif call.malformed is not None:
            raw = cut_middle(call.malformed, 1000)
            text = f"The arguments of {call.name} must be one JSON object; nothing was run. They were: {raw}"
        else:
            try:
                bound = tool.bind(core.arguments_of(call))
            except ArgumentsInvalid as error:
                text = str(error)
            else:
                return _Ready(call, tool, bound.arguments)
        core.record(ToolResult(call.id, call.name, "error", clean(text)))
        return None

    async def _run_in_turn(self, queue: Iterator[_Ready]) -> None:
        for item in queue:
            await self._run(item)

    async def _run(self, item: _Ready) -> None:
        if not item.tool.in_thread:
            await self._run_entered(item)
            return
        try:
            async with self.threads.slot():
                # Up to the thread's start nothing can be cancelled from here on: `tool_started` says it is entered.
                await trio.lowlevel.checkpoint_if_cancelled()
                await self._run_entered(item)
        except ToolError as error:
            self.core.record(ToolResult(item.call.id, item.call.name, "error", str(error)))

    async def _run_entered(self, item: _Ready) -> None:
        """Enter the body; whatever way it is left, the call has its result."""
        core = self.core
        call = item.call
        core.state.tool_calls += 1
        core.log.emit(ToolStarted(run=core.run, agent_path=core.path, call=call.id, name=call.name))
        status: ToolStatus = "interrupted"
        text = INTERRUPTED_TEXT
        try:
            seconds = item.tool.timeout_seconds or core.spec.tool_timeout_seconds
            status, text = await (self._call(item) if seconds is None else self._timed(item, seconds))
        finally:
            core.record(ToolResult(call.id, call.name, status, text, True))

    async def _timed(self, item: _Ready, seconds: float) -> tuple[ToolStatus, str]:
        with trio.move_on_after(seconds) as scope:
            return await self._call(item)
        assert scope.cancelled_caught
        return "timed_out", f"The tool {item.tool.name} timed out after {seconds:g} seconds; it may have had an effect."

    async def _call(self, item: _Ready) -> tuple[ToolStatus, str]:
        tool = item.tool
        try:
            if tool.in_thread:
                # The result is made text in the thread too: a huge one would hold up everybody here.
                call = partial(self._call_blocking, item)
                return "ok", await self.threads.run(call, partial(self._left_behind, item))
            value: Any = tool.fn(**item.arguments)
            if type(value) is CoroutineType or inspect.isawaitable(value):
                value = await cast("Awaitable[Any]", value)
            return "ok", self._render(tool, value)
        except OutputUnfit as error:
            return "error", clean(str(error))
        except FOREIGN as error:
            if as_failure(error) is None:
                raise
            return "error", render_error(error)

    def _call_blocking(self, item: _Ready) -> str:
        return self._render(item.tool, item.tool.fn(**item.arguments))

    def _render(self, tool: Tool, value: object) -> str:
        return render_output(value, tool_name=tool.name, max_chars=self.core.spec.max_tool_output_chars)

    def _left_behind(self, item: _Ready) -> None:
        text = (
            f"the thread of {item.tool.name} ignores that its call is over and still runs; what it returns is dropped"
        )
        self.core.log.emit(
            Warned(run=self.core.run, agent_path=self.core.path, code="thread_abandoned", text=text, call=item.call.id)
        )
