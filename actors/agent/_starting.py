"""A run that is about to begin, and that nobody has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, TypeAlias

import attrs
import trio

from protocol.errors import SpecError
from protocol.text import is_visible

from ..kit import current_party
from ._run import Run

__all__ = ("IfBusy", "Starting", "check_prompt", "hold")

IfBusy: TypeAlias = Literal["refuse", "queue"]
"""What becomes of a run that is wanted while another one goes on."""


def check_prompt(prompt: str) -> None:
    """Raise `SpecError` for a prompt that says nothing."""
    if not isinstance(prompt, str) or not is_visible(prompt):
        raise SpecError(f"the prompt is empty: say what the agent should do; it is {prompt!r}")


@attrs.define(eq=False)
class Starting:
    """The promise of a run: it begins when the agent is free, whether or not anybody waits for that."""

    behind: Starting | None = None
    """The one that was promised before: it is first in the agent's queue, too."""
    run: Run | None = None
    """The run, once it has begun."""
    refusal: Exception | None = None
    """Why it will not begin, once that is so."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    on_settled: Callable[[Starting], object] | None = None
    """Called in the very step in which it begins, or is refused."""
    in_line: trio.Event = attrs.field(factory=trio.Event)
    """Set when it stands in the queue, or has left it."""
    _settled: trio.Event = attrs.field(factory=trio.Event)

    async def line_up(self) -> None:
        """Wait until the one before stands in the queue; without a checkpoint if nobody does."""
        try:
            if self.behind is not None:
                await self.behind.in_line.wait()
        finally:
            self.behind = None
            self.in_line.set()

    def begun(self, run: Run) -> None:
        """The run has begun."""
        self.run = run
        self._settle()

    def refuse(self, error: Exception) -> None:
        """The run will not begin. Changes nothing for one that has."""
        if not self._settled.is_set():
            self.refusal = error
            self._settle()

    def _settle(self) -> None:
        self._settled.set()
        if self.on_settled is not None:
            self.on_settled(self)

    async def wait(self) -> Run:
        """Wait until it begins; raises what it is refused with."""
        await self._settled.wait()
        if self.run is None:
            assert self.refusal is not None
            raise self.refusal
        return self.run


async def hold(starting: Starting, run: AbstractAsyncContextManager[Run], refusal: Callable[[], Exception]) -> None:
    """Be the block that a run belongs to, until its end; `refusal` is what it is refused with where its agent is gone."""
    current_party.set(None)  # whoever waits for it does that on his own
    try:
        with starting.scope:
            await starting.line_up()
            async with run as begun:
                starting.begun(begun)
                await begun.wait_ended()
    except Exception as error:
        if starting.run is not None:
            raise
        starting.refuse(error)
    finally:
        starting.refuse(refusal())
