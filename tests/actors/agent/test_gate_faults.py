"""What goes wrong at the gate: a provider that fails, a cancel, a stop, an agent that ends (G7, G10, M2)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import trio

from actors import Agent, AgentSpec, ContinuationRequest, Run, open_runtime, remote
from actors.models.scripted import call, reply
from protocol.errors import ContinuationProviderError, RunCancelledError
from protocol.events import (
    ContinuationRequired,
    ContinuationResolved,
    RunCancelled,
    RunFailed,
    RunFinished,
    ToolFinished,
)
from protocol.history import first_fault
from protocol.model import ModelRequest
from protocol.turns import ToolMessage, Turn
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import DECLINE, agent


class Secret(Exception):
    """Its text must not be seen by model or clients."""


def gated(provider: Any, bench: Bench | None = None, **options: Any) -> AgentSpec:
    return agent(calls_while_on(), (bench or Bench()).tool(), max_tool_iterations=1, continuation=provider, **options)


def raising(error: BaseException) -> Any:
    def provider(_request: ContinuationRequest) -> object:
        raise error

    return provider


def raising_later(error: BaseException) -> Any:
    async def provider(_request: ContinuationRequest) -> object:
        await trio.sleep(2)
        raise error

    return provider


GROUP = ExceptionGroup("several", [Secret("k3y"), ValueError("k3y")])


@pytest.mark.parametrize("make", [raising, raising_later])
@pytest.mark.parametrize("error", [Secret("k3y"), GROUP, TimeoutError("k3y"), trio.TooSlowError("k3y")], ids=repr)
def test_a_provider_that_raises_fails_the_run(make: Any, error: Exception) -> None:
    """G7: request `failed`, calls `not_run`, exchange stored, then `run_failed`; the cause is kept and not shown."""
    bench = Bench()
    played = play(gated(make(error), bench))
    last = played.messages[-1]

    assert isinstance(played.error, ContinuationProviderError)
    assert error is played.error.__cause__
    assert ["continuation_required", "continuation_resolved", "tool_finished", "step_finished", "run_failed"] == (
        played.types[-5:]
    )
    assert ("failed", None) == (played.only(ContinuationResolved).outcome, played.only(ContinuationResolved).by)
    assert ("not_run", False) == (played.all(ToolFinished)[-1].status, played.all(ToolFinished)[-1].started)
    assert isinstance(last, ToolMessage)
    assert [("c2", "not_run")] == [(result.call, result.status) for result in last.results]
    assert {"t": 1} == bench.runs
    assert 2 == len(played.asked)
    assert "continuation_provider_error" == played.only(RunFailed).error.code
    assert "k3y" not in repr((played.events, played.messages, str(played.error)))
    assert played.error.partial.counters.tool_iterations == 1


EXITS = [SystemExit(3), BaseExceptionGroup("several", [ValueError("k3y"), SystemExit(3)])]


@pytest.mark.parametrize("error", EXITS, ids=["exit", "group"])
def test_a_provider_that_exits_fails_its_run_and_no_more(error: BaseException) -> None:
    """G7: an exit of a provider, alone or in a group, is its error: the run fails, the runtime stays."""
    played = play(gated(raising(error)))

    assert isinstance(played.error, ContinuationProviderError)
    assert "failed" == played.only(ContinuationResolved).outcome


@pytest.mark.parametrize("answer", [None, True, "approve", {"decision": "approve"}], ids=repr)
def test_a_provider_that_answers_the_wrong_type_fails_the_run(answer: object) -> None:
    """G7: what is no `ContinuationResponse` is the provider's error, and says which type it was."""

    def provider(_request: ContinuationRequest) -> object:
        return answer

    played = play(gated(provider))

    assert isinstance(played.error, ContinuationProviderError)
    assert type(answer).__name__ in str(played.error.__cause__)
    assert "failed" == played.only(ContinuationResolved).outcome


def test_the_conversation_goes_on_after_a_failed_run() -> None:
    """G7, R2: the history is valid after the failure, and the next run works."""
    bench = Bench()
    answers: list[Any] = [Secret(), DECLINE]

    def provider(_request: ContinuationRequest) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def scene(stage: Stage) -> list[Played]:
        one = await stage.spawn(gated(provider, bench))
        return [await stage.play(one, "first"), await stage.play(one, "second")]

    first, second = perform(scene)

    assert isinstance(first.error, ContinuationProviderError)
    assert "final" == second.result.text
    assert first.messages == second.messages[: len(first.messages)]


def test_an_interrupt_in_a_provider_goes_up_and_leaves_the_run_in_order() -> None:
    """An interrupt is nobody's to swallow: it leaves the runtime, and the run has its one end and a whole history."""
    kept: list[Any] = []

    async def scene(stage: Stage) -> None:
        one = await stage.spawn(gated(raising(KeyboardInterrupt())))
        kept.append(one)
        async with one.run("go") as run:
            kept.append(run)
            await trio.sleep_forever()

    with pytest.raises(BaseException) as caught:  # noqa: PT011  an interrupt, bare or in a group
        perform(scene)
    one, run = kept

    assert isinstance(caught.value, KeyboardInterrupt) or (
        isinstance(caught.value, BaseExceptionGroup) and caught.value.split(KeyboardInterrupt)[0] is not None
    )
    assert run.over
    assert first_fault(one.messages) is None


