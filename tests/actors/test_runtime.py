"""The runtime: where agents live, and in what order all of it stops."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, ContinuationResponse, Run, external_tool, open_runtime, remote
from actors.models import Scripted, call, reply
from protocol.errors import AgentStopped, RunCancelledError, SubmissionRefused
from protocol.events import AgentFailed, ContinuationResolved
from protocol.turns import Turn

ASK = reply("", call("look", id="c1"))


async def look() -> str:
    """Look for a moment."""
    await trio.sleep(1)
    return "seen"


def spec_of(*turns: Turn | str, **options: object) -> AgentSpec:
    return AgentSpec(model=Scripted(turns or ["fine"]), tools=[look], **options)  # type: ignore[arg-type]


def types_of(agent: Agent) -> list[str]:
    return [event.type for event, _ in agent._stream.read(0)[1]]


async def begin(agent: Agent, nursery: trio.Nursery) -> Run:
    """A run that somebody else owns."""
    runs: list[Run] = []
    begun = trio.Event()
    nursery.start_soon(keep_running, agent, runs, begun)
    await begun.wait()
    return runs[0]


async def keep_running(agent: Agent, runs: list[Run], begun: trio.Event) -> None:
    async with agent.run("go") as run:
        runs.append(run)
        begun.set()
        with contextlib.suppress(RunCancelledError):
            await run.result()


async def test_an_agent_lives_as_long_as_its_runtime() -> None:
    """Spawned, it says so first; when the block is left it says that it has stopped, last, and takes no run."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec_of())
        inside = (runtime.agents, types_of(agent), agent.stopped.is_set())
    with pytest.raises(AgentStopped):
        async with agent.run("go"):
            pass

    assert ((agent,), ["agent_spawned"], False) == inside
    assert ["agent_spawned", "agent_stopped"] == types_of(agent)
    assert () == runtime.agents
    assert agent.stopped.is_set()


async def test_a_closed_runtime_takes_no_agents() -> None:
    """Whoever still holds it is told."""
    async with open_runtime() as runtime:
        pass
    with pytest.raises(AgentStopped, match="takes no new agents"):
        await runtime.spawn(spec_of())


@pytest.mark.parametrize("error", [KeyError("mine"), ExceptionGroup("two", [ValueError(), KeyError()])])
async def test_an_error_of_the_body_leaves_as_itself(error: Exception) -> None:
    """Not in a group, and not another: the very object."""
    with pytest.raises(type(error)) as caught:
        async with open_runtime() as runtime:
            await runtime.spawn(spec_of())
            raise error

    assert error is caught.value


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_an_exit_of_the_body_leaves_as_itself(error: BaseException) -> None:
    """Ctrl-C or `sys.exit(3)` in the block stops everything, and is what the program sees: an exit status, no group."""
    with pytest.raises(type(error)) as caught:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(spec_of())
            raise error

    assert error is caught.value
    assert agent.stopped.is_set()


async def test_an_error_of_the_body_cancels_the_runs_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """There is no grace for runs whose program has failed; they are settled all the same."""
    async with trio.open_nursery() as outside:
        with pytest.raises(KeyError):
            async with open_runtime() as runtime:
                agent = await runtime.spawn(spec_of(ASK, "fine"))
                await begin(agent, outside)
                await trio.sleep(0.5)
                raise KeyError("mine")

    assert 0.5 == trio.current_time()
    assert ["run_cancelled", "agent_stopped"] == types_of(agent)[-2:]


async def test_runs_end_at_their_next_boundary(autojump_clock: trio.testing.MockClock) -> None:
    """Leaving the block lets the step in hand finish; then the run ends, with a result, for the reason given."""
    async with trio.open_nursery() as outside:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(spec_of(ASK, "never asked for"))
            run = await begin(agent, outside)
            await trio.sleep(0.5)
        left_at = trio.current_time()
    result = await run.result()

    assert 1.0 == left_at
    assert ("caller", "the runtime is being closed") == (result.stopped_by, result.stop_reason)
    assert ["ok"] == [r.status for r in result.steps[0].results]


