"""What ignores its cancel is outlived: the run ends in its grace time, and nothing late changes it."""

from __future__ import annotations

import attrs
import hypothesis
import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, ContinuationRequest, ContinuationResponse, Run, open_runtime
from actors.models import Scripted, call, reply
from protocol.errors import AgentBusy, RunCancelledError
from protocol.events import ContinuationResolved, RunEvent, ToolFinished, ToolStarted
from protocol.turns import ToolMessage

assert hypothesis  # its import makes trio's scheduler follow the seed

GRACE = 5.0
STUBBORN = 50.0


@attrs.define
class Stubborn:
    """A tool that does not listen for `STUBBORN` seconds."""

    ended_at: float | None = None

    async def work(self) -> str:
        """Work on, whatever is asked."""
        with trio.CancelScope(shield=True):
            await trio.sleep(STUBBORN)
        self.ended_at = trio.current_time()
        return "late"


def spec_of(tool: Stubborn, *answers: str) -> AgentSpec:
    script = [reply("", call("work", id="c1")), *(reply(answer) for answer in answers)]
    return AgentSpec(model=Scripted(script), tools=[tool.work], cancel_grace_seconds=GRACE)


def events_of(agent: Agent, run: Run) -> list[RunEvent]:
    return [event for event, _ in agent._stream.read(0)[1] if isinstance(event, RunEvent) and event.run == run.id]


async def until_tool_runs(run: Run) -> None:
    async for event in run:
        if isinstance(event, ToolStarted):
            return


async def test_a_cancelled_run_outlives_its_tool(autojump_clock: trio.testing.MockClock) -> None:
    """One terminal event, exactly after the grace time; what the tool returns later is refused."""
    tool = Stubborn()
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec_of(tool))
        async with agent.run("go") as run:
            await until_tool_runs(run)
            await trio.sleep(1)
            asked_at = trio.current_time()
            run.cancel("enough")
            with pytest.raises(RunCancelledError) as caught:
                await run.result()
            seconds = trio.current_time() - asked_at
        at_end = events_of(agent, run)
        await trio.sleep(STUBBORN)
        later = events_of(agent, run)
        stored = [m.results[0] for m in agent.messages if isinstance(m, ToolMessage)]

    assert GRACE == seconds
    assert "enough" == str(caught.value)
    assert ["run_cancelled"] == [event.type for event in at_end if event.type.startswith("run_") and event != at_end[0]]
    assert at_end == later
    assert tool.ended_at is not None
    assert [("c1", "interrupted", True)] == [(r.call, r.status, r.entered) for r in stored]
    assert ["interrupted"] == [event.status for event in later if isinstance(event, ToolFinished)]


async def test_the_agent_is_busy_until_its_star_has_joined(autojump_clock: trio.testing.MockClock) -> None:
    """After the terminal event a new run is refused until the tool has really ended; then it works."""
    tool = Stubborn()
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec_of(tool, "fine"))
        async with agent.run("go") as run:
            await until_tool_runs(run)
            run.cancel("enough")
        with pytest.raises(AgentBusy):
            async with agent.run("again"):
                pass
        async with agent.run("again", if_busy="queue") as second:
            started_at = trio.current_time()
            result = await second.result()

    assert started_at == tool.ended_at == STUBBORN
    assert "fine" == result.text
    assert result.answered


