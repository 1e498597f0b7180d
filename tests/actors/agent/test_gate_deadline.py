"""The deadline of a question: exactly when it passes, what it does, and what comes too late (G8)."""

from __future__ import annotations

import pytest
import trio

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, DecisionReply, Run, remote
from protocol.events import ContinuationRequired, ContinuationResolved, ToolFinished
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import APPROVE, DECLINE, Answers, agent

SECONDS = 30.0


def waits(bench: Bench | None = None, **options: object) -> AgentSpec:
    """An agent whose gate has nobody at it but `run.decide()`."""
    options.setdefault("continuation", remote(timeout_seconds=SECONDS))
    return agent(calls_while_on(), (bench or Bench()).tool(), max_tool_iterations=1, **options)


async def forever(_request: ContinuationRequest) -> ContinuationResponse:
    await trio.sleep_forever()
    raise AssertionError


def assert_timed_out(played: Played, seconds: float) -> None:
    resolved = played.only(ContinuationResolved)

    assert seconds == played.seconds
    assert ("timed_out", None, None, None) == (resolved.outcome, resolved.by, resolved.effect, resolved.granted)
    assert ("final", True, "max_iterations", "tool_iterations", "model") == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.stopped_by,
        played.result.finalized,
    )
    last = played.all(ToolFinished)[-1]
    assert ("discarded", "Tool call not run: iteration limit reached, continuation request timed out.") == (
        last.status,
        last.text,
    )
    assert "System notification: Continuation request timed out." == played.asked[-1].texts[-2]


def test_remote_expires_exactly_at_its_timeout() -> None:
    """G8: nobody decides; at the timeout, and not before or after, the answer is `timeout`."""
    played = play(waits())

    assert_timed_out(played, SECONDS)
    assert SECONDS == played.only(ContinuationRequired).expires_in_seconds


@pytest.mark.parametrize("seconds", [0.001, 30.0, 599.5])
def test_a_provider_is_bounded_by_the_agents_timeout(seconds: float) -> None:
    """G8: `continuation_timeout_seconds` bounds every provider, and expiry cancels it."""
    cancelled: list[float] = []

    async def slow(_request: ContinuationRequest) -> ContinuationResponse:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.append(trio.current_time())
        raise AssertionError

    began: list[float] = []

    async def act(_run: Run) -> None:
        began.append(trio.current_time())

    played = play(waits(continuation=slow, continuation_timeout_seconds=seconds), act=act)

    assert_timed_out(played, seconds)
    assert [pytest.approx(seconds)] == [end - start for start, end in zip(began, cancelled, strict=True)]


def test_the_default_is_ten_minutes() -> None:
    """G8: without any setting a question is open for 600 seconds."""
    assert_timed_out(play(waits(continuation=forever)), 600.0)
    assert_timed_out(play(waits(continuation=remote())), 600.0)


def test_none_waits_as_long_as_the_run_lives() -> None:
    """G8: `None` has no deadline: the decision comes after nearly an hour and counts."""

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        await trio.sleep(3500)
        await run.decide(asked.request, DECLINE)

    played = play(waits(continuation=remote(timeout_seconds=None)), act=act)
    own = play(waits(continuation=remote(), continuation_timeout_seconds=None), act=act)

    assert 3500.0 == played.seconds == own.seconds
    assert played.only(ContinuationRequired).expires_in_seconds is None
    assert "declined" == played.only(ContinuationResolved).outcome


def test_remotes_own_timeout_overrides_the_agents() -> None:
    """G8: `remote(timeout_seconds=)` wins, longer or shorter."""
    for own, agents in ((5.0, 600.0), (900.0, 60.0)):
        assert_timed_out(
            play(waits(continuation=remote(timeout_seconds=own), continuation_timeout_seconds=agents)), own
        )


@pytest.mark.parametrize(
    "options",
    [
        {"continuation": remote(timeout_seconds=SECONDS, on_timeout="approve")},
        {
            "continuation": forever,
            "continuation_timeout_seconds": SECONDS,
            "continuation_on_timeout": "approve",
        },
    ],
)
def test_on_timeout_approve(options: dict[str, object]) -> None:
    """G8: the outcome is still `timed_out`, its effect is an approval with the default grant; the calls run."""
    bench = Bench()

    async def act(run: Run) -> None:
        second = await event_of(run, ContinuationRequired, nth=2)
        assert 2 == second.total_iterations
        run.stop("enough")

    played = play(waits(bench, **options), act=act)
    first, second = played.all(ContinuationResolved)

    assert ("timed_out", "approved", 1, None) == (first.outcome, first.effect, first.granted, first.by)
    assert "cancelled" == second.outcome
    assert {"t": 2} == bench.runs
    assert SECONDS == played.seconds
    assert ["go"] == played.asked[-1].texts


