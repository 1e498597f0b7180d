"""Deciding about a call: late, repeated and misdirected decisions (T8, G8, G9)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import ApprovalResponse, ContinuationResponse, Run, approve, deny
from actors import remote as remotely
from actors.models.scripted import call, reply
from protocol.errors import InvalidDecision
from protocol.events import ApprovalRequired, ApprovalResolved, ToolFinished, ToolStarted
from tests.support.deciders import payer, pays, statuses
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.specs import agent


def test_the_second_of_two_decisions_changes_nothing_and_is_told_the_first() -> None:
    """APR-03, G8: one tick, two deciders, one is accepted; the other reads who was first and what stands."""
    pay, paid = payer()
    told: dict[str, Any] = {}

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)

        async def decide(who: str, response: ApprovalResponse) -> None:
            told[who] = await run.decide(asked.request, response, by=who)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(decide, "ann", approve())
            nursery.start_soon(decide, "bob", approve())

    played = play(agent(pays(7), pay, approval=remotely()), act=act)
    winner = played.only(ApprovalResolved).by

    assert [7] == paid
    assert ["accepted", "already_resolved"] == sorted(reply.status for reply in told.values())
    assert {winner} == {reply.resolution.by for reply in told.values()}


def test_each_request_is_answered_by_its_own_id() -> None:
    """APR-05: a decision never falls to another request, whatever the order."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired, nth=2)
        by_call = {request.call: request for request in run.open_requests if isinstance(request, ApprovalRequired)}
        nobody = await run.decide("q-unknown", approve())
        await run.decide(by_call["c2"].request, approve())
        await trio.sleep(1)
        await run.decide(by_call["c1"].request, deny())

        assert "not_found" == nobody.status

    played = play(agent(pays(1, 2), pay, approval=remotely()), act=act)

    assert ({"c1": "denied", "c2": "ok"}, [2]) == (statuses(played), paid)


def test_a_decision_of_the_other_kind_is_refused_and_the_request_stays_open() -> None:
    """G8: a continuation's response is none for an approval."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        for wrong in (ContinuationResponse("approve"), ApprovalResponse("timeout")):
            with pytest.raises(InvalidDecision):
                await run.decide(asked.request, wrong)
        await run.decide(asked.request, approve())

    play(agent(pays(7), pay, approval=remotely()), act=act)

    assert [7] == paid


def test_a_late_answer_to_an_old_request_does_not_wake_a_new_one_with_the_same_call_id() -> None:
    """APR-08: request ids are never used twice; the old decision is refused, the new request still waits."""
    pay, paid = payer()

    async def scene(stage: Stage) -> list[Played]:
        script = [reply("", call("pay", {"n": n}, id="k")) for n in (1, 2)]
        one = await stage.spawn(agent([*script, "ok"], pay, approval=remotely()))
        old: list[str] = []

        async def first(run: Run) -> None:
            old.append((await event_of(run, ApprovalRequired)).request)
            run.cancel()

        async def second(run: Run) -> None:
            asked = await event_of(run, ApprovalRequired)
            late = await run.decide(old[0], approve())
            await trio.sleep(5)

            assert ("already_resolved", [asked.request]) == (late.status, [r.request for r in run.open_requests])

            await run.decide(asked.request, deny())

        return [await stage.play(one, act=first), await stage.play(one, act=second)]

    before, after = perform(scene)

    assert [] == paid
    assert before.only(ApprovalRequired).request != after.only(ApprovalRequired).request
    assert "ok" == after.result.text


def test_many_calls_decided_one_by_one() -> None:
    """APR-16: each call of a turn gets its own decision, and what was approved runs, all of it."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired, nth=3)
        responses = {"c1": approve(), "c2": deny(), "c3": approve()}
        for request in run.open_requests:
            assert isinstance(request, ApprovalRequired)
            await run.decide(request.request, responses[request.call])

    played = play(agent(pays(1, 2, 3), pay, approval=remotely()), act=act)

    assert {"c1": "ok", "c2": "denied", "c3": "ok"} == statuses(played)
    assert [1, 3] == sorted(paid)
    assert 2 == len(played.all(ToolStarted)) < len(played.all(ToolFinished))
    assert 2 == len(played.asked)