async def test_leaving_the_block_waits_for_the_terminal_event(autojump_clock: trio.testing.MockClock) -> None:
    """A caller that leaves its run is held for the grace time at most, however stubborn the tool."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec_of(Stubborn()))
        async with agent.run("go") as run:
            await until_tool_runs(run)
            left_at = trio.current_time()
        seconds = trio.current_time() - left_at

        assert GRACE == seconds
        assert run.over
        assert "run_cancelled" == events_of(agent, run)[-1].type


async def test_a_cancelled_runtime_settles_the_run_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """When all is cancelled from outside, the terminal event still comes in the grace time, not with the tool."""
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(spec_of(Stubborn()))
            stream = agent._stream
            async with agent.run("go") as run, trio.open_nursery() as nursery:
                nursery.start_soon(until_tool_runs, run)
                await until_tool_runs(run)
                scope.cancel("shutting down")
                with trio.CancelScope(shield=True):
                    await trio.sleep(GRACE + 0.1)
                types = [event.type for event, _ in stream.read(0)[1]]

    assert "run_cancelled" == types[-1]


async def test_a_stubborn_provider_cannot_outlive_its_time(autojump_clock: trio.testing.MockClock) -> None:
    """The deadline decides at its moment; what the provider says after it changes nothing (G8)."""
    resolved_at: list[float] = []

    async def provider(_request: ContinuationRequest) -> ContinuationResponse:
        with trio.CancelScope(shield=True):
            await trio.sleep(STUBBORN)
        return ContinuationResponse("approve")

    async with open_runtime() as runtime:
        agent = await runtime.spawn(gated(provider))
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, ContinuationResolved):
                    resolved_at.append(trio.current_time())
                    outcome = event.outcome
            ended_at = trio.current_time()
            result = await run.result()

    assert [3.0] == resolved_at
    assert "timed_out" == outcome
    assert 3.0 + GRACE == ended_at
    assert "model" == result.finalized


async def test_a_decision_from_outside_beats_a_stubborn_provider(autojump_clock: trio.testing.MockClock) -> None:
    """A run that was decided for goes on at once, and its end waits the grace time at most for the provider."""

    async def provider(_request: ContinuationRequest) -> ContinuationResponse:
        with trio.CancelScope(shield=True):
            await trio.sleep(STUBBORN)
        return ContinuationResponse("decline")

    async with open_runtime() as runtime:
        agent = await runtime.spawn(gated(provider))
        async with agent.run("go") as run:
            await trio.sleep(1)
            await run.decide(run.open_requests[0].request, ContinuationResponse("approve"))
            result = await run.result()
            seconds = trio.current_time()

    assert 1 + GRACE == seconds
    assert "answer" == result.text
    assert 2 == result.counters.tool_iterations


@pytest.mark.parametrize("seed", range(6))
def test_a_child_ends_before_its_caller(seed: int) -> None:
    """Also where both are outlived by one stubborn tool: the innermost is settled first, whatever is scheduled when."""
    trio._core._run._r.seed(seed)
    seen: list[tuple[str, tuple[str, ...]]] = []

    async def main() -> None:
        async with open_runtime() as runtime:
            child = await runtime.spawn(spec_of(Stubborn()))

            async def delegate() -> str:
                """Ask the child."""
                async with child.run("go") as run:
                    return (await run.result()).text

            script = [reply("", call("delegate", id="d1"))]
            root = await runtime.spawn(AgentSpec(model=Scripted(script), tools=[delegate], cancel_grace_seconds=GRACE))
            async with root.run("go"):
                await trio.sleep(1)
            events = events_below(root)
            seen.extend((event.type, event.agent_path) for event in events if event.type == "run_cancelled")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert [("run_cancelled", ("agent",)), ("run_cancelled", ())] == seen


def events_below(agent: Agent) -> list[RunEvent]:
    return [event for event, _ in agent._stream.read(0)[1] if isinstance(event, RunEvent)]


def gated(provider: object) -> AgentSpec:
    async def add() -> str:
        await trio.lowlevel.checkpoint()
        return "1"

    script = [reply("", call("add", id="c1")), reply("", call("add", id="c2")), reply("answer")]
    return AgentSpec(
        model=Scripted(script),
        tools=[add],
        max_tool_iterations=1,
        continuation=provider,  # type: ignore[arg-type]
        continuation_timeout_seconds=3.0,
        cancel_grace_seconds=GRACE,
    )