def test_a_decision_in_time_ends_the_wait_at_once() -> None:
    """G8: a decision at 29 of 30 seconds counts, and the deadline has no effect afterwards."""
    bench = Bench()

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        await trio.sleep(29)
        await run.decide(asked.request, APPROVE)
        second = await event_of(run, ContinuationRequired, nth=2)
        await run.decide(second.request, DECLINE)

    spec = agent(
        calls_while_on(),
        bench.tool(seconds=10),
        max_tool_iterations=1,
        continuation=remote(timeout_seconds=SECONDS),
    )
    played = play(spec, act=act)

    assert ["approved", "declined"] == [event.outcome for event in played.all(ContinuationResolved)]
    assert 10 + 29 + 10 == played.seconds
    assert {"t": 2} == bench.runs


def test_a_late_decision_changes_nothing_and_is_told_what_stands() -> None:
    """G8: after expiry: `already_resolved` with the resolution; while the run goes on, and after its end."""

    async def scene(stage: Stage) -> tuple[Played, list[DecisionReply]]:
        spec = waits()
        one = await stage.spawn(spec)
        replies: list[DecisionReply] = []

        async def act(run: Run) -> None:
            asked = await event_of(run, ContinuationRequired)
            await event_of(run, ContinuationResolved)
            replies.append(await run.decide(asked.request, APPROVE))
            await run.result()
            replies.append(await run.decide(asked.request, APPROVE))
            replies.append(await stage.runtime.decide(asked.request, APPROVE))

        return await stage.play(one, act=act), replies

    played, replies = perform(scene)
    resolved = played.only(ContinuationResolved)

    assert_timed_out(played, SECONDS)
    assert [DecisionReply("already_resolved", resolved.request, resolved)] * 3 == replies


def test_a_provider_that_ignores_its_cancel_cannot_outlive_its_time() -> None:
    """G8: at the timeout the run goes on without a provider that shields itself; its late answer has no effect."""
    bench = Bench()
    said: list[str] = []

    async def deaf(_request: ContinuationRequest) -> ContinuationResponse:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        said.append("approve")
        return APPROVE

    async def scene(stage: Stage) -> Played:
        spec = waits(bench, continuation=deaf, continuation_timeout_seconds=10.0, cancel_grace_seconds=5.0)
        played = await stage.play(await stage.spawn(spec))
        await trio.sleep(200)
        return played

    played = perform(scene)

    assert "timed_out" == played.only(ContinuationResolved).outcome
    assert ("final", True) == (played.result.text, played.result.answered)
    assert 10 <= played.seconds <= 15
    assert ["approve"] == said
    assert {"t": 1} == bench.runs


@pytest.mark.parametrize("order", range(8))
@pytest.mark.parametrize("grouped", [False, True])
def test_what_a_provider_raises_when_it_is_cancelled_changes_nothing(
    grouped: bool, order: int, caplog: pytest.LogCaptureFixture
) -> None:
    """G8: a provider whose clean-up fails at expiry, alone or in a group with its cancel, has timed out."""

    async def fails_late() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("the clean-up failed")

    async def provider(_request: ContinuationRequest) -> ContinuationResponse:
        if not grouped:
            await fails_late()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_late)
            nursery.start_soon(trio.sleep_forever)
        raise AssertionError

    spec = waits(continuation=provider, continuation_timeout_seconds=SECONDS)

    assert_timed_out(play(spec, order=order), SECONDS)
    told = [record.getMessage().partition(" request=")[0] for record in caplog.records]
    assert ["a provider failed after its request was closed kind=continuation"] == told


@pytest.mark.parametrize("order", range(8))
def test_a_provider_that_answers_at_the_very_moment_resolves_once(order: int) -> None:
    """G8: a provider that answers at the same instant as its deadline resolves the request exactly once."""

    async def just(_request: ContinuationRequest) -> ContinuationResponse:
        await trio.sleep(SECONDS)
        return DECLINE

    played = play(waits(continuation=just, continuation_timeout_seconds=SECONDS), order=order)

    assert played.only(ContinuationResolved).outcome in {"declined", "timed_out"}
    assert SECONDS == played.seconds


def test_the_wait_of_a_function_that_says_timeout_itself() -> None:
    """G8: a function may return `timeout`: outcome `timed_out`, by nobody."""
    played = play(waits(continuation=Answers(ContinuationResponse("timeout"))))

    assert_timed_out(played, 0.0)
