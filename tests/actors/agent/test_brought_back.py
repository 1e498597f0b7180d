"""An agent that comes back from its journal: who it is, what it knows, and what its unfinished run does (T9)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Agent,
    AgentSpec,
    Budget,
    ContinuationResponse,
    Limits,
    Run,
    Runtime,
    max_steps,
    open_runtime,
    remote,
    sub_agent,
    tool,
)
from actors.journal import DiskJournal
from actors.models.scripted import Scripted, call, reply
from actors.tools import Tool
from protocol.codec import decode_event
from protocol.errors import AgentStopped, JournalError, RunSuspended
from protocol.events import ContinuationRequired, Event, Rollback, RunResumed, Warned
from protocol.limits import Counters
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import ToolMessage, Turn
from tests.support.disk import FakeDisk, events_of, facts_of, journal_on
from tests.support.scripts import calls_until, calls_while_on

APPROVE = ContinuationResponse("approve")


@attrs.define
class Place:
    """A disk, and the processes that have it one after the other."""

    disk: FakeDisk = attrs.field(factory=FakeDisk)

    def again(self, **options: Any) -> Any:
        """A runtime in a new process."""
        self.disk = FakeDisk(list(self.disk.batches))
        return open_runtime(journal=journal_on(self.disk), **options)

    def dead(self, batches: int) -> None:
        """The process died when so many commits had been made."""
        del self.disk.batches[batches:]

    @property
    def events(self) -> list[Event]:
        return [decode_event(line) for line in events_of(self.disk.records())]


def counting(runs: list[str], seconds: float = 0, name: str = "t") -> Tool:
    async def body() -> int:
        runs.append(name)
        await trio.sleep(seconds)
        return 1

    return tool(body, name=name, description="A tool.")


def gated(runs: list[str], **options: Any) -> AgentSpec:
    script = Scripted(calls_until(3, "done"))
    return AgentSpec(name="auditor", model=script, tools=[counting(runs)], max_tool_iterations=2, **options)


async def run_to_gate(runtime: Runtime, spec: AgentSpec) -> tuple[Agent, Run, str]:
    agent = await runtime.spawn(spec)
    run = await agent.start("go")
    return agent, run, await asked_by(run)


async def asked_by(run: Run) -> str:
    """The first question of a run."""
    while not run.open_requests:  # noqa: ASYNC110  in virtual time
        await trio.sleep(0.01)
    return run.open_requests[0].request


async def test_it_is_whom_it_was(autojump_clock: trio.testing.MockClock) -> None:
    """The same id, conversation, epoch and numbers, and its next run goes on from there."""
    place = Place()
    async with place.again() as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted(["one"])))
        async with agent.run("first") as run:
            await run.result()
        before = agent.id, agent.stream.epoch, list(agent.messages), agent.stream.visible
    async with place.again() as runtime:
        model = Scripted(["two"])
        agent = await runtime.spawn(AgentSpec(name="auditor", model=model))
        after = agent.id, agent.stream.epoch, list(agent.messages), agent.stream.visible
        number = agent.stream.end
        async with agent.run("second") as run:
            await run.result()

    assert before == after
    assert agent.brought_back is None
    assert number == before[3] + 1, "agent_spawned is told again, under the next number"
    assert 3 == len(model.requests[0].messages)


async def test_the_oldest_of_a_name_comes_first(autojump_clock: trio.testing.MockClock) -> None:
    """Each is brought back once; the next of that name is a new one."""
    place = Place()
    async with place.again() as runtime:
        made = [(await runtime.spawn(AgentSpec(name="worker", model=Scripted([])))).id for _ in range(2)]
    async with place.again() as runtime:
        back = [(await runtime.spawn(AgentSpec(name="worker", model=Scripted([])))).id for _ in range(3)]

    assert made == back[:2]
    assert back[2] not in made


async def test_an_agent_that_was_stopped_does_not_come_back(autojump_clock: trio.testing.MockClock) -> None:
    """`agent.stop()` is for good; closing the runtime is not."""
    place = Place()
    async with place.again() as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted([])))
        agent.stop("no longer needed")
        await agent.stopped.wait()
    async with place.again() as runtime:
        other = await runtime.spawn(AgentSpec(name="auditor", model=Scripted([])))

    assert agent.id != other.id
    assert facts_of(place.disk.records(agent.id)[-1]).retired


async def test_closing_the_runtime_suspends(autojump_clock: trio.testing.MockClock) -> None:
    """No end is told; whoever waits for the result is told what it is, and the agent takes no run any more."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        agent, run, _ = await run_to_gate(runtime, gated(runs, continuation=remote()))
    with pytest.raises(RunSuspended, match="waits to go on") as caught:
        await run.result()
    with pytest.raises(AgentStopped):
        await agent.start("again")

    assert ["t", "t"] == runs
    assert "continuation_required" == place.events[-1].type
    assert 2 == caught.value.partial.counters.tool_iterations
    assert 0 == run.statistics().refused_events


