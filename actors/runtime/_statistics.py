"""What a runtime can be seen to do."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from protocol.ledger import AccountStatistics

from ..agent import (
    RuntimeLimits,
    ThreadStatistics,
)
from ..journal import DiskStatistics
from ..kit import SlotStatistics

__all__ = ("RuntimeStatistics",)


@attrs.frozen
class RuntimeStatistics:
    """The state of a runtime."""

    agents: int
    running: int
    actors: int
    llm_calls: int
    tool_threads: ThreadStatistics
    states: Mapping[str, int]
    """How many agents are `idle`, `running`, `waiting` (for a decision, or for results of their caller) and `stopped`."""
    queued_runs: int
    open_requests: int
    runs_ended: Mapping[tuple[str, str], int]
    """Runs that have come to an end: by its kind (`finished`, `failed`, `cancelled`), and by who stopped them."""
    model_calls: Mapping[str, int]
    """Model calls: those that brought a turn (`ok`), and those that were refused, broken or cut (`failed`)."""
    tool_calls: Mapping[str, int]
    """Tool calls that have their result, by its status."""
    account: AccountStatistics
    """What all runs have used together; its limits are none."""
    journal: DiskStatistics | None
    """`None` where there is no journal."""
    uptime_seconds: float
    model_slots: Mapping[str, SlotStatistics]
    """By provider, where their number is limited: of those that have been asked."""
    history_bytes: int
    """What all conversations take of memory, by estimate."""
    event_bytes: int
    """What is kept of all events."""
    limits: RuntimeLimits
    slow_steps: int
    """Steps longer than `slow_step_seconds`, if that is watched."""
