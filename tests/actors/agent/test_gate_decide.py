"""Deciding from outside: `run.decide()` and `runtime.decide()`, exactly once (G8, G9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing

from actors import AgentSpec, ContinuationResponse, DecisionReply, Run, remote
from protocol.errors import InvalidDecision
from protocol.events import ContinuationRequired, ContinuationResolved
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import APPROVE, DECLINE, DISCARD, agent

Decide: TypeAlias = Callable[..., Awaitable[DecisionReply]]


def waits(bench: Bench | None = None, **options: Any) -> AgentSpec:
    options.setdefault("continuation", remote())
    return agent(calls_while_on(), (bench or Bench()).tool(), max_tool_iterations=1, **options)


@pytest.mark.parametrize("who", ["run", "runtime"])
def test_whoever_decides_the_rules_are_the_same(who: str) -> None:
    """G9: `run.decide` and `runtime.decide` answer the request; `by` says who it was."""
    bench = Bench()

    async def scene(stage: Stage) -> tuple[Played, list[DecisionReply]]:
        one = await stage.spawn(waits(bench))
        replies: list[DecisionReply] = []

        async def act(run: Run) -> None:
            decide: Decide = run.decide if who == "run" else stage.runtime.decide
            first = await event_of(run, ContinuationRequired)
            replies.append(await decide(first.request, APPROVE, by="alice"))
            second = await event_of(run, ContinuationRequired, nth=2)
            replies.append(await decide(second.request, DECLINE))

        return await stage.play(one, act=act), replies

    played, replies = perform(scene)
    resolved = played.all(ContinuationResolved)

    assert [DecisionReply("accepted", event.request, event) for event in resolved] == replies
    assert [("approved", "alice"), ("declined", "host")] == [(event.outcome, event.by) for event in resolved]
    assert {"t": 2} == bench.runs


def test_a_decision_wins_over_a_provider_that_still_thinks() -> None:
    """G9: a request that a function is asked about can be decided from outside; the function is cancelled."""
    ended: list[str] = []

    async def think(_request: object) -> ContinuationResponse:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        await trio.sleep(3)
        await run.decide(asked.request, DECLINE, by="alice")

    played = play(waits(continuation=think), act=act)
    resolved = played.only(ContinuationResolved)

    assert ("declined", "alice") == (resolved.outcome, resolved.by)
    assert (["cancelled"], 3.0) == (ended, played.seconds)


@pytest.mark.parametrize("first", ["approve", "decline"])
@pytest.mark.parametrize("order", [0, 1])
def test_of_two_decisions_in_the_same_tick_exactly_one_is_accepted(first: str, order: int) -> None:
    """G8: two tasks decide in the same moment, in both orders: one is accepted, the other told what stands."""
    bench = Bench()
    responses = {"approve": APPROVE, "decline": DECLINE}
    names = [first, "decline" if first == "approve" else "approve"]
    replies: dict[str, DecisionReply] = {}

    async def decide(run: Run, request: str, name: str, ready: trio.Event, turn: int, seq: Any) -> None:
        await ready.wait()
        async with seq(turn):
            replies[name] = await run.decide(request, responses[name], by=name)

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        ready = trio.Event()
        seq = trio.testing.Sequencer()
        async with trio.open_nursery() as nursery:
            started = names if order == 0 else list(reversed(names))
            for name in started:
                nursery.start_soon(decide, run, asked.request, name, ready, names.index(name), seq)
            await trio.testing.wait_all_tasks_blocked()
            ready.set()
        if first == "approve":
            second = await event_of(run, ContinuationRequired, nth=2)
            await run.decide(second.request, DECLINE)

    played = play(waits(bench), act=act)
    resolved = played.all(ContinuationResolved)[0]

    assert (first, "accepted") == (resolved.by, replies[first].status)
    assert DecisionReply("already_resolved", resolved.request, resolved) == replies[names[1]]
    assert {"t": 2 if first == "approve" else 1} == bench.runs


def test_the_same_decision_a_hundred_times_counts_once() -> None:
    """G8: of any number of equal decisions one is accepted."""
    bench = Bench()
    statuses: list[str] = []

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)

        async def decide() -> None:
            statuses.append((await run.decide(asked.request, APPROVE)).status)

        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(decide)
        second = await event_of(run, ContinuationRequired, nth=2)
        await run.decide(second.request, DECLINE)

    played = play(waits(bench), act=act)

    assert {"accepted": 1, "already_resolved": 99} == {name: statuses.count(name) for name in set(statuses)}
    assert 2 == len(played.all(ContinuationResolved))
    assert {"t": 2} == bench.runs


def test_an_unknown_request_is_not_found() -> None:
    """G8: an unknown id is `not_found`, and nothing else happens."""

    async def scene(stage: Stage) -> list[DecisionReply]:
        one = await stage.spawn(waits())
        replies: list[DecisionReply] = []

        async def act(run: Run) -> None:
            asked = await event_of(run, ContinuationRequired)
            replies.append(await run.decide("q-nowhere", APPROVE))
            replies.append(await stage.runtime.decide("q-nowhere", APPROVE))
            await run.decide(asked.request, DECLINE)

        await stage.play(one, act=act)
        return replies

    assert [DecisionReply("not_found", "q-nowhere")] * 2 == perform(scene)


def test_a_runtime_without_agents_knows_no_request() -> None:
    """G9: `runtime.decide` without any agent answers `not_found`."""

    async def scene(stage: Stage) -> DecisionReply:
        return await stage.runtime.decide("q-1", DECLINE)

    assert DecisionReply("not_found", "q-1") == perform(scene)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (ContinuationResponse("approve", discard_tool_calls=["c2", "nope"]), "not pending: nope; pending are c2"),
        (ContinuationResponse("timeout"), "timeout is not on offer"),
    ],
)
def test_an_invalid_decision_leaves_the_request_open(response: ContinuationResponse, told: str) -> None:
    """G3, G8: an id that is not pending, or a decision that a client may not send, is refused; then a valid one counts."""

    async def act(run: Run) -> None:
        asked = await event_of(run, ContinuationRequired)
        with pytest.raises(InvalidDecision, match=told):
            await run.decide(asked.request, response)

        assert (asked,) == run.open_requests
        assert "accepted" == (await run.decide(asked.request, DECLINE)).status

    played = play(waits(), act=act)

    assert "declined" == played.only(ContinuationResolved).outcome


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"decision": "maybe"}, "decision must be approve, decline or timeout; it is 'maybe'"),
        ({"decision": "approve", "message": 5}, "message must be a string or None; it is int"),
        ({"decision": "decline", "tool_message": b"x"}, "tool_message must be a string or None; it is bytes"),
        ({"decision": "approve", "grant": 0}, "grant must be a number above 0 or None; it is 0"),
        ({"decision": "approve", "grant": True}, "grant must be a number above 0 or None; it is True"),
        ({"decision": "approve", "grant": float("nan")}, "grant must be a number above 0 or None; it is nan"),
        ({"decision": "approve", "discard_tool_calls": "c1"}, "discard_tool_calls must be True, False or a collection"),
        ({"decision": "approve", "discard_tool_calls": 3}, "discard_tool_calls must be True, False or a collection"),
    ],
)
def test_a_response_that_cannot_be_right_is_not_made(arguments: dict[str, Any], told: str) -> None:
    """G3: a response of the wrong kind is refused where it is made, and says what would be right."""
    with pytest.raises(InvalidDecision, match=told):
        ContinuationResponse(**arguments)


def test_a_late_decision_never_touches_the_next_question() -> None:
    """G8: a decision for the first question, sent while the second is open, resolves neither."""
    bench = Bench()

    async def act(run: Run) -> None:
        first = await event_of(run, ContinuationRequired)
        await run.decide(first.request, DISCARD)
        second = await event_of(run, ContinuationRequired, nth=2)
        late = await run.decide(first.request, DECLINE)

        assert ("already_resolved", "approved") == (late.status, late.resolution and late.resolution.outcome)
        assert (second,) == run.open_requests
        await run.decide(second.request, DECLINE)

    play(waits(bench), act=act)

    assert {"t": 2} == bench.runs


def test_open_requests_are_seen_by_who_looks_later() -> None:
    """G9: a request belongs to the run: it stands in `open_requests` and the statistics until it is resolved."""
    seen: list[int] = []

    async def scene(stage: Stage) -> None:
        one = await stage.spawn(waits())

        async def act(run: Run) -> None:
            asked = await event_of(run, ContinuationRequired)
            await trio.sleep(100)
            seen.append(len(run.open_requests))

            assert ("waiting", 1) == (one.statistics().state, one.statistics().open_requests)
            assert 1 == run.statistics().open_requests
            await run.decide(asked.request, DECLINE)
            seen.append(len(run.open_requests))

        await stage.play(one, act=act)

        assert ("idle", 0) == (one.statistics().state, one.statistics().open_requests)

    perform(scene)

    assert [1, 0] == seen