async def test_a_tool_may_end_within_the_grace_time(autojump_clock: trio.testing.MockClock) -> None:
    """What is running when the runtime is closed is finished; the run stands still before the next model call."""
    place, runs = Place(), list[str]()
    spec = AgentSpec(name="auditor", model=Scripted(calls_until(2)), tools=[counting(runs, 1)])
    async with place.again(stop_grace_seconds=5) as runtime:
        agent = await runtime.spawn(spec)
        await agent.start("go")
        await trio.sleep(0.5)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec)
        assert agent.brought_back is not None
        result = await agent.brought_back.result()

    assert ["ok", "ok"] == [one.status for step in result.steps for one in step.results]
    assert ["t", "t"] == runs
    assert 3 == result.counters.llm_calls, "none was made twice"


async def test_a_tool_that_takes_longer_is_interrupted(autojump_clock: trio.testing.MockClock) -> None:
    """It is not run again: it may have had an effect."""
    place, runs = Place(), list[str]()
    spec = AgentSpec(name="auditor", model=Scripted(calls_until(2)), tools=[counting(runs, 100)])
    async with place.again(stop_grace_seconds=1) as runtime:
        agent = await runtime.spawn(spec)
        await agent.start("go")
        await trio.sleep(0.5)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec)
        assert agent.brought_back is not None
        result = await agent.brought_back.result()

    assert ["interrupted", "ok"] == [one.status for step in result.steps for one in step.results]
    assert ["t", "t"] == runs


async def test_the_first_event_tells_the_counters(autojump_clock: trio.testing.MockClock) -> None:
    """`run_resumed` says what has been used: no allowance begins anew."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        await run_to_gate(runtime, gated(runs, continuation=remote()))
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        (resumed,) = [event for event, _ in agent.stream.read(0)[1] if isinstance(event, RunResumed)]

    assert Counters(steps=2, llm_calls=3, tool_iterations=2, window=2, tool_calls=2) == resumed.counters


async def test_an_open_question_can_be_answered_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """Under its id, as soon as the agent is there; asked once, and late answers are told what stands."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        _, _, asked = await run_to_gate(runtime, gated(runs, continuation=remote()))
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        replies = [await runtime.decide(asked, APPROVE) for _ in range(2)]
        assert agent.brought_back is not None
        result = await agent.brought_back.result()
    async with place.again() as runtime:
        await runtime.spawn(gated(runs, continuation=remote()))
        replies.append(await runtime.decide(asked, APPROVE))

    assert ["accepted", "already_resolved", "already_resolved"] == [reply.status for reply in replies]
    assert ("done", True) == (result.text, result.answered)
    assert 1 == sum(isinstance(event, ContinuationRequired) for event in place.events)


async def test_time_down_does_not_count(autojump_clock: trio.testing.MockClock) -> None:
    """A question has the time left that it had; so has the wall clock of the run."""
    place, runs = Place(), list[str]()
    spec = gated(runs, continuation=remote(timeout_seconds=100))
    async with place.again() as runtime:
        _, run, _ = await run_to_gate(runtime, spec)
        await trio.sleep(95)
    await trio.sleep(10_000)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec)
        ((_, left),) = agent.requests.pending()
        began = trio.current_time()
        assert agent.brought_back is not None
        result = await agent.brought_back.result()
        waited = trio.current_time() - began

    assert left is not None
    assert 5 == pytest.approx(left, abs=0.1)
    assert 5 == pytest.approx(waited, abs=0.1)
    assert "declined" not in result.text
    assert result.elapsed_seconds < 200


