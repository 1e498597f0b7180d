"""The toolbox actor: owns the tasks of the tools that run.

The bodies of a turn run in one nursery per batch: a single call too, for it is the one path, and it keeps context
variables apart. Results are entered in the run's record as they come; whatever way a body is left, its call has a result.

Where `around_tool` stands around the calls, the batch has two parts: first every hook is entered, up to its `proceed()`;
then, when the driver knows which calls may run, those go on into their bodies (H7).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import attrs
import trio

from protocol.errors import ToolError
from protocol.stopwatch import Activity

from ..kit import Ask, Mailbox
from ._around import Around
from ._body import Body
from ._core import RunCore
from ._resolve import Ready
from ._threads import ToolThreads

__all__ = ("EnterTools", "RunTools", "Toolbox", "ToolboxAsk")


@attrs.define(eq=False)
class RunTools(Ask[None]):
    """Run these calls of the turn in hand; the answer comes when each has its result in the record."""

    calls: list[Ready]


@attrs.define(eq=False)
class EnterTools(Ask[list[Ready]]):
    """Enter `around_tool` for these calls: the answer is those that wait to proceed. `RunTools` must follow."""

    calls: list[Ready]


ToolboxAsk: TypeAlias = RunTools | EnterTools


@attrs.define(eq=False)
class Toolbox:
    """Owns the tool calls in flight."""

    core: RunCore
    threads: ToolThreads

    async def run(self, mailbox: Mailbox[ToolboxAsk]) -> None:
        """Run one batch at a time; a batch whose asker leaves is cancelled."""
        async for message in mailbox:
            if isinstance(message, RunTools):
                await self._run_batch(message)
            else:
                await self._run_around(message, mailbox)

    async def _run_batch(self, message: RunTools) -> None:
        core, ready = self.core, message.calls
        async with trio.open_nursery() as batch:
            scope = batch.cancel_scope
            message.reply.on_drop(partial(scope.cancel, "the asker left"))
            width = core.acting.max_parallel_tools
            if width is None or width >= len(ready):
                for item in ready:
                    body = Body(core, self.threads, item, scope)
                    if item.tool.in_thread:
                        batch.start_soon(self._run, body, name=item.call.name)
                    else:
                        batch.start_soon(body.run, name=item.call.name)
            else:
                queue = iter([Body(core, self.threads, item, scope) for item in ready])
                for _ in range(width):
                    batch.start_soon(self._run_in_turn, queue)
        message.reply.set(None)

    async def _run_in_turn(self, queue: Iterator[Body]) -> None:
        for body in queue:
            await self._run(body)

    async def _run(self, body: Body) -> None:
        if not body.item.tool.in_thread:
            await body.run()
            return
        waits = Activity(self.core.activity.watches)  # for a thread, which is nobody's decision: time goes on (B5)
        waits.start()
        try:
            async with self.threads.slot(self.core.root):
                waits.finish()
                await body.run()
        except ToolError as error:
            self.core.answer(body.item.call, "error", str(error))
        finally:
            waits.finish()

    async def _run_around(self, message: EnterTools, mailbox: Mailbox[ToolboxAsk]) -> None:
        order: ToolboxAsk | None = None
        async with trio.open_nursery() as batch:
            scope = batch.cancel_scope
            message.reply.on_drop(partial(scope.cancel, "the asker left"))
            arounds = [
                Around(Body(self.core, self.threads, item, scope)) for item in message.calls if not item.tool.external
            ]
            for around in arounds:
                batch.start_soon(around.run, name=f"around {around.item.call.name}")
            for around in arounds:
                await around.arrived.wait()
            waiting = {id(around.item) for around in arounds if around.waits and not around.over}
            message.reply.set([item for item in message.calls if item.tool.external or id(item) in waiting])
            order = await anext(mailbox)
            assert isinstance(order, RunTools)
            order.reply.on_drop(partial(scope.cancel, "the asker left"))
            await self._decide(arounds, order)
        message.reply.set([])  # a hook has failed the run before all had come to their `proceed()`
        if isinstance(order, RunTools):
            order.reply.set(None)

    async def _decide(self, arounds: list[Around], order: RunTools) -> None:
        """Let those into their bodies that may run, as many at a time as may, and refuse the others."""
        allowed = {id(item) for item in order.calls}
        width = trio.Semaphore(self.core.acting.max_parallel_tools or max(1, len(arounds)))
        for around in arounds:
            if id(around.item) not in allowed:
                around.refuse()
            elif not around.over:
                await width.acquire()
                around.proceed(width.release)
