"""An agent has one run at a time: who begins another one waits, or is refused."""

from __future__ import annotations

import trio

from protocol.errors import AgentBusy

from ._starting import IfBusy

__all__ = ("take_turn",)

MAX_QUEUED_RUNS = 64


async def take_turn(turn: trio.CapacityLimiter, owner: object, name: str, if_busy: IfBusy) -> None:
    """Have the agent's one turn. Raises `AgentBusy` where it is taken and `owner` does not wait, or too many do."""
    if if_busy == "refuse" or turn.statistics().tasks_waiting >= MAX_QUEUED_RUNS:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            turn.acquire_on_behalf_of_nowait(owner)
        except trio.WouldBlock:
            raise AgentBusy(f"agent {name} has a run going on: wait for its end, or use if_busy='queue'") from None
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()
    else:
        await turn.acquire_on_behalf_of(owner)