def test_cancel_at_the_gate() -> None:
    """G10: request `cancelled`, calls `not_run`, exchange stored, `run_cancelled`, in this order; no model is asked."""
    bench = Bench()

    async def act(run: Run) -> None:
        await event_of(run, ContinuationRequired)
        await trio.sleep(5)
        run.cancel("enough of it")

    played = play(gated(remote(), bench), act=act)
    last = played.messages[-1]

    assert isinstance(played.error, RunCancelledError)
    assert [
        "limit_reached",
        "continuation_required",
        "continuation_resolved",
        "tool_finished",
        "step_finished",
        "run_cancelled",
    ] == played.types[-6:]
    assert ("cancelled", None) == (played.only(ContinuationResolved).outcome, played.only(ContinuationResolved).by)
    assert "not_run" == played.all(ToolFinished)[-1].status
    assert "enough of it" == played.only(RunCancelled).reason == str(played.error)
    assert isinstance(last, ToolMessage)
    assert ["not_run"] == [result.status for result in last.results]
    assert (2, 5.0) == (len(played.asked), played.seconds)
    assert {"t": 1} == bench.runs


def test_cancel_while_a_provider_thinks_cancels_it() -> None:
    """G10: the provider's wait is inside the run's cancel."""
    ended: list[str] = []

    async def think(_request: ContinuationRequest) -> object:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    async def act(run: Run) -> None:
        await event_of(run, ContinuationRequired)
        run.cancel()

    played = play(gated(think), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert (["cancelled"], "cancelled") == (ended, played.only(ContinuationResolved).outcome)


def test_a_cancelled_request_takes_no_decision() -> None:
    """G10, G8: after the cancel a decision is told `already_resolved`, outcome `cancelled`."""

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        run.cancel()
        with contextlib.suppress(RunCancelledError):
            await run.result()
        late = await run.decide(asked.request, DECLINE)

        assert ("already_resolved", "cancelled") == (late.status, late.resolution and late.resolution.outcome)

    play(gated(remote()), act=act)


@pytest.mark.parametrize("provider", [remote(), raising_later(Secret())], ids=["remote", "function"])
def test_stop_at_the_gate_cuts_the_wait_at_once(provider: Any) -> None:
    """M2: `run.stop` cuts a wait for a decision; the calls are not run and the run ends by its caller."""
    bench = Bench()

    async def act(run: Run) -> None:
        await event_of(run, ContinuationRequired)
        run.stop("lunch")

    played = play(gated(provider, bench), act=act)
    result = played.result

    assert played.error is None
    assert ("caller", "lunch", False, 0.0) == (result.stopped_by, result.stop_reason, result.answered, played.seconds)
    assert "cancelled" == played.only(ContinuationResolved).outcome
    assert "not_run" == played.all(ToolFinished)[-1].status
    assert 2 == len(played.asked)
    assert {"t": 1} == bench.runs
    assert RunFinished is type(played.events[-1])


def test_stop_before_the_gate_is_opened_asks_nobody() -> None:
    """M2: a stop that came during the model call does not wait for a decision that no longer matters."""

    async def model(_request: ModelRequest) -> Turn:
        await trio.sleep(1)
        return reply("", call("t", {}))

    async def act(run: Run) -> None:
        await trio.sleep(1.5)
        run.stop("lunch")

    played = play(agent(model, Bench().tool(), max_tool_iterations=1, continuation=remote()), act=act)

    assert ("caller", "lunch") == (played.result.stopped_by, played.result.stop_reason)
    assert [] == played.all(ContinuationRequired)
    assert "not_run" == played.all(ToolFinished)[-1].status
    assert 2.0 == played.seconds


def test_an_agent_that_is_stopped_at_the_gate_says_so() -> None:
    """G9: the open request of an agent that ends is resolved `agent_ended`."""

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(gated(remote()))

        async def act(run: Run) -> None:
            await event_of(run, ContinuationRequired)
            one.stop("closing time")

        return await stage.play(one, act=act)

    played = perform(scene)

    assert "agent_ended" == played.only(ContinuationResolved).outcome
    assert ("caller", "closing time") == (played.result.stopped_by, played.result.stop_reason)


def test_closing_the_runtime_ends_a_wait_in_order() -> None:
    """G9: leaving the runtime's block while a run waits resolves its request and finishes the run."""

    async def scene(_stage: Stage) -> Played:
        played: list[Played] = []
        asked = trio.Event()

        async def act(run: Run) -> None:
            await event_of(run, ContinuationRequired)
            asked.set()

        async def user(stage: Stage, one: Agent) -> None:
            played.append(await stage.play(one, act=act))

        async with trio.open_nursery() as nursery, open_runtime() as runtime:
            stage = Stage(runtime)
            one = await stage.spawn(gated(remote(timeout_seconds=None)))
            nursery.start_soon(user, stage, one)
            await asked.wait()

        assert [] == await stage.judge()
        return played[0]

    played = perform(scene)

    assert "agent_ended" == played.only(ContinuationResolved).outcome
    assert ("caller", False) == (played.result.stopped_by, played.result.answered)
