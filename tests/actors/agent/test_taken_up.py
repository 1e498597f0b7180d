"""A run that is taken up from its written state goes on as whom it was, with the tools that it had been offered."""

from __future__ import annotations

import trio
import trio.testing

from actors import AgentSpec, handoff, tool
from actors.agent._core import RunCore
from actors.agent._opening import resume
from actors.eventlog import EventStream, RunLog
from actors.journal import MemoryJournal
from actors.models.scripted import Scripted
from protocol.history import History
from protocol.ledger import Account
from protocol.requests import RequestTable
from protocol.run import RunState
from protocol.stopwatch import Activity


def taken_up(spec: AgentSpec, state: RunState) -> RunCore:
    core = RunCore(
        spec=spec,
        state=state,
        log=RunLog(EventStream("restored"), state.run),
        history=History(),
        account=Account(state.run),
        requests=RequestTable(clock=trio.current_time),
        journal=MemoryJournal(),
        conditions=(),
        activity=Activity(()),
    )
    resume(core)
    return core


async def look() -> str:
    """Look."""
    return "seen"


async def write() -> str:
    """Write."""
    return "written"


async def test_it_acts_as_whom_it_was_handed_to(autojump_clock: trio.testing.MockClock) -> None:
    """N4: the agent is found among those that may be reached by hand-offs, in circles and over several, too."""
    last = AgentSpec(name="last", model=Scripted([]), tools=[look])
    front: AgentSpec
    middle = AgentSpec(name="middle", model=Scripted([]), tools=[handoff(last), handoff(lambda: front, agent="front")])
    front = AgentSpec(name="front", model=Scripted([]), tools=[handoff(middle)])
    core = taken_up(front, RunState("r1", "go", front.limits(), acting="last"))

    assert last is core.acting
    assert ["look"] == list(core.offered)


async def test_what_was_hidden_stays_hidden(autojump_clock: trio.testing.MockClock) -> None:
    """H3: the tools of the request in hand are those that may run, after a restart too."""
    spec = AgentSpec(model=Scripted([]), tools=[tool(look), tool(write)])
    core = taken_up(spec, RunState("r1", "go", spec.limits(), offered=("write",)))

    assert (["look", "write"], ["write"]) == (list(core.tools), list(core.offered))
