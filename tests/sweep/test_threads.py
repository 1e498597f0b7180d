"""A run whose tools are plain functions, in threads, cancelled at every scheduler step: what started really started."""

from __future__ import annotations

import contextlib
import threading

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, open_runtime
from actors.models import Scripted, call, reply
from protocol.errors import RunError
from protocol.events import ToolFinished, ToolStarted
from protocol.turns import Turn

from .world import StopAt


@attrs.define
class Outcome:
    steps: int
    entered: set[int]
    started: set[str]
    finished: set[str]
    abandoned: int


def play_threads(at: int | None) -> Outcome:
    """One round of three plain functions; the run is cancelled after step `at`. Time stands still."""
    entered: set[int] = set()
    left = threading.Semaphore(0)
    found: list[Outcome] = []
    instrument = StopAt(at, lambda: scope.cancel("swept"))
    scope = trio.CancelScope()

    def work(number: int) -> str:
        """Work."""
        entered.add(number)
        left.release()
        return "done"

    async def main() -> None:
        script: list[Turn | str] = [reply("", *(call("work", {"number": n}, id=f"c{n}") for n in range(3))), "all done"]
        async with open_runtime(tool_threads=2) as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted(script), tools=[work]))
            instrument.armed = True
            with scope:
                async with agent.run("go") as run:
                    with contextlib.suppress(RunError):
                        await run.result()
            instrument.armed = False
            events = [event for event, _ in agent._stream.read(0)[1]]
            started = {event.call for event in events if isinstance(event, ToolStarted)}
            for _ in started:
                left.acquire(timeout=0.2)
            for _ in range(200):  # a thread that has done its work needs a moment to say so
                if not runtime.statistics().tool_threads.abandoned:
                    break
                await trio.to_thread.run_sync(threading.Event().wait, 0.001)
            finished = {event.call for event in events if isinstance(event, ToolFinished) and event.started}
            abandoned = runtime.statistics().tool_threads.abandoned
            found.append(Outcome(instrument.steps, entered, started, finished, abandoned))

    trio.run(main, clock=trio.testing.MockClock(), instruments=[instrument])
    return found[0]


@pytest.mark.slow
def test_a_thread_is_started_if_its_call_says_so() -> None:
    """`tool_started` stands for a thread that entered the function, at whatever step the run is cancelled."""
    steps = play_threads(None).steps
    faults = []
    for at in range(1, steps + 1):
        outcome = play_threads(at)
        calls = {f"c{number}" for number in outcome.entered}
        if not calls == outcome.started == outcome.finished:
            faults.append((at, calls, outcome.started, outcome.finished))

    assert [] == faults


@pytest.mark.slow
def test_no_thread_is_abandoned_for_ever() -> None:
    """A thread that was never begun, or has ended, is not counted as one that was left behind."""
    steps = play_threads(None).steps

    assert {0} == {play_threads(at).abandoned for at in range(1, steps + 1)}
