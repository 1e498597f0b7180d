"""Stopping an agent, or the runtime, at a boundary or now."""

from __future__ import annotations

import pytest
import trio

from actors import AgentSpec, open_runtime
from actors.models.scripted import Scripted, call, reply
from protocol.errors import AgentStopped, RunCancelledError, RunSuspended
from tests.support.disk import FakeDisk, journal_on


def slow() -> AgentSpec:
    """One tool call of a minute, then an answer."""

    async def work() -> str:
        """Work."""
        await trio.sleep(60)
        return "worked"

    return AgentSpec(name="ann", model=Scripted([reply("", call("work", {})), "done"]), tools=[work], max_steps=5)


async def test_now_cancels_the_run_in_hand(autojump_clock: trio.testing.MockClock) -> None:
    """The run ends cancelled with the reason, whoever waited for his turn is refused, and the agent is over at once."""
    refused: list[str] = []

    async with open_runtime() as runtime:
        agent = await runtime.spawn(slow())
        run = await agent.start("go")

        async def wait_for_turn() -> None:
            try:
                async with agent.run("again", if_busy="queue"):
                    raise AssertionError
            except AgentStopped as error:
                refused.append(str(error))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_turn)
            await trio.sleep(1)
            agent.stop("enough", now=True)
            await agent.stopped.wait()
        at = trio.current_time()
        with pytest.raises(RunCancelledError, match="enough"):
            await run.result()

    assert 1.0 == at
    assert ["agent ann has been stopped: enough"] == refused


async def test_a_stop_can_be_sharpened(autojump_clock: trio.testing.MockClock) -> None:
    """At its boundary first; and when that takes too long, now."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(slow())
        run = await agent.start("go")
        await trio.sleep(1)
        agent.stop("politely")
        await trio.sleep(1)
        between = run.over
        agent.stop("firmly", now=True)
        await agent.stopped.wait()
        at = trio.current_time()
        with pytest.raises(RunCancelledError, match="firmly"):
            await run.result()

    assert (False, 2.0) == (between, at)


async def test_stopping_an_idle_agent_now(autojump_clock: trio.testing.MockClock) -> None:
    """There is nothing to cancel: it is over, and a run that had ended stays as it ended."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(slow())
        async with agent.run("go") as run:
            result = await run.result()
        agent.stop(now=True)
        await agent.stopped.wait()
        again = await run.result()

    assert "done" == result.text == again.text


@pytest.mark.parametrize(("now", "seconds", "ends"), [(False, 60.0, "done"), (True, 1.0, "cancelled")])
async def test_the_runtime_stops_at_boundaries_or_now(
    now: bool, seconds: float, ends: str, autojump_clock: trio.testing.MockClock
) -> None:
    """At a boundary the step in hand is finished; `now` all runs are cancelled; both wait for the end."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(slow())
        run = await agent.start("go")
        await trio.sleep(1)
        await runtime.stop(grace_seconds=100, now=now)
        at = trio.current_time()
        try:
            told = "done" if (await run.result()).stopped_by == "caller" else "?"
        except RunCancelledError:
            told = "cancelled"

    assert (seconds, ends) == (at, told)


async def test_with_a_journal_runs_are_written_down_where_they_are(autojump_clock: trio.testing.MockClock) -> None:
    """Stopping `now` does not wait for a boundary, and no run has an end: it goes on when its agent is spawned again."""
    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        agent = await runtime.spawn(slow())
        run = await agent.start("go")
        await trio.sleep(1)
        await runtime.stop(grace_seconds=100, now=True)
        at = trio.current_time()
        with pytest.raises(RunSuspended):
            await run.result()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        again = (await runtime.spawn(slow())).brought_back

    assert 1.0 == at
    assert again is not None
    assert run.id == again.id
