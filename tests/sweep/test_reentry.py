"""A run that is written down at a barrier and taken up again by a new core goes on as if nothing had been."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import msgspec
import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, ContinuationResponse, Run, open_runtime, remote
from actors.agent._core import RunCore
from actors.agent._driver import drive
from actors.agent._opening import resume
from actors.agent._star import run_star
from actors.eventlog import EventStream, RunLog
from actors.journal import MemoryJournal
from protocol.codec import decode, encode
from protocol.events import ContentDelta, ContinuationRequired, Event, RunResumed
from protocol.history import History
from protocol.ledger import Account
from protocol.limits import Counters
from protocol.requests import RequestTable
from protocol.result import RunResult
from protocol.run import RunState
from protocol.stopwatch import Activity
from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage

from .world import KnowingModel, World

APPROVE = ContinuationResponse("approve", message="go on")


@attrs.frozen
class Snapshot:
    """What a journal would hold of a run at one moment."""

    where: str
    state: bytes
    messages: bytes
    account: Account

    def restored(self) -> RunState:
        return decode(self.state, RunState)


@attrs.define
class Barriers(MemoryJournal):
    """A journal that is durable at once, and takes a snapshot of the run at every barrier."""

    look: Callable[[str], object] = str
    durable = True

    async def flushed(self, position: int | None = None) -> None:
        self.look("barrier")
        await trio.lowlevel.checkpoint()


def spec_of(world: World) -> AgentSpec:
    return AgentSpec(
        model=KnowingModel(world),
        tools=[world.add],
        max_tool_iterations=2,
        max_llm_calls=8,
        continuation=remote(),
        llm_call_limit_finalization="",
    )


def snapshot_of(agent: Agent, where: str) -> Snapshot | None:
    core = agent._core
    if core is None or core.over.is_set():
        return None
    messages: Sequence[Message] = tuple(core.history.view())
    state = core.state
    where += "/tools" if state.turn else "/model"
    return Snapshot(where, encode(state), encode(messages), copy.deepcopy(core.account))


async def lived_through() -> tuple[RunResult, list[Snapshot]]:
    """A run that nothing disturbs, and what was written down of it, at every barrier and at its gate."""
    journal = Barriers()
    taken: list[Snapshot | None] = []
    async with open_runtime(journal=journal) as runtime:
        agent = await runtime.spawn(spec_of(World(slow=True)))
        journal.look = lambda where: taken.append(snapshot_of(agent, where))
        async with agent.run("first prompt") as run:
            async for event in run:
                if isinstance(event, ContentDelta):
                    taken.append(snapshot_of(agent, "stream"))
                if isinstance(event, ContinuationRequired):
                    taken.append(snapshot_of(agent, "gate"))
                    await run.decide(event.request, APPROVE)
            result = await run.result()
    return result, [snapshot for snapshot in taken if snapshot is not None]


@attrs.define
class Resumed:
    """A run that was taken up from a snapshot."""

    snapshot: Snapshot
    world: World = attrs.field(factory=World)
    events: list[Event] = attrs.field(factory=list)
    asked: list[str] = attrs.field(factory=list)
    core: Any = None

    async def play(self) -> RunResult:
        """Build a core as a restart would, and drive it to its end."""
        state = self.snapshot.restored()
        self.world._turns = 4  # ids that the model made before are not made again
        stream = EventStream("restored")
        spec = spec_of(self.world)
        core = self.core = RunCore(
            spec=spec,
            state=state,
            log=RunLog(stream, state.run),
            history=History.load(decode(self.snapshot.messages, list[UserMessage | AssistantMessage | ToolMessage])),
            account=copy.deepcopy(self.snapshot.account),
            requests=RequestTable(clock=trio.current_time),
            journal=Barriers(),
            conditions=(),
            activity=Activity(()),
        )
        resume(core)
        with trio.fail_after(3600):
            await self._drive(core, stream)
        self.events = [event for event, _ in stream.read(0)[1]]
        assert core.result is not None
        return core.result

    async def _drive(self, core: RunCore, stream: EventStream) -> None:
        async with open_runtime() as runtime, trio.open_nursery() as nursery:
            nursery.start_soon(run_star, core, runtime._shared.threads, drive)
            await self._decide(Run(core, stream, 0))

    async def _decide(self, run: Run) -> None:
        while not run.over:
            for request in run.open_requests:
                self.asked.append(request.request)
                await run.decide(request.request, APPROVE)
            await trio.sleep(0.01)


def essence(result: RunResult) -> dict[str, Any]:
    """What must not depend on whether the run was taken up: all but times and the ids that a model makes anew."""
    return {
        "text": result.text,
        "answered": result.answered,
        "finish_reason": result.finish_reason,
        "stopped_by": result.stopped_by,
        "limit": result.limit,
        "counters": result.counters,
        "usage": result.usage,
        "steps": [(step.number, step.text, [r.status for r in step.results]) for step in result.steps],
        "messages": [type(message).__name__ for message in result.messages],
    }


@pytest.mark.slow
async def test_every_barrier_can_be_taken_up(autojump_clock: trio.testing.MockClock) -> None:
    """Restored at any barrier, or at the gate, the run comes to the same result with the same counters.

    But for a call that was about to leave: nobody knows whether it had, so it counts (B1), and one is made in its place.
    """
    lived, snapshots = await lived_through()
    expected = essence(lived)

    settled = [snapshot for snapshot in snapshots if not snapshot.where.startswith("stream")]

    assert {"barrier/model", "barrier/tools", "gate/tools"} == {snapshot.where for snapshot in settled}
    for snapshot in settled:
        result = await Resumed(snapshot).play()
        lost = int(snapshot.where == "barrier/model")
        counters = attrs.evolve(result.counters, llm_calls=result.counters.llm_calls - lost)
        usage = msgspec.structs.replace(result.usage, complete=True) if lost else result.usage

        assert expected == essence(attrs.evolve(result, counters=counters, usage=usage)), snapshot.where


async def at_gate() -> Snapshot:
    _, snapshots = await lived_through()
    return next(snapshot for snapshot in snapshots if snapshot.where == "gate/tools")


async def test_the_gate_is_taken_up_under_the_same_request(autojump_clock: trio.testing.MockClock) -> None:
    """The question that was open is open again, under its own id, and is not put to clients a second time."""
    snapshot = await at_gate()
    resumed = Resumed(snapshot)
    await resumed.play()
    types = [event.type for event in resumed.events]

    assert [snapshot.restored().open_request] == resumed.asked
    assert ["run_resumed", "continuation_resolved", "tool_started"] == types[:3]
    assert "continuation_required" not in types
    assert 0 == resumed.core.log.refused


async def test_the_tools_are_taken_up_after_the_decision(autojump_clock: trio.testing.MockClock) -> None:
    """A decision that was made is not asked for again; the pending calls run, once, with their own arguments."""
    _, snapshots = await lived_through()
    snapshot = next(s for s in snapshots if s.where == "barrier/tools" and s.restored().decision is not None)
    before = snapshot.restored()
    resumed = Resumed(snapshot)
    result = await resumed.play()

    assert [] == resumed.asked
    assert {"c3-0", "c3-1"} <= resumed.world.entered
    assert [("ok", "3"), ("ok", "4")] == [(r.status, r.text) for r in result.steps[before.step].results]
    assert 4 == result.counters.tool_iterations
    assert 0 == resumed.core.log.refused


async def test_a_result_that_was_there_stands(autojump_clock: trio.testing.MockClock) -> None:
    """Taken up between two calls of a turn, the one that had ended is not run again."""
    _, snapshots = await lived_through()
    snapshot = next(s for s in snapshots if s.where == "barrier/tools")
    state = snapshot.restored()
    assert state.turn is not None
    done = state.turn.calls[0]
    state.results[done.id] = ToolResult(done.id, done.name, "ok", "from before", True)
    resumed = Resumed(attrs.evolve(snapshot, state=encode(state)))
    result = await resumed.play()

    assert done.id not in resumed.world.entered
    assert ["from before", "2"] == [r.text for r in result.steps[0].results]
    assert 0 == resumed.core.log.refused


async def test_run_resumed_tells_the_counters(autojump_clock: trio.testing.MockClock) -> None:
    """The first event of a run that goes on says where it stands."""
    resumed = Resumed(await at_gate())
    await resumed.play()
    (first, *_) = resumed.events

    assert isinstance(first, RunResumed)
    assert Counters(steps=2, llm_calls=3, tool_iterations=2, window=2, tool_calls=4) == first.counters


async def test_a_call_that_had_left_is_counted_and_made_again(autojump_clock: trio.testing.MockClock) -> None:
    """A model call in flight is made anew; the one that was lost stays counted, its usage unknown (B1)."""
    lived, snapshots = await lived_through()
    snapshot = next(s for s in snapshots if s.where == "stream/model")
    resumed = Resumed(snapshot)
    result = await resumed.play()

    assert lived.counters.llm_calls + 1 == result.counters.llm_calls
    assert lived.usage.total_tokens == result.usage.total_tokens
    assert not result.usage.complete
    assert () == resumed.core.account.open_reservations
    assert essence(lived)["messages"] == essence(result)["messages"]