async def test_after_a_crash_about_the_time_is_known(autojump_clock: trio.testing.MockClock) -> None:
    """While a question waits, what is left of its time is written down twice a minute."""
    place, runs = Place(), list[str]()
    spec = gated(runs, continuation=remote(timeout_seconds=600))
    async with place.again() as runtime:
        await run_to_gate(runtime, spec)
        await trio.sleep(310)
        alive = len(place.disk.batches)
    place.dead(alive)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec)
        ((_, left),) = agent.requests.pending()

    assert left is not None
    assert 290 <= left <= 321


class Halting:
    """A model that stops in the middle of its first reply, for good; a new one of it answers."""

    name = "halting"
    profile = Profile(reports_sending=True)

    def __init__(self, *, halts: bool) -> None:
        self._halts = halts

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        emit(RequestSent())
        emit(TextDelta("half"))
        if self._halts:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return reply("whole")


async def test_a_reply_in_flight_is_taken_back_and_made_again(autojump_clock: trio.testing.MockClock) -> None:
    """What was shown of it is void; the lost call counts, with its usage unknown (B1)."""
    place = Place()
    async with place.again(stop_grace_seconds=1) as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Halting(halts=True)))
        await agent.start("go")
        await trio.sleep(1)
    async with place.again() as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Halting(halts=False)))
        assert agent.brought_back is not None
        result = await agent.brought_back.result()
    kinds = [event.type for event in place.events if event.type not in {"agent_spawned", "step_started"}]
    back = next(event for event in place.events if isinstance(event, Rollback))

    expected = ["run_started", "content_delta", "run_resumed", "rollback", "content_delta", "step_finished"]

    assert [*expected, "run_finished"] == kinds
    assert 0 == back.to
    assert ("whole", 2, False) == (result.text, result.counters.llm_calls, result.usage.complete)
    assert 2 == len(result.messages)


async def test_the_lost_call_cannot_be_had_again(autojump_clock: trio.testing.MockClock) -> None:
    """B1 holds across a restart: with one call allowed and lost, the run ends at its limit."""
    place = Place()
    async with place.again(stop_grace_seconds=1) as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Halting(halts=True), max_llm_calls=1))
        await agent.start("go")
        await trio.sleep(1)
    async with place.again() as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Halting(halts=False), max_llm_calls=1))
        assert agent.brought_back is not None
        result = await agent.brought_back.result()

    assert ("llm_calls", 1) == (result.stopped_by, result.counters.llm_calls)


async def test_those_above_get_what_the_run_had_used(autojump_clock: trio.testing.MockClock) -> None:
    """A budget that a restored run draws on knows what it had used before (B2)."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        await run_to_gate(runtime, gated(runs, continuation=remote()))
    async with place.again() as runtime:
        budget = Budget(max_llm_calls=3)
        agent = await runtime.spawn(gated(runs, continuation=remote(), budget=budget))
        assert agent.brought_back is not None
        result = await agent.brought_back.result()

    assert 3 == budget.statistics().llm_calls == result.counters.llm_calls
    assert "llm_calls" == result.stopped_by, "nobody is asked where no call is left"


async def test_limits_are_those_that_it_was_started_with(autojump_clock: trio.testing.MockClock) -> None:
    """Given for the run, they hold for the run, whatever the agent's are now."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        run = await agent.start("go", limits=Limits(max_tool_iterations=1))
        await asked_by(run)
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        back = agent.brought_back
        assert back is not None
        asked = []
        while not back.over:
            for request in back.open_requests:
                asked.append(request)
                await back.decide(request.request, APPROVE)
            await trio.sleep(0.01)

    assert [1, 1] == [request.limit.max for request in asked if isinstance(request, ContinuationRequired)]