async def test_a_run_that_takes_too_long_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """The grace time is the most that leaving the block takes."""

    async def linger() -> str:
        """Take long."""
        await trio.sleep(1000)
        return "late"

    async with trio.open_nursery() as outside:
        async with open_runtime(stop_grace_seconds=2) as runtime:
            spec = AgentSpec(model=Scripted([reply("", call("linger", id="c1"))]), tools=[linger])
            agent = await runtime.spawn(spec)
            await begin(agent, outside)
            await trio.sleep(0.5)
        left_at = trio.current_time()

    assert 2.5 == left_at
    assert ["run_cancelled", "agent_stopped"] == types_of(agent)[-2:]


async def test_an_open_gate_ends_with_its_agent(autojump_clock: trio.testing.MockClock) -> None:
    """Nobody can answer any more: the request is `agent_ended`, and the run ends at once."""
    async with trio.open_nursery() as outside:
        async with open_runtime() as runtime:
            spec = spec_of(ASK, reply("", call("look", id="c2")), max_tool_iterations=1, continuation=remote())
            agent = await runtime.spawn(spec)
            run = await begin(agent, outside)
            await trio.sleep(5)
        left_at = trio.current_time()
    resolved = [event for event, _ in agent._stream.read(0)[1] if isinstance(event, ContinuationResolved)]

    assert 5.0 == left_at
    assert [("agent_ended", None)] == [(event.outcome, event.by) for event in resolved]
    assert "caller" == (await run.result()).stopped_by
    assert () == agent.requests.pending()


async def test_an_agent_may_be_stopped_alone(autojump_clock: trio.testing.MockClock) -> None:
    """`stop` ends its run at the boundary and then the agent; the others go on."""
    async with open_runtime() as runtime, trio.open_nursery() as outside:
        first, second = [await runtime.spawn(spec_of(ASK, "fine")) for _ in range(2)]
        await begin(first, outside)
        run = await begin(second, outside)
        await trio.sleep(0.5)
        first.stop("enough")
        with pytest.raises(AgentStopped, match="enough"):
            async with first.run("again", if_busy="queue"):
                pass
        await first.stopped.wait()
        agents = runtime.agents
        result = await run.result()

    assert (second,) == agents
    assert ["run_finished", "agent_stopped"] == types_of(first)[-2:]
    assert "fine" == result.text


async def test_a_crash_of_one_agent_is_its_own() -> None:
    """Its host fails, it says so and takes no more runs; its runs are settled; the other agents do not notice."""
    async with open_runtime() as runtime, trio.open_nursery() as outside:
        broken, sound = [await runtime.spawn(spec_of(ASK, "fine")) for _ in range(2)]
        await begin(broken, outside)
        assert broken._nursery is not None
        broken._nursery.start_soon(fail)
        await broken.stopped.wait()
        async with sound.run("go") as run:
            result = await run.result()
        with pytest.raises(AgentStopped, match="it crashed"):
            async with broken.run("again"):
                pass
        failed = [event for event, _ in broken._stream.read(0)[1] if isinstance(event, AgentFailed)]

    assert ["ValueError: broken"] == [event.error.message for event in failed]
    assert "run_cancelled" in types_of(broken)
    assert "fine" == result.text


async def fail() -> None:
    await trio.lowlevel.checkpoint()
    raise ValueError("broken")


