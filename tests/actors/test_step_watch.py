"""Who holds up everybody else is told of: by its name, and in its run."""

from __future__ import annotations

import logging

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, open_runtime
from actors.agent import StepWatch
from actors.models import Scripted, call, reply
from protocol.events import Warned


@attrs.define
class Watch:
    """A clock of the test's own."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def watched() -> tuple[Watch, StepWatch]:
    """A watch over the test's tasks, for a second."""
    await trio.lowlevel.checkpoint()
    clock = Watch()
    return clock, StepWatch(1.0, clock=clock)


async def warnings_of(tool_seconds: float, watched: tuple[Watch, StepWatch]) -> list[Warned]:
    """Of a run with a tool that computes for so long."""
    clock, watch = watched

    async def compute() -> str:
        """Compute."""
        await trio.lowlevel.checkpoint()
        clock.now += tool_seconds
        return "done"

    trio.lowlevel.add_instrument(watch)
    try:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(
                AgentSpec(model=Scripted([reply("", call("compute", id="a")), "ok"]), tools=[compute])
            )
            async with agent.run("go") as run:
                found = [event async for event in run if isinstance(event, Warned)]
            assert (await run.result()).answered
            assert 0 == run.statistics().refused_events
    finally:
        trio.lowlevel.remove_instrument(watch)
    return found


async def test_a_step_that_takes_too_long(watched: tuple[Watch, StepWatch], caplog: pytest.LogCaptureFixture) -> None:
    """It is told in the log and by an event of its run, with the task's name and the time; once."""
    (warned,) = await warnings_of(1.5, watched)

    text = "the task compute held everything up for 1.5 s: call what blocks in a thread, or make it async"
    assert ("held_up", text) == (warned.code, warned.text)
    line = (logging.WARNING, "a task held everything up task=compute seconds=1.5")
    assert [line] == [(record.levelno, record.getMessage()) for record in caplog.records]
    assert 1 == watched[1].found


async def test_a_step_that_takes_no_longer_than_it_may(watched: tuple[Watch, StepWatch]) -> None:
    """Nothing is told."""
    assert [] == await warnings_of(1.0, watched)
    assert 0 == watched[1].found


async def test_a_task_without_a_run(watched: tuple[Watch, StepWatch], caplog: pytest.LogCaptureFixture) -> None:
    """It is told in the log alone."""
    clock, watch = watched
    trio.lowlevel.add_instrument(watch)
    try:
        await trio.lowlevel.checkpoint()
        clock.now += 2
        await trio.testing.wait_all_tasks_blocked()
    finally:
        trio.lowlevel.remove_instrument(watch)

    assert 1 == watch.found == len(caplog.records)


async def test_telling_is_not_told_of(watched: tuple[Watch, StepWatch]) -> None:
    """A log that takes its time does not fill itself."""
    clock, watch = watched

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            clock.now += 5

    slow = Slow()
    logging.getLogger("onward").addHandler(slow)
    trio.lowlevel.add_instrument(watch)
    try:
        await trio.lowlevel.checkpoint()
        clock.now += 2
        await trio.testing.wait_all_tasks_blocked()
    finally:
        trio.lowlevel.remove_instrument(watch)
        logging.getLogger("onward").removeHandler(slow)

    assert (1, 1007.0) == (watch.found, clock.now)


async def test_the_runtime_watches_if_it_is_asked_to() -> None:
    """While it is open, and no longer; `statistics()` counts what was found."""
    async with open_runtime(slow_step_seconds=1e-9) as runtime:
        await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        found = runtime.statistics().slow_steps
    watch = runtime._steps
    assert watch is not None
    after = watch.found
    await trio.testing.wait_all_tasks_blocked()
    async with open_runtime() as unwatched:
        nothing = unwatched.statistics().slow_steps

    assert 0 < found <= after == watch.found
    assert 0 == nothing
