"""A look at an agent."""

from __future__ import annotations

from typing import Literal

import attrs

from protocol.history import History

from ._core import RunCore
from ._park import waits

__all__ = ("AgentStatistics",)


@attrs.frozen
class AgentStatistics:
    """The state of an agent."""

    agent: str
    name: str
    state: Literal["idle", "running", "waiting", "stopped"]
    """`waiting`: the run in hand waits for a decision, or for results that its caller gives."""
    run: str | None
    queued_runs: int
    messages: int
    open_requests: int
    events: int
    """Number of the last event."""
    history_bytes: int
    """What the conversation takes of memory, by estimate."""

    @classmethod
    def of(
        cls,
        agent: str,
        name: str,
        core: RunCore | None,
        *,
        is_stopped: bool,
        queued_runs: int,
        history: History,
        open_requests: int,
        events: int,
    ) -> AgentStatistics:
        """Of an agent with this run in hand."""
        state: Literal["idle", "running", "waiting", "stopped"] = "idle"
        if is_stopped:
            state = "stopped"
        elif core is not None:
            state = "waiting" if waits(core) else "running"
        run = core.state.run if core is not None else None
        return cls(agent, name, state, run, queued_runs, len(history), open_requests, events, history.bytes)
