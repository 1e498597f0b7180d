"""What all agents of a runtime may take together: how many there are, how deep they stand, what they remember."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, Run, RuntimeLimits, ask_agent, never, open_runtime, sub_agent, tool
from actors.agent import Places
from actors.models import Scripted, call, reply
from protocol.errors import AgentStopped, JournalError, RuntimeFull, SpecError
from protocol.events import Finalizing, LimitReached, RunStarted
from protocol.history import History
from protocol.limits import LimitState
from protocol.turns import UserMessage
from tests.support.disk import FakeDisk, journal_on
from tests.support.scripts import calls_until, calls_while_on


def spec_of(name: str = "a", **options: Any) -> AgentSpec:
    return AgentSpec(model=Scripted(lambda _request: "fine"), name=name, **options)


def bytes_of(*texts: str) -> int:
    return History.load(UserMessage(text) for text in texts).bytes


# -------------------------------------------------------------------- settings


@pytest.mark.parametrize("name", ["max_agents", "max_history_bytes", "max_depth"])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", math.inf])
def test_a_limit_is_a_number(name: str, wrong: Any) -> None:
    """Whole, and at least one; the error names the option and the value."""
    with pytest.raises(SpecError, match=f"{name} must be an integer >= 1, or None for no limit; it is {wrong!r}"):
        RuntimeLimits(**{name: wrong})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": 5}, r"open_runtime\(limits=\) must be RuntimeLimits"),
        ({"tool_threads": 0}, "tool_threads must be an integer >= 1; it is 0"),
        ({"tool_threads": math.inf}, "tool_threads must be an integer >= 1; it is inf"),
        ({"slow_step_seconds": 0}, "slow_step_seconds must be a number above 0"),
        ({"slow_step_seconds": True}, "slow_step_seconds must be a number above 0"),
        ({"slow_step_seconds": "1"}, "slow_step_seconds must be a number above 0"),
    ],
)
async def test_a_wrong_setting_opens_nothing(options: dict[str, Any], words: str) -> None:
    """It is told before anything runs."""
    with pytest.raises(SpecError, match=words):
        async with open_runtime(**options):
            pytest.fail("it was opened")


# -------------------------------------------------------------------- agents


async def test_so_many_agents() -> None:
    """Idle ones count; one more is refused, with the numbers and what to do; one that has stopped makes room."""
    async with open_runtime(limits=RuntimeLimits(max_agents=2)) as runtime:
        first = await runtime.spawn(spec_of())
        runtime.spawn_soon(spec_of("b"))
        with pytest.raises(RuntimeFull) as caught:
            await runtime.spawn(spec_of("c"))
        with pytest.raises(RuntimeFull):
            await runtime.fork(spec_of("c"), "run", step=0)
        with pytest.raises(RuntimeFull):
            runtime.spawn_soon(spec_of("c"))
        first.stop()
        await first.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        await runtime.spawn(spec_of("c"))
        names = sorted(agent.name for agent in runtime.agents)

    text = "the runtime holds 2 of at most 2 agents, idle ones included: stop one that is not needed any more, or raise max_agents"
    assert text == str(caught.value)
    assert ["b", "c"] == names


async def test_a_sub_agent_needs_a_place_too() -> None:
    """Without one, the call that wants it has an error result, and its run goes on."""
    begin = reply("", call("ask_child", {"task": "t"}, id="c1"))
    spec = AgentSpec(model=Scripted([begin, "then without"]), tools=[sub_agent(spec_of("child"))])
    async with open_runtime(limits=RuntimeLimits(max_agents=1)) as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run("go") as run:
            result = await run.result()

    assert ("then without", "error") == (result.text, result.steps[0].results[0].status)
    assert "max_agents" in result.steps[0].results[0].text


async def test_a_refused_agent_is_not_lost(autojump_clock: trio.testing.MockClock) -> None:
    """One that the journal holds is brought back when there is room."""
    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        known = (await runtime.spawn(spec_of())).id
    disk = FakeDisk(list(disk.batches))
    async with open_runtime(journal=journal_on(disk), limits=RuntimeLimits(max_agents=1)) as runtime:
        other = await runtime.spawn(spec_of("b"))
        with pytest.raises(RuntimeFull):
            await runtime.spawn(spec_of())
        other.stop()
        await other.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()

        back = await runtime.spawn(spec_of())

    assert known == back.id


def test_an_agent_on_its_way_has_a_place() -> None:
    """While it is read from the journal, nobody else takes it."""
    places = Places(2)
    with places.kept(), pytest.raises(RuntimeFull, match="holds 2 of at most 2"):
        places.need_one(1)

    places.need_one(1)


async def test_a_place_is_given_back_when_reading_fails() -> None:
    """Whoever could not be made takes none."""
    async with open_runtime(limits=RuntimeLimits(max_agents=1)) as runtime:
        with pytest.raises(JournalError):
            await runtime.fork(spec_of(), "nobody", step=0)
        await runtime.spawn(spec_of())
    with pytest.raises(AgentStopped):
        runtime.spawn_soon(spec_of())


# -------------------------------------------------------------------- depth


@pytest.mark.parametrize(("limits", "deepest"), [(RuntimeLimits(max_depth=3), 3), (None, 32)])
async def test_an_agent_that_asks_its_like_comes_to_an_end(
    limits: RuntimeLimits | None, deepest: int, autojump_clock: trio.testing.MockClock
) -> None:
    """The one that would stand too deep is refused; those above answer without it. There is a limit by default."""

    async def ask(task: str) -> str:
        """Ask another one of the same kind."""
        return await ask_agent(endless(), task)

    def endless() -> AgentSpec:
        model = Scripted([reply("", call("ask", {"task": "again"}, id="c1")), "fine"])
        return AgentSpec(model=model, tools=[ask], name="n")

    async with open_runtime(limits=limits, event_log_bytes=1 << 24) as runtime:
        root = await runtime.spawn(endless())
        async with root.run("go") as run:
            begun = [event.agent_path async for event in run if isinstance(event, RunStarted)]
            result = await run.result()
        left = runtime.agents

    assert (deepest, "fine", (root,)) == (max(map(len, begun)), result.text, left)


async def test_the_refusal_says_what_to_do() -> None:
    """Whoever would run too deep is named, with the limit."""

    async def ask() -> str:
        """Ask."""
        return await ask_agent(spec_of("deep"), "t")

    middle = AgentSpec(model=Scripted([reply("", call("ask", id="c2")), "fine"]), tools=[ask], name="middle")
    told: list[str] = []

    async def top() -> None:
        """Ask the one in the middle."""
        await ask_agent(observed(middle, told), "t")

    spec = AgentSpec(model=Scripted([reply("", call("top", id="c1")), "fine"]), tools=[top])
    async with open_runtime(limits=RuntimeLimits(max_depth=1)) as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run("go") as run:
            await run.result()

    assert [
        (
            "RuntimeFull: agent deep would run 2 levels below its root, and the runtime allows 1: let fewer agents give"
            " tasks to others, or raise max_depth"
        )
    ] == told


def observed(spec: AgentSpec, told: list[str]) -> AgentSpec:
    """The same, which tells the results of its tools."""
    return attrs.evolve(spec, on_step=lambda step: told.extend(result.text for result in step.results))


# -------------------------------------------------------------------- histories


async def test_a_run_without_room_is_refused() -> None:
    """At its start, before anything is said or stored; an agent that goes makes room."""
    most = bytes_of("x" * 1000) + 200
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=most)) as runtime:
        full = await runtime.spawn(spec_of(), messages=[UserMessage("x" * 1000)])
        other = await runtime.spawn(spec_of("b"))
        with pytest.raises(RuntimeFull) as caught:
            async with other.run("y" * 201):
                pytest.fail("it began")
        before = (len(other.messages), other.statistics().state, other.statistics().events)
        full.stop()
        await full.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        async with other.run("y" * 201) as run:
            result = await run.result()

    assert (
        f"there is no room for another run of agent b (201 bytes): the conversations of the runtime take 1,100 of {most:,}"
        " bytes. Stop agents that are not needed any more, or raise max_history_bytes"
    ) == str(caught.value)
    assert (0, "idle", 1) == before
    assert result.answered


async def test_messages_without_room_are_refused() -> None:
    """An agent that would begin with them is not made; one that begins with nothing is."""
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=500)) as runtime:
        with pytest.raises(RuntimeFull, match="no room for the messages of agent a"):
            await runtime.spawn(spec_of(), messages=[UserMessage("x" * 500)])
        there = runtime.agents
        await runtime.spawn(spec_of(), messages=[UserMessage("x" * 400)])
        await runtime.spawn(spec_of("b"))
        taken = runtime.statistics().history_bytes

    assert ((), 500) == (there, taken)


@tool
async def big() -> str:
    """A big result."""
    await trio.lowlevel.checkpoint()
    return "x" * 1000


async def run_of(runtime: Any, **options: Any) -> tuple[Run, list[Any]]:
    agent = await runtime.spawn(AgentSpec(tools=[big], **options))
    async with agent.run("go") as run:
        events = [event async for event in run]
    return run, events


@pytest.mark.parametrize("others", [False, True])
async def test_a_run_that_goes_on_ends_at_its_next_step(others: bool) -> None:
    """By the limit: a result, no error; the step in hand is whole, and no call is left without its result (R2, B6)."""
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=5000)) as runtime:
        if others:
            await runtime.spawn(spec_of("other"), messages=[UserMessage("x" * 2500)])
        run, events = await run_of(runtime, model=Scripted(calls_while_on(name="big")))
        result, used = await run.result(), runtime.statistics().history_bytes

    limit = LimitState("history_bytes", 5000, used)
    assert ("history_bytes", "max_history_bytes", limit) == (result.stopped_by, result.finish_reason, result.limit)
    assert (2 if others else 4) == len(result.steps)
    assert 5000 <= used < 5000 + 2000
    assert ["limit_reached", "run_finished"] == [event.type for event in events[-2:]]
    assert not result.answered


async def test_a_final_call_may_end_it() -> None:
    """`budget_finalization` covers this limit too: the answer is the last that is stored."""
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=3000)) as runtime:
        run, events = await run_of(
            runtime, model=Scripted(calls_while_on("what I know", name="big")), budget_finalization=""
        )
        result = await run.result()
    told = [type(event) for event in events if isinstance(event, (LimitReached, Finalizing))]

    assert ("what I know", True, "model", "history_bytes") == (
        result.text,
        result.answered,
        result.finalized,
        result.stopped_by,
    )
    assert [LimitReached, Finalizing] == told


async def test_a_final_call_that_was_promised_is_made() -> None:
    """A gate that declines leads to one, although what it stored has filled the memory (G5)."""
    script = Scripted([reply("", call("big")), reply("x" * 3000, call("big")), "what I know"])
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=3000)) as runtime:
        run, _ = await run_of(runtime, model=script, max_tool_iterations=1, continuation=never())
        result = await run.result()

    assert (True, "model", "tool_iterations") == (result.answered, result.finalized, result.stopped_by)


async def test_an_instruction_that_fails_leaves_the_limit() -> None:
    """F2: as if the finalization were off, the run ends at the limit without an answer."""

    def broken(_context: object) -> str:
        raise ValueError("broken")

    async with open_runtime(limits=RuntimeLimits(max_history_bytes=3000)) as runtime:
        run, _ = await run_of(runtime, model=Scripted(calls_while_on(name="big")), budget_finalization=broken)
        result = await run.result()

    assert ("history_bytes", False, None) == (result.stopped_by, result.answered, result.finalized)


async def test_what_an_idle_agent_holds_is_counted_whole() -> None:
    """Its last answer too: the next one who comes finds the room that there is."""
    async with open_runtime(limits=RuntimeLimits(max_history_bytes=1500)) as runtime:
        talker = await runtime.spawn(AgentSpec(model=Scripted(["x" * 1200]), name="talker"))
        async with talker.run("go") as run:
            await run.result()
        other = await runtime.spawn(spec_of("b"))
        with pytest.raises(RuntimeFull):
            async with other.run("go"):
                pytest.fail("it began")


async def test_an_agent_that_comes_back_is_not_refused_for_what_it_knows(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing is lost: it is there with all its messages, and takes no run."""
    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        await runtime.spawn(spec_of(), messages=[UserMessage("x" * 1000)])
    disk = FakeDisk(list(disk.batches))
    async with open_runtime(journal=journal_on(disk), limits=RuntimeLimits(max_history_bytes=500)) as runtime:
        agent = await runtime.spawn(spec_of())
        with pytest.raises(RuntimeFull):
            async with agent.run("go"):
                pytest.fail("it began")
        texts = [message.text for message in agent.messages if isinstance(message, UserMessage)]

    assert ["x" * 1000] == texts


