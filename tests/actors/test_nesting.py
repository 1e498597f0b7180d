"""An agent that runs inside a tool of another: its account, its events, its questions and its end are below the caller's."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, ContinuationResponse, Limits, Run, Runtime, open_runtime, remote
from actors.agent import current_run
from actors.models import Scripted, call, reply
from protocol.errors import RunCancelledError
from protocol.events import ContinuationRequired, ContinuationResolved, Event, RunEvent, RunStarted
from protocol.ledger import Account
from protocol.turns import Turn
from protocol.usage import Usage

USAGE = Usage(10, 0, 0, 5, 0, True)


def turn(text: str, *calls: Any) -> Turn:
    return reply(text, *calls, usage=USAGE)


@attrs.define
class Family:
    """A root whose tool asks a child; what the child came to."""

    runtime: Runtime
    root: Agent
    child: Agent
    runs: list[Run] = attrs.field(factory=list)
    accounts: list[Account] = attrs.field(factory=list)

    @property
    def events(self) -> list[Event]:
        return [event for event, _ in self.root._stream.read(0)[1]]

    def types(self, *path: str) -> list[str]:
        return [event.type for event in self.events if isinstance(event, RunEvent) and event.agent_path == path]


async def look() -> str:
    """Look for a moment."""
    await trio.sleep(1)
    return "seen"


async def family(runtime: Runtime, *child_turns: Turn, root: dict[str, Any] | None = None, **child: Any) -> Family:
    made: list[Family] = []

    async def delegate() -> str:
        """Ask the child."""
        family = made[0]
        context = current_run.get()
        assert context is not None
        family.accounts.append(context.account)
        async with family.child.run("look into it") as run:
            family.runs.append(run)
            return (await run.result()).text

    delegated = turn("asking", call("delegate", id="d1"))
    made.append(
        Family(
            runtime,
            await runtime.spawn(
                AgentSpec(name="root", model=Scripted([delegated, turn("done")]), tools=[delegate], **root or {})
            ),
            await runtime.spawn(AgentSpec(name="child", model=Scripted(child_turns), tools=[look], **child)),
        )
    )
    return made[0]


async def test_a_childs_calls_are_the_callers_too(autojump_clock: trio.testing.MockClock) -> None:
    """The account stands under the caller's: calls and tokens are counted on both, up to the runtime."""
    async with open_runtime() as runtime:
        kin = await family(runtime, turn("", call("look", id="c1")), turn("found"))
        async with kin.root.run("go") as run:
            result = await run.result()
        (child,) = kin.runs
        child_result = await child.result()
        total = runtime.statistics().llm_calls

    assert ("done", "found") == (result.text, child_result.text)
    assert (4, 2, 4) == (result.counters.llm_calls, child_result.counters.llm_calls, total)
    assert (60, 30) == (result.usage.total_tokens, child_result.usage.total_tokens)
    assert (kin.accounts[0],) == child._core.account.parents


async def test_a_callers_limit_bounds_its_children(autojump_clock: trio.testing.MockClock) -> None:
    """The child is refused the call that its caller's budget does not hold, and says whose limit it was (B2)."""
    rounds = [turn("", call("look", id=f"c{n}")) for n in range(5)]
    async with open_runtime() as runtime:
        kin = await family(runtime, *rounds, root={"max_llm_calls": 3})
        async with kin.root.run("go") as run:
            result = await run.result()
        child_result = await kin.runs[0].result()

    assert 3 == result.counters.llm_calls
    assert "llm_calls" == result.stopped_by == child_result.stopped_by
    assert child_result.limit is not None
    assert (3, 3) == (child_result.limit.max, child_result.limit.used)


async def test_a_held_final_call_is_not_the_childs(autojump_clock: trio.testing.MockClock) -> None:
    """While the caller's last call is held for its own answer, the child sees one less (B2)."""
    rounds = [turn("", call("look", id=f"c{n}")) for n in range(5)]
    async with open_runtime() as runtime:
        kin = await family(runtime, *rounds, root={"max_llm_calls": 3, "llm_call_limit_finalization": ""})
        async with kin.root.run("go") as run:
            result = await run.result()
        child_result = await kin.runs[0].result()

    assert ("done", "model", 3) == (result.text, result.finalized, result.counters.llm_calls)
    assert 1 == child_result.counters.llm_calls


async def test_a_childs_events_stand_in_the_roots_stream(autojump_clock: trio.testing.MockClock) -> None:
    """With its path, between the start and the end of the call that it works for; it has no stream of its own (N1)."""
    async with open_runtime() as runtime:
        kin = await family(runtime, turn("", call("look", id="c1")), turn("found"))
        async with kin.root.run("go") as run:
            seen = [event async for event in run]
            child_seen = [event async for event in kin.runs[0]]
        in_order = [event for event in kin.events if isinstance(event, RunEvent)]
        own_stream = [event.type for event, _ in kin.child._stream.read(0)[1]]

    types = [(event.type, event.agent_path) for event in in_order]
    began, ended = types.index(("tool_started", ())), types.index(("tool_finished", ()))
    assert [("child",)] * (ended - began - 1) == [path for _, path in types[began + 1 : ended]]
    assert ["run_started", "run_finished"] == [kin.types("child")[0], kin.types("child")[-1]]
    assert "tool_started" in kin.types("child")
    assert seen == in_order
    assert child_seen == [event for event in in_order if event.agent_path == ("child",)]
    assert ["agent_spawned"] == own_stream