async def test_what_cannot_be_brought_back_is_said(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that is gone, a gate that is: the run goes on, and a person can know."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        run = await agent.start("go")
        await asked_by(run)
    async with place.again() as runtime:
        gone = AgentSpec(name="auditor", model=Scripted(["fine"]), max_tool_iterations=2)
        agent = await runtime.spawn(gone)
        assert agent.brought_back is not None
        result = await agent.brought_back.result()
    told = [event.text for event in place.events if isinstance(event, Warned)]

    assert any("tools that are not there: t" in text for text in told)
    assert any("has no continuation=" in text for text in told)
    assert "tool_iterations" == result.stopped_by


async def test_what_was_given_for_the_run_alone_is_said(autojump_clock: trio.testing.MockClock) -> None:
    """Code cannot be written down: the agent's own holds, and `spawn(context=)` gives the context anew."""
    place, runs = Place(), list[str]()
    async with place.again() as runtime:
        agent = await runtime.spawn(gated(runs, continuation=remote()))
        with trio.CancelScope() as scope:
            async with agent.run("go", stop_when=[max_steps(9)], context="mine") as run:
                await asked_by(run)
                alive = len(place.disk.batches)
                scope.cancel()
    place.dead(alive)
    told = []
    for context in (None, "given"):
        async with place.again() as runtime:
            agent = await runtime.spawn(gated(runs, continuation=remote()), context=context)
            assert agent.brought_back is not None
            await runtime.flushed()
        told.append([event.text for event in place.events if isinstance(event, Warned)])
        place.dead(alive)

    assert [2, 1] == [len(texts) for texts in told]
    assert "stop_when= was given for this run alone" in told[0][0]
    assert "give spawn(context=) one" in told[0][1]


async def test_without_a_journal_nothing_is_known() -> None:
    """And it is said."""
    async with open_runtime() as runtime:
        with pytest.raises(JournalError, match="there is no journal"):
            await runtime.fork(AgentSpec(model=Scripted([])), "run-1", step=0)


async def test_a_run_can_be_forked_from_each_step(autojump_clock: trio.testing.MockClock) -> None:
    """A new agent goes on from there, as a new run; the first one is as it was."""
    place, runs = Place(), list[str]()
    spec = AgentSpec(name="auditor", model=Scripted(calls_until(3, "done")), tools=[counting(runs)])
    async with place.again() as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run("go") as run:
            first = await run.result()
        before = list(agent.messages)
        for step in range(3):
            other = attrs.evolve(spec, model=Scripted(calls_until(step + 2, "other")))
            fork = await runtime.fork(other, run.id, step=step)
            assert fork.brought_back is not None
            result = await fork.brought_back.result()

            assert "other" == result.text
            assert step + 3 == result.counters.steps == result.counters.llm_calls
            assert first.messages[: 1 + 2 * (step + 1)] == result.messages[: 1 + 2 * (step + 1)]
            assert fork.id != agent.id
            assert run.id != fork.brought_back.id
        last = await runtime.fork(spec, run.id, step=3)
        with pytest.raises(JournalError, match="knows nothing of step 4"):
            await runtime.fork(spec, run.id, step=4)

    assert before == list(agent.messages)
    assert (None, list(first.messages)) == (last.brought_back, list(last.messages))


async def test_sub_agents_end_with_the_call_that_started_them(autojump_clock: trio.testing.MockClock) -> None:
    """Their runs end in the events; the call is `interrupted`; none of it is made again."""
    place, runs = Place(), list[str]()
    child = AgentSpec(
        name="child",
        model=Scripted(calls_while_on()),
        tools=[counting(runs)],
        max_tool_iterations=1,
        continuation=remote(),
    )

    def script(request: ModelRequest) -> Any:
        answered = any(isinstance(message, ToolMessage) for message in request.messages)
        return "done" if answered else reply("", call("ask_child", {"task": "look"}, id="c9"))

    def spec() -> AgentSpec:
        return AgentSpec(name="root", model=Scripted(script), tools=[sub_agent(child)])

    async with place.again(stop_grace_seconds=1) as runtime:
        agent = await runtime.spawn(spec())
        run = await agent.start("go")
        asked = await asked_by(run)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec())
        late = await runtime.decide(asked, APPROVE)
        assert agent.brought_back is not None
        result = await agent.brought_back.result()
    end = [
        (event.type, getattr(event, "agent_path", ()))
        for event in place.events
        if event.type in {"continuation_resolved", "run_cancelled", "run_finished", "run_resumed"}
    ]

    assert [
        ("run_resumed", ()),
        ("continuation_resolved", ("child",)),
        ("run_cancelled", ("child",)),
        ("run_finished", ()),
    ] == end
    assert ["interrupted"] == [one.status for one in result.steps[0].results]
    assert ("already_resolved", "done") == (late.status, result.text)
    assert 4 == result.counters.llm_calls, "the child's are the root's"