# -------------------------------------------------------------------- told


async def test_the_runtime_tells_what_is_taken() -> None:
    """Agents, conversations, events, and the limits that they are held to."""
    limits = RuntimeLimits(max_agents=5)
    async with open_runtime(limits=limits) as runtime:
        agent = await runtime.spawn(spec_of())
        empty = runtime.statistics()
        async with agent.run("go") as run:
            await run.result()
        seen = runtime.statistics()
        own, bytes_of_events = agent.statistics(), agent.stream.statistics().bytes

    assert (1, limits, 0, None) == (empty.agents, empty.limits, empty.history_bytes, empty.journal)
    assert seen.history_bytes == own.history_bytes == History.load(agent.messages).bytes > 0
    assert seen.event_bytes == bytes_of_events > empty.event_bytes > 0


async def test_the_runtime_tells_of_its_journal(autojump_clock: trio.testing.MockClock) -> None:
    """As the journal itself does."""
    journal = journal_on(FakeDisk())
    async with open_runtime(journal=journal) as runtime:
        await runtime.spawn(spec_of())
        await runtime.flushed()
        seen = runtime.statistics().journal

    assert seen is not None
    assert (True, 0) == (seen.commits > 0, seen.waiting)


async def test_without_limits_nobody_is_refused() -> None:
    """And a run is what it was."""
    async with open_runtime() as runtime:
        agents = [await runtime.spawn(spec_of(f"a{n}")) for n in range(100)]
        run, _ = await run_of(runtime, model=Scripted(calls_until(3, name="big")))
        result = await run.result()

    assert (100, "done") == (len(agents), result.text)
