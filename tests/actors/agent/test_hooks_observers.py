"""`on_step` and `on_run_end`: they are told of everything, and change nothing (H4)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors import Run, RunResult, open_runtime
from actors.models.scripted import call, reply
from protocol.errors import ModelError, RunCancelledError
from protocol.events import AgentWarned, RunCancelled, RunEvent, RunFinished, ToolStarted, Warned
from protocol.result import StepResult
from protocol.turns import ToolMessage
from tests.support.play import Stage, event_of, numbered_events, perform, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent

SECRET = RuntimeError("k3y")


def test_on_step_is_told_of_every_step_in_order() -> None:
    """H4: once each, the final call's too, before the next model call is made."""
    told: list[tuple[int, int]] = []
    asked: list[int] = []

    def follow(request: Any) -> Any:
        asked.append(len(told))
        return script(request)

    script = calls_while_on()
    spec = agent(
        follow,
        Bench().tool(),
        on_step=lambda step: told.append((step.number, len(step.results))),
        max_tool_iterations=2,
        tool_iteration_limit_finalization="",
    )
    played = play(spec)

    assert [(0, 1), (1, 1), (2, 0)] == told
    assert [0, 1, 2] == asked
    assert "final" == played.result.text


@pytest.mark.parametrize("script", [[""], [reply("", finish="malformed")], [reply("half", finish="length")]])
def test_on_step_is_told_of_the_step_that_ends_the_run(script: list[Any]) -> None:
    """H4: whatever the last turn was."""
    told: list[StepResult] = []
    played = play(agent(script, on_step=told.append, max_reasks=0))

    assert tuple(told) == played.result.steps
    assert 1 == len(told)


async def sleeps(_seen: object) -> None:
    await trio.sleep_forever()


async def raises_later(_seen: object) -> None:
    await trio.sleep(1)
    raise SECRET


def raises(_seen: object) -> None:
    raise SECRET


def exits(_seen: object) -> None:
    raise SystemExit(3)


FAILING: dict[str, tuple[Callable[[object], Any], str]] = {
    "raises": (raises, "RuntimeError"),
    "raises later": (raises_later, "RuntimeError"),
    "exits": (exits, "RuntimeError"),
    "too slow": (sleeps, "TooSlowError"),
}


@pytest.mark.parametrize("how", FAILING)
def test_what_on_step_raises_is_an_event_and_changes_nothing(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """H4: a `warning` for each step, the log has the error, clients its type; the run is the same."""
    observer, told = FAILING[how]
    plain = play(agent(calls_until(1), Bench().tool()))
    with caplog.at_level(logging.ERROR):
        played = play(agent(calls_until(1), Bench().tool(), on_step=observer, callback_timeout_seconds=9.0))
    warnings = played.all(Warned)

    assert (plain.asked, plain.messages, "done") == (played.asked, played.messages, played.result.text)
    assert ["observer_failed"] * 2 == [warning.code for warning in warnings]
    assert all(f"on_step raised {told}" in warning.text for warning in warnings)
    assert "k3y" not in repr(played.events)
    assert 2 == len([record for record in caplog.records if "on_step" in record.getMessage()])


def test_what_an_observer_returns_is_nothing() -> None:
    """H4: no value of an observer means anything."""
    played = play(agent(calls_until(1), Bench().tool(), on_step=lambda _: "stop", on_run_end=lambda _: False))

    assert ("done", "model") == (played.result.text, played.result.stopped_by)


ENDS: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "answer": (["yes"], {}, "model"),
    "limit": ([reply("", call("t", {}, id="a"))] * 2, {"max_llm_calls": 1}, "llm_calls"),
    "failure": ([ModelError("down")], {}, "failure"),
}


@pytest.mark.parametrize("name", ENDS)
def test_on_run_end_is_told_of_every_end(name: str) -> None:
    """H4: once, after the terminal event, with the result or the partial one."""
    script, options, stopped_by = ENDS[name]
    told: list[RunResult] = []
    played = play(agent(script, Bench().tool(), on_run_end=told.append, **options))

    assert [stopped_by] == [result.stopped_by for result in told]
    assert told[0] == played.result


