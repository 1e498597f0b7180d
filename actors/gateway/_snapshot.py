"""What an agent is now, and what waits for somebody: for whoever comes later. Synchronous: it is one moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from protocol.codec import encode
from protocol.events import ContinuationRequired
from protocol.turns import Message
from protocol.wire.replies import (
    AgentInfo,
    AgentState,
    ChildInfo,
    OpenApproval,
    OpenContinuation,
    OpenPause,
    OpenRequest,
    Snapshot,
)

from ..agent import Agent, RunCore

__all__ = ("family_of", "info_of", "open_requests", "run_of", "snapshot_of", "state_of")

MAX_MESSAGES = 100
MAX_HISTORY_BYTES = 65_536


def info_of(agent: Agent) -> AgentInfo:
    """One line about an agent."""
    core = run_of(agent)
    return AgentInfo(
        agent=agent.id,
        name=agent.name,
        state=state_of(core),
        run=None if core is None else core.run,
        epoch=agent.stream.epoch,
        head=agent.stream.visible,
        open_requests=len(open_requests(agent)),
    )


def open_requests(agent: Agent) -> tuple[OpenRequest, ...]:
    """All that waits for somebody in an agent and below it; the seconds left are as of now."""
    found: list[OpenRequest] = []
    for request, left in agent.requests.pending():
        kind: Any = OpenContinuation if isinstance(request, ContinuationRequired) else OpenApproval
        fields = {name: getattr(request, name) for name in request.__struct_fields__}
        found.append(kind(**fields | {"agent": agent.id, "expires_in_seconds": left}))
    own = run_of(agent)
    if own is not None and own.path:
        return tuple(found)  # a sub-agent's pause stands with the root, in whose log it is
    for core in family_of(own):
        pause = core.state.pause
        if pause is not None:
            found.append(
                OpenPause(
                    agent=agent.id,
                    run=core.run,
                    agent_path=core.path,
                    request=pause.request,
                    calls=tuple([call for call in pause.calls if call.id not in pause.results]),
                    expires_in_seconds=None,
                )
            )
    return tuple(found)


def snapshot_of(agent: Agent, *, history_bytes: int = MAX_HISTORY_BYTES) -> Snapshot:
    """What a client needs to begin in the middle, with as much of the history as fits."""
    core = run_of(agent)
    return Snapshot(
        state=state_of(core),
        run=None if core is None else core.run,
        step_number=0 if core is None else core.state.step,
        counters=None if core is None else core.state.counters(core.account.llm_calls),
        usage=None if core is None else core.usage,
        history=_last_messages(agent, min(history_bytes, MAX_HISTORY_BYTES)),
        children=tuple([
            ChildInfo(run=child.run, agent_path=child.path, state=state_of(child))
            for child in family_of(core)
            if child is not core
        ]),
    )


def run_of(agent: Agent) -> RunCore | None:
    """The run that goes on: not one whose end is out and whose tasks are still being joined."""
    core = agent.current
    return None if core is None or core.over.is_set() else core


def family_of(core: RunCore | None) -> Iterator[RunCore]:
    """A run that goes on, and all below it."""
    if core is not None and not core.over.is_set():
        yield core
        for child in core.children:
            yield from family_of(child)


def state_of(core: RunCore | None) -> AgentState:
    """What an agent is doing."""
    family = list(family_of(core))
    if not family:
        return "idle"
    if any(run.state.pause is not None for run in family):
        return "paused"
    return "waiting" if any(run.log.grammar.open_requests for run in family) else "running"


def _last_messages(agent: Agent, room: int) -> tuple[msgspec.Raw, ...]:
    kept: list[msgspec.Raw] = []
    message: Message
    for message in reversed(agent.messages[-MAX_MESSAGES:]):
        data = encode(message)
        room -= len(data) + 1
        if room < 0:
            break
        kept.append(msgspec.Raw(data))
    return tuple(reversed(kept))
