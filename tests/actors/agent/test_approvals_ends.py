"""How a wait for approval ends without a decision: expiry, cancel, stop, an agent that ends (T8, G8, G10)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import ApprovalRequest, ApprovalResponse, Run, approve, remote
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError, SpecError
from protocol.events import ApprovalRequired, ApprovalResolved, RunFinished
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.deciders import payer, pays, results, statuses
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent

EXPIRED = "Not run: nobody approved it in time, and the request has expired."


async def forever(_request: ApprovalRequest) -> ApprovalResponse:
    await trio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize("provider", [remote(), forever], ids=["remote", "function"])
@pytest.mark.parametrize("seconds", [300.0, 0.5])
def test_an_expired_request_says_so_and_nothing_runs(provider: Any, seconds: float) -> None:
    """APR-02, APR-09, T8: at the deadline the call is `not_run`; it says expired, and neither pending nor declined."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("pay", {"n": 7}, id="c1"), call("calc", {}, id="c2"))
    spec = agent([turn, "ok"], pay, bench.tool("calc"), approval=provider, approval_timeout_seconds=seconds)
    played = play(spec)
    resolved = played.only(ApprovalResolved)

    assert ("not_run", EXPIRED) == results(played)["c1"]
    assert ([], {"calc": 1}, seconds) == (paid, bench.runs, played.seconds)
    assert ("timed_out", None) == (resolved.outcome, resolved.by)
    assert seconds == played.only(ApprovalRequired).expires_in_seconds


@pytest.mark.parametrize(
    ("provider", "agents", "expires"),
    [
        (remote(timeout_seconds=7), 600.0, 7.0),
        (remote(timeout_seconds=None), 600.0, None),
        (remote(), 9.0, 9.0),
        (remote(), None, None),
        (remote(timeout_seconds=7), None, 7.0),
    ],
)
def test_how_long_a_request_waits(provider: Any, agents: float | None, expires: float | None) -> None:
    """G8: `approval_timeout_seconds`, unless `remote(timeout_seconds=)` says otherwise; `None` is as long as it takes."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        if asked.expires_in_seconds is None:
            await trio.sleep(3000)
            await run.decide(asked.request, approve())

    played = play(agent(pays(7), pay, approval=provider, approval_timeout_seconds=agents), act=act)

    assert expires == played.only(ApprovalRequired).expires_in_seconds
    assert ([7], 3000.0) == (paid, played.seconds) if expires is None else ([], expires) == (paid, played.seconds)


def test_each_request_expires_by_itself() -> None:
    """T8, G8: one that nobody answers holds the turn up to its deadline and takes no other with it."""
    pay, paid = payer()

    async def provider(request: ApprovalRequest) -> ApprovalResponse:
        if request.call == "c2":
            await trio.sleep_forever()
        return approve()

    played = play(agent(pays(1, 2), pay, approval=provider, approval_timeout_seconds=8))

    assert ({"c1": "ok", "c2": "not_run"}, [1], 8.0) == (statuses(played), paid, played.seconds)


def test_a_late_decision_is_told_that_the_request_expired() -> None:
    """APR-01: the answer after the deadline changes nothing, and is told so."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        await trio.sleep(31)
        late = await run.decide(asked.request, approve())

        assert ("already_resolved", "timed_out") == (late.status, late.resolution and late.resolution.outcome)

    played = play(agent(pays(7), pay, approval=remote(), approval_timeout_seconds=30), act=act)

    assert ([], {"c1": "not_run"}) == (paid, statuses(played))


def test_no_expiry_approves_a_call() -> None:
    """G8: `on_timeout="approve"` is for the gate alone."""
    pay, _ = payer()

    with pytest.raises(SpecError, match="on_timeout"):
        agent([], pay, approval=remote(on_timeout="approve"))


@pytest.mark.parametrize("provider", [remote(), forever], ids=["remote", "function"])
def test_cancel_while_approval_is_open(provider: Any) -> None:
    """G10, APR-06: requests `cancelled`, calls `not_run`, exchange stored, `run_cancelled`; no model is asked."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired, nth=2)
        run.cancel("enough")

    played = play(agent(pays(1, 2), pay, approval=provider), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert ["approval_resolved"] * 2 + ["tool_finished"] * 2 + ["step_finished", "run_cancelled"] == played.types[-6:]
    assert ["cancelled"] * 2 == [resolved.outcome for resolved in played.all(ApprovalResolved)]
    assert ([], {"c1": "not_run", "c2": "not_run"}, 1) == (paid, statuses(played), len(played.asked))


@pytest.mark.parametrize("provider", [remote(), forever], ids=["remote", "function"])
def test_stop_while_approval_is_open(provider: Any) -> None:
    """M2: a stop cuts the wait at once; nothing of the turn runs, and the run ends by its caller."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("pay", {"n": 7}, id="c1"), call("calc", {}, id="c2"))

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired)
        run.stop("lunch")

    played = play(agent([turn], pay, bench.tool("calc"), approval=provider), act=act)

    assert ("caller", "lunch", 0.0) == (played.result.stopped_by, played.result.stop_reason, played.seconds)
    assert ([], {}, {"c1": "not_run", "c2": "not_run"}) == (paid, bench.runs, statuses(played))
    assert "cancelled" == played.only(ApprovalResolved).outcome
    assert RunFinished is type(played.events[-1])


def test_stop_before_a_request_is_opened_asks_nobody() -> None:
    """M2: a stop that came during the model call puts no question that no longer matters."""
    pay, paid = payer()

    async def model(_request: ModelRequest) -> Turn:
        await trio.sleep(2)
        return reply("", call("pay", {"n": 1}, id="c1"))

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.stop("lunch")

    played = play(agent(model, pay, approval=remote()), act=act)

    assert ("caller", []) == (played.result.stopped_by, played.all(ApprovalRequired))
    assert ([], {"c1": "not_run"}) == (paid, statuses(played))


def test_an_agent_that_is_stopped_while_approval_is_open_says_so() -> None:
    """G9: the open requests of an agent that ends are resolved `agent_ended`."""
    pay, paid = payer()

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(agent(pays(7), pay, approval=remote()))

        async def act(run: Run) -> None:
            await event_of(run, ApprovalRequired)
            one.stop("closing time")

        return await stage.play(one, act=act)

    played = perform(scene)

    assert ("agent_ended", []) == (played.only(ApprovalResolved).outcome, paid)
    assert ("caller", "closing time") == (played.result.stopped_by, played.result.stop_reason)