@pytest.mark.parametrize("how", FAILING)
def test_what_on_run_end_raises_is_an_event_of_the_agent(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """H4: it comes after the run's terminal event, the result stands, and the agent takes its next run."""
    observer, told = FAILING[how]

    async def scene(stage: Stage) -> tuple[list[str], list[AgentWarned]]:
        ann = await stage.spawn(agent(lambda _: "yes", on_run_end=observer, callback_timeout_seconds=9.0))
        texts = [(await stage.play(ann, if_busy="queue")).result.text for _ in range(2)]
        events = [event for _, event in await numbered_events(ann)]
        order = [event.type for event in events if isinstance(event, (AgentWarned, RunFinished))]
        assert ["run_finished", "agent_warning"] * 2 == order
        return texts, [event for event in events if isinstance(event, AgentWarned)]

    with caplog.at_level(logging.ERROR):
        texts, warnings = perform(scene)

    assert ["yes", "yes"] == texts
    assert ["observer_failed"] * 2 == [warning.code for warning in warnings]
    assert all(f"on_run_end raised {told}" in warning.text for warning in warnings)
    assert "k3y" not in repr(warnings)


def test_on_run_end_may_await_when_the_surrounding_nursery_is_cancelled() -> None:
    """Case TRI-06: a host that is torn down while a tool runs still has the session saved, shielded and in bounded time."""
    stored: list[RunResult] = []

    async def save(result: RunResult) -> None:
        for _ in range(3):
            await trio.sleep(1)
        stored.append(result)

    spec = agent([reply("x", call("slow", {}, id="a")), "never"], Bench().tool("slow", seconds=60), on_run_end=save)

    runs: list[Run] = []

    async def host() -> None:
        async with open_runtime() as runtime:
            ann = await runtime.spawn(spec)
            async with ann.run("go") as run:
                runs.append(run)
                await run.result()

    async def main() -> tuple[RunEvent, float]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel("the host goes down")
        (run,) = runs
        with trio.fail_after(1):
            events = [event async for event in run if isinstance(event, RunEvent)]
        return events[-1], trio.current_time()

    terminal, seconds = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    (result,) = stored
    last = result.messages[-1]

    assert isinstance(last, ToolMessage)
    assert [("a", "interrupted", True)] == [(r.call, r.status, r.entered) for r in last.results]
    assert ("cancel", 3.0) == (result.stopped_by, seconds)
    assert isinstance(terminal, RunCancelled)


@pytest.mark.parametrize("whole_host", [True, False])
def test_on_run_end_is_told_before_the_caller_has_left(whole_host: bool) -> None:
    """H4: a run cancelled from around it, or with its host, is observed before anybody goes on."""
    told: list[str] = []

    async def save(result: RunResult) -> None:
        await trio.sleep(1)
        told.append(result.stopped_by)

    async def main() -> list[str]:
        with trio.CancelScope() as around:
            async with open_runtime() as runtime:
                ann = await runtime.spawn(agent(calls_while_on(), Bench().tool(seconds=60), on_run_end=save))
                with trio.CancelScope() as scope:
                    async with ann.run("go") as run:
                        await event_of(run, ToolStarted)
                        (around if whole_host else scope).cancel()
                        await run.result()
                assert ["cancel"] == told
        return told

    assert ["cancel"] == trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_on_run_end_that_hangs_holds_nobody_for_longer_than_the_bound() -> None:
    """H4: bounded by `callback_timeout_seconds`, in a cancelled scope too."""

    async def main() -> float:
        with trio.CancelScope() as scope:
            async with open_runtime() as runtime:
                spec = agent(
                    calls_while_on(), Bench().tool(seconds=60), on_run_end=sleeps, callback_timeout_seconds=9.0
                )
                ann = await runtime.spawn(spec)
                async with ann.run("go") as run:
                    await event_of(run, ToolStarted)
                    scope.cancel()
                    await run.result()
        return trio.current_time()

    assert 9.0 == trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_cancelled_run_is_told_with_what_it_had() -> None:
    """H4: `run.cancel` too; `on_step` is told of the step that it cut."""
    ends: list[RunResult] = []

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.cancel("enough")

    played = play(agent(calls_while_on(), Bench().tool(seconds=60), on_run_end=ends.append), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert [("cancel", "enough", 1)] == [(e.stopped_by, e.stop_reason, len(e.steps)) for e in ends]