async def test_a_decision_finds_its_agent(autojump_clock: trio.testing.MockClock) -> None:
    """`runtime.decide` answers the request of whichever agent asked; one that nobody asked is not found."""
    async with open_runtime() as runtime:
        spec = spec_of(ASK, reply("", call("look", id="c2")), "fine", max_tool_iterations=1, continuation=remote())
        agents = [await runtime.spawn(spec_of()), await runtime.spawn(spec), await runtime.spawn(spec_of())]
        async with agents[1].run("go") as run:
            await trio.sleep(5)
            (request,) = run.open_requests
            unknown = await runtime.decide("q-none", ContinuationResponse("approve"))
            first = await runtime.decide(request.request, ContinuationResponse("approve"), by="me")
            again = await runtime.decide(request.request, ContinuationResponse("decline"))
            result = await run.result()

    assert ["not_found", "accepted", "already_resolved"] == [unknown.status, first.status, again.status]
    assert first.resolution == again.resolution
    assert first.resolution is not None
    assert "me" == first.resolution.by
    assert "fine" == result.text


async def test_an_agent_is_found_by_its_id_or_its_name() -> None:
    """A name that several have finds none of them, and neither does one that has gone: the error lists who is there."""
    async with open_runtime() as runtime:
        ann, bob, other = [await runtime.spawn(spec_of(name=name)) for name in ("ann", "bob", "bob")]
        found = [runtime.agent(which) for which in ("ann", bob.id)]
        with pytest.raises(LookupError, match=f"2 agents 'bob'.*{bob.id}.*{other.id}"):
            runtime.agent("bob")
        ann.stop()
        await ann.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(LookupError, match=f"0 agents 'ann'.*bob \\({bob.id}\\), bob \\({other.id}\\)$"):
            runtime.agent("ann")

    assert [ann, bob] == found


async def test_statistics(autojump_clock: trio.testing.MockClock) -> None:
    """How many agents, how many of them run, and what all of them have used."""
    async with open_runtime() as runtime, trio.open_nursery() as outside:
        agents = [await runtime.spawn(spec_of(ASK, "fine")) for _ in range(3)]
        idle = runtime.statistics()
        await begin(agents[0], outside)
        await trio.sleep(0.5)
        busy = runtime.statistics()
        await trio.sleep(1)
        done = runtime.statistics()

    assert [(3, 0, 0), (3, 1, 1), (3, 0, 2)] == [(s.agents, s.running, s.llm_calls) for s in (idle, busy, done)]
    assert (0, 0) == (runtime.statistics().agents, runtime.statistics().tool_threads.abandoned)


@pytest.mark.slow
async def test_a_thousand_idle_agents() -> None:
    """They start and stop clean: all say that they have stopped, and no task is left."""
    before = trio.lowlevel.current_statistics().tasks_living
    async with open_runtime() as runtime:
        agents = [await runtime.spawn(spec_of()) for _ in range(1000)]
        living = trio.lowlevel.current_statistics().tasks_living

    assert 1000 == len({agent.id for agent in agents})
    assert living - before <= 1001
    assert before == trio.lowlevel.current_statistics().tasks_living
    assert all(agent.stopped.is_set() for agent in agents)
    assert {("agent_spawned", "agent_stopped")} == {tuple(types_of(agent)) for agent in agents}


async def test_a_paused_run_is_answered_through_its_runtime(autojump_clock: trio.testing.MockClock) -> None:
    """Results are given by the run's id; what is not waited for, or not going on, is refused and changes nothing."""
    mine = external_tool("mine", "The caller's.", {"type": "object", "properties": {}})
    spec = AgentSpec(model=Scripted([reply("", call("mine", id="c1")), "done"]), tools=[mine])
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run("go") as run:
            paused = await run.result()
            waiting = agent.statistics().state
            with pytest.raises(SubmissionRefused, match="no run 'r-other' is going on"):
                runtime.submit("r-other", {"c1": 1})
            with pytest.raises(SubmissionRefused, match="not waited for: c2; waited for are c1"):
                runtime.submit(run.id, {"c2": 1})
            runtime.submit(run.id, {"c1": "given"})
            result = await run.result()

    assert ("pending_tools", "waiting") == (paused.stopped_by, waiting)
    assert ("done", "given") == (result.text, result.steps[0].results[0].text)
