"""An agent has one run at a time: who begins another one waits, or is refused.

The turn is the agent where others wait for it (see `actors.kit`): what the run in hand waits for, in whatever task of its own,
the agent waits for. So an agent that would wait for itself, over others, is refused instead of waiting for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from protocol.errors import AgentBusy, AskCycle

from ..kit import Party, party_here, waiting_for
from ._starting import IfBusy

__all__ = ("AgentTurn",)

MAX_QUEUED_RUNS = 64


class AgentTurn(Party):
    """The one turn of an agent."""

    __slots__ = ("_limiter", "_name", "run")

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._limiter = trio.CapacityLimiter(1)
        self.run = ""
        """The run that has had it last."""

    @property
    def title(self) -> str:
        """What an error calls the agent."""
        return f"agent {self._name}"

    @property
    def taken(self) -> bool:
        """Whether a run is going on."""
        return self._limiter.borrowed_tokens > 0

    @property
    def queued(self) -> int:
        """How many wait for it."""
        return self._limiter.statistics().tasks_waiting

    async def take(self, owner: object, if_busy: IfBusy, above: Iterable[str]) -> None:
        """Have it. `above` are the runs that the one who waits works for.

        Raises `AgentBusy` where it is taken and `owner` does not wait, or too many do; `AskCycle` where waiting would never end.
        """
        if if_busy == "refuse" or self.queued >= MAX_QUEUED_RUNS:
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                self.take_nowait(owner)
            except trio.WouldBlock:
                text = f"agent {self._name} has a run going on: wait for its end, or use if_busy='queue'"
                raise AgentBusy(text) from None
            finally:
                await trio.lowlevel.cancel_shielded_checkpoint()
            return
        if self.taken and self.run in above and party_here() is not None:
            raise AskCycle(f"the agent {self._name} waits for this task itself, and could never begin it")
        with waiting_for(self):
            await self._limiter.acquire_on_behalf_of(owner)

    def take_nowait(self, owner: object) -> None:
        """Have it, or raise `trio.WouldBlock`."""
        self._limiter.acquire_on_behalf_of_nowait(owner)

    def release(self, owner: object) -> None:
        """Let the next one have it."""
        self._limiter.release_on_behalf_of(owner)