async def test_a_cancel_goes_down(autojump_clock: trio.testing.MockClock) -> None:
    """The caller's cancel ends the child first, settled like any run; then the caller (N3)."""
    async with open_runtime() as runtime:
        kin = await family(runtime, turn("", call("look", id="c1")), turn("found"))
        async with kin.root.run("go") as run:
            await trio.sleep(0.5)
            run.cancel("enough")
            with pytest.raises(RunCancelledError):
                await run.result()
        with pytest.raises(RunCancelledError):
            await kin.runs[0].result()
        ends = [e for e in kin.events if isinstance(e, RunEvent) and e.type == "run_cancelled"]

    assert 0.5 == trio.current_time()
    assert [("child",), ()] == [event.agent_path for event in ends]
    assert [["interrupted"], ["interrupted"]] == [
        [result.status for message in agent.messages if hasattr(message, "results") for result in message.results]
        for agent in (kin.child, kin.root)
    ]
    assert () == kin.accounts[0].open_reservations


async def test_a_childs_gate_is_asked_in_the_roots_table(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever follows the root sees the question, with the path, and may answer it there (G9)."""
    rounds = [turn("", call("look", id="c1")), turn("", call("look", id="c2")), turn("found")]
    async with open_runtime() as runtime:
        kin = await family(runtime, *rounds, max_tool_iterations=1, continuation=remote())
        async with kin.root.run("go") as run:
            asked: list[ContinuationRequired] = []
            async for event in run:
                if isinstance(event, ContinuationRequired):
                    asked.append(event)
                    waiting = (len(kin.root.requests.pending()), len(kin.child.requests.pending()))
                    await runtime.decide(event.request, ContinuationResponse("approve"))
            result = await run.result()

    assert [("child",)] == [event.agent_path for event in asked]
    assert (1, 0) == waiting
    assert "done" == result.text
    assert "found" == (await kin.runs[0].result()).text


async def test_a_cancel_closes_a_childs_gate(autojump_clock: trio.testing.MockClock) -> None:
    """Open questions of children are resolved `cancelled` when the caller is (N3)."""
    rounds = [turn("", call("look", id="c1")), turn("", call("look", id="c2"))]
    async with open_runtime() as runtime:
        kin = await family(runtime, *rounds, max_tool_iterations=1, continuation=remote())
        async with kin.root.run("go") as run:
            await trio.sleep(5)
            run.cancel("enough")
        resolved = [event for event in kin.events if isinstance(event, ContinuationResolved)]
        pending = kin.root.requests.pending()

    assert [("cancelled", ("child",))] == [(event.outcome, event.agent_path) for event in resolved]
    assert () == pending


async def test_a_child_has_limits_and_a_window_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    """The window is the run's own, never shared: the caller's rounds are not counted against the child's (N1)."""
    rounds = [turn("", call("look", id=f"c{n}")) for n in range(2)]
    async with open_runtime() as runtime:
        kin = await family(runtime, *rounds, turn("found"), root={"max_tool_iterations": 1}, max_tool_iterations=2)
        async with kin.root.run("go", limits=Limits(max_tool_iterations=1)) as run:
            result = await run.result()

    assert (1, 2) == (result.counters.tool_iterations, (await kin.runs[0].result()).counters.tool_iterations)
    assert "done" == result.text


async def test_outside_a_run_there_is_none(autojump_clock: trio.testing.MockClock) -> None:
    """A run that the caller starts itself is nobody's child, also right after another one."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(model=Scripted(["one", "two"])))
        for _ in range(2):
            async with agent.run("go") as run:
                await run.result()
                inside = current_run.get()
        started = [event for event, _ in agent._stream.read(0)[1] if isinstance(event, RunStarted)]

    assert None is inside
    assert [(), ()] == [event.agent_path for event in started]


async def test_a_grandchild(autojump_clock: trio.testing.MockClock) -> None:
    """The path grows downwards, and every account up to the root knows of the call."""
    async with open_runtime() as runtime:
        agents: list[Agent] = []

        async def delegate() -> str:
            """Ask the next one."""
            assert (context := current_run.get()) is not None
            async with agents[len(context.path) + 1].run("go on") as run:
                return (await run.result()).text

        for name in ("root", "child", "grandchild"):
            turns = [turn("", call("delegate", id=f"d-{name}"))] if name != "grandchild" else []
            agents.append(
                await runtime.spawn(AgentSpec(name=name, model=Scripted([*turns, turn(name)]), tools=[delegate]))
            )
        async with agents[0].run("go") as run:
            result = await run.result()
        starts = [event for event, _ in agents[0]._stream.read(0)[1] if isinstance(event, RunStarted)]

    assert [(), ("child",), ("child", "grandchild")] == [event.agent_path for event in starts]
    assert (5, 75) == (result.counters.llm_calls, result.usage.total_tokens)
