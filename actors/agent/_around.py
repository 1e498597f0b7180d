"""`around_tool`: the user's function that stands around a tool call (H7)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from protocol.errors import ToolError
from protocol.history import INTERRUPTED_TEXT
from protocol.stopwatch import Activity
from protocol.text import clean
from protocol.turns import ToolStatus

from ..tools import OutputUnfit
from ._body import Body
from ._foreign import FOREIGN
from ._hooks import PendingTool
from ._resolve import Ready

__all__ = ("Around", "CallNotRun")


class CallNotRun(ToolError):
    """What `proceed()` raises for a call that may not run. Its result stands already; the hook cannot change it."""


@attrs.define(eq=False)
class Around:
    """One call, and the hook around it."""

    body: Body
    arrived: trio.Event = attrs.field(factory=trio.Event)
    """The hook waits in `proceed()`, or has ended without it."""
    waits: bool = False
    over: bool = False
    """The hook has ended: what it left is the call's result."""
    _entered: bool = False
    _decided: trio.Event = attrs.field(factory=trio.Event)
    _refused: bool = False
    _done: Callable[[], object] | None = None
    _activity: Activity = attrs.field(init=False)
    """What the hook does once the calls are decided; its body's work is the body's own (B5)."""
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self._activity = Activity(self.body.core.activity.watches)

    @property
    def item(self) -> Ready:
        """The call, with the arguments that it will run with."""
        return self.body.item

    def proceed(self, done: Callable[[], object]) -> None:
        """Let the body be entered; `done` is called when it is left."""
        self._done = done
        self._decide()

    def refuse(self) -> None:
        """Do not let it: its result says why."""
        self._refused = True
        self._decide()

    def _decide(self) -> None:
        self._activity.start()
        self._decided.set()

    async def run(self) -> None:
        """Call the hook, and see to it that the call has its result."""
        core, call = self.body.core, self.item.call
        status: ToolStatus = "interrupted"
        text = INTERRUPTED_TEXT
        try:
            status, text = await self._outcome()
        finally:
            self.over = True
            self._activity.finish()
            self.arrived.set()
            if self._done is not None:
                self._done()
            if self._entered:
                self.body.record(status, text)
            elif status != "interrupted":
                core.answer(call, status, text)

    async def _outcome(self) -> tuple[ToolStatus, str]:
        core = self.body.core
        hook = core.acting.around_tool
        assert hook is not None
        pending = PendingTool(
            id=self.item.call.id,
            name=self.item.call.name,
            arguments=copy.deepcopy(self.item.shown),
            context=core.context,
        )
        seconds = core.acting.callback_timeout_seconds
        try:
            self._scope.deadline = trio.current_time() + seconds
            with self._scope:
                value = await hook(pending, self._proceed)
                # It may have swallowed a cancel: whatever it returned then is nobody's result.
                await trio.lowlevel.checkpoint_if_cancelled()
                return self._returned(value)
        except FOREIGN as error:
            status, text = self.body.outcome_of(error)
            return ("denied" if status == "ok" and not self._entered else status), text  # StopRun before the body
        return "error", f"The hook around {self.item.call.name} took longer than {seconds:g} seconds."

    def _returned(self, value: object) -> tuple[ToolStatus, str]:
        try:
            text = self.body.render(value)
        except OutputUnfit as error:
            return "error", clean(str(error))
        if self._entered:
            return self.body.succeed(text)
        reason = "" if value is None or self._refused else f" {text}"
        return "denied", f"Not run: declined.{reason}"

    async def _proceed(self, arguments: Mapping[str, Any] | None = None) -> Any:
        if self.waits or self.over:
            raise RuntimeError("proceed() may be called once")
        if arguments is not None:
            self.item.rebind(arguments)
        self.waits = True
        self.arrived.set()
        self._scope.deadline = math.inf  # waiting, and the body, are not the hook's time
        try:
            await self._decided.wait()
            if self._refused:
                raise CallNotRun("the call may not run")
            if not self.item.tool.in_thread:
                return await self._enter()
            async with self.body.threads.slot(self.body.core.root):
                return await self._enter()
        finally:
            self._scope.deadline = trio.current_time() + self.body.core.acting.callback_timeout_seconds

    async def _enter(self) -> Any:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.body.batch.cancel_called:  # also where the hook is shielded
            raise CallNotRun("the call may not run")
        if self.body.core.journal.durable:
            await self.body.announce()
        self._entered = True
        self.body.enter()
        self._activity.wait()
        try:
            return await self.body.value()
        finally:
            self._activity.resume()