async def test_conditions_are_asked_after_the_restart(autojump_clock: trio.testing.MockClock) -> None:
    """S2: a step whose conditions had not answered is not gone on from without them."""
    place, runs = Place(), list[str]()

    def spec(*, hangs: bool) -> AgentSpec:
        async def condition(_state: Any) -> str:
            if hangs:
                await trio.sleep_forever()
            return "enough"

        model = Scripted(calls_until(3, "done"))
        return AgentSpec(
            name="auditor", model=model, tools=[counting(runs)], stop_when=[condition], callback_timeout_seconds=1000
        )

    async with place.again(stop_grace_seconds=1) as runtime:
        agent = await runtime.spawn(spec(hangs=True))
        await agent.start("go")
        await trio.sleep(1)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec(hangs=False))
        assert agent.brought_back is not None
        result = await agent.brought_back.result()

    assert ("stop_condition", "enough", 1) == (result.stopped_by, result.stop_reason, result.counters.llm_calls)


@pytest.mark.parametrize("width", [1, 8])
async def test_bodies_that_start_together_wait_once(autojump_clock: trio.testing.MockClock, width: int) -> None:
    """Two barriers for each step, however many calls it has."""
    disk, runs = FakeDisk(), list[str]()
    journal = DiskJournal(lambda: disk, threaded=False, hold_seconds=10)
    calls = [call("t", {}, id=f"c{number}") for number in range(width)]
    async with open_runtime(journal=journal) as runtime:
        agent = await runtime.spawn(AgentSpec(model=Scripted([reply("", *calls), "done"]), tools=[counting(runs)]))
        async with agent.run("go") as run:
            await run.result()
        commits = journal.statistics().commits

    assert 4 == commits, "before each of two model calls, before the tools, before the result"
    assert width == len(runs)


async def test_all_agents_stand_still_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """While the runtime waits for a slow one, the others do not go on."""
    place, slow, quick = Place(), list[str](), list[str]()
    async with place.again(stop_grace_seconds=5) as runtime:
        first = AgentSpec(name="slow", model=Scripted(calls_until(1)), tools=[counting(slow, 4)])
        second = AgentSpec(name="quick", model=Scripted(calls_while_on()), tools=[counting(quick, 0.5)], max_steps=99)
        for spec in (first, second):
            await (await runtime.spawn(spec)).start("go")
        await trio.sleep(0.25)

    assert (["t"], ["t"]) == (slow, quick)


async def test_whoever_does_not_wait_for_it_does_not_stop_it(autojump_clock: trio.testing.MockClock) -> None:
    """Cancelled while it is read, it can be brought back still; cancelled after, it is there, and comes back the next time too."""
    place = Place()
    spec = AgentSpec(name="keeper", model=Scripted(["one", "two", "three"]))
    async with place.again() as runtime:
        before = await runtime.spawn(spec)
        await (await before.start("go")).result()
    async with place.again() as runtime:
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.spawn(spec)
        unread = [known.id for known in runtime.not_back]
        with trio.CancelScope() as scope, runtime.observe(lambda _agent: scope.cancel()):
            await runtime.spawn(spec)
        (there,) = runtime.agents
        await there.hosted.wait()
    async with place.again() as runtime:
        after = await runtime.spawn(spec)

    assert [before.id] == unread
    assert before.id == there.id == after.id
    assert 2 == len(after.messages)
