"""Approvals: before the allowed calls of a turn run, somebody decides about those that need it (T8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors import ApprovalRequest, ApprovalResponse, Run, approve, deny, remote
from actors.models.scripted import call, reply
from protocol.events import ApprovalRequired, ApprovalResolved, ToolStarted
from protocol.turns import ToolMessage
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import event_of, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def plain(decision: ApprovalResponse) -> Callable[[ApprovalRequest], ApprovalResponse]:
    return lambda _request: decision


def slow(decision: ApprovalResponse) -> Any:
    async def provider(_request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(5)
        return decision

    return provider


@pytest.mark.parametrize("kind", [plain, slow], ids=["function", "async function"])
def test_a_call_runs_once_its_provider_approves(kind: Any) -> None:
    """T8: what needs approval waits for it, and runs then; the events say so in order."""
    pay, paid = payer()
    played = play(agent(pays(7), pay, approval=kind(approve())))
    asked, resolved = played.only(ApprovalRequired), played.only(ApprovalResolved)

    assert ([7], {"c1": ("ok", "paid 7")}, "ok") == (paid, results(played), played.result.text)
    assert ("c1", "pay", {"n": 7}, 600.0) == (asked.call, asked.name, asked.arguments, asked.expires_in_seconds)
    assert (asked.request, "c1", "approved", "provider") == (
        resolved.request,
        resolved.call,
        resolved.outcome,
        resolved.by,
    )
    assert ["tool_requested", "approval_required", "approval_resolved", "tool_started", "tool_finished"] == [
        kind for kind in played.types if kind.startswith(("tool_r", "tool_s", "tool_f", "approval"))
    ]


@pytest.mark.parametrize("kind", [plain, slow], ids=["function", "async function"])
@pytest.mark.parametrize(
    ("reason", "text"), [(None, "Not run: declined."), ("no", "Not run: declined. no"), ("", "Not run: declined.")]
)
def test_a_denied_call_is_not_run_and_the_model_reads_why(kind: Any, reason: str | None, text: str) -> None:
    """T8, APR-18, DNG-09: the body is not entered; the result says that it was declined, and gives the reason."""
    pay, paid = payer()
    played = play(agent(pays(7, then="left alone"), pay, approval=kind(deny(reason))))
    resolved = played.only(ApprovalResolved)

    assert ([], {"c1": ("denied", text)}, "left alone") == (paid, results(played), played.result.text)
    assert ("denied", reason, "provider") == (resolved.outcome, resolved.reason, resolved.by)
    assert [] == played.all(ToolStarted)
    assert 0 == played.result.counters.tool_calls


def test_half_a_surrogate_pair_in_a_reason_is_replaced() -> None:
    """R3: what a person wrote is stored as UTF-8."""
    pay, _ = payer()
    played = play(agent(pays(7), pay, approval=plain(deny("\ud800no"))))

    assert {"c1": ("denied", "Not run: declined. \ufffdno")} == results(played)


def test_denying_one_call_lets_the_others_run() -> None:
    """PAR-08: a denial disturbs neither the calls that need no approval nor those that have it."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("calc", {}, id="a"), call("pay", {"n": 1}, id="b"), call("pay", {"n": 2}, id="c"))
    played = play(agent([turn, "ok"], bench.tool("calc", 4), pay, approval=Approver(b=deny())))

    assert {"a": "ok", "b": "denied", "c": "ok"} == statuses(played)
    assert ({"calc": 1}, [2]) == (bench.runs, paid)


@pytest.mark.parametrize(
    ("needs", "asked"),
    [
        (True, ["c1", "c2"]),
        (False, []),
        (lambda arguments: arguments["n"] > 5, ["c2"]),
        (lambda arguments: arguments.clear(), []),
    ],
    ids=["true", "false", "by the arguments", "changes its arguments"],
)
def test_what_needs_approval(needs: Any, asked: list[str]) -> None:
    """T8: `needs_approval` is a bool, or a function of the arguments, which gets a copy of them."""
    pay, paid = payer(needs)
    provider = Approver()
    played = play(agent(pays(1, 9), pay, approval=provider))

    assert asked == sorted(request.call for request in provider.asked)
    assert {"c1": ("ok", "paid 1"), "c2": ("ok", "paid 9")} == results(played)
    assert [1, 9] == sorted(paid)


def test_a_function_that_says_what_needs_approval_may_be_async() -> None:
    """T8: `needs_approval` may wait."""

    async def above_five(arguments: dict[str, Any]) -> bool:
        await trio.sleep(1)
        return bool(arguments["n"] > 5)

    pay, _ = payer(above_five)
    provider = Approver()
    play(agent(pays(1, 9), pay, approval=provider))

    assert ["c2"] == [request.call for request in provider.asked]


@pytest.mark.parametrize("fault", ["raises", "too slow"])
def test_what_cannot_be_told_to_need_no_approval_does_not_run(fault: str) -> None:
    """T8: in doubt nothing runs: a `needs_approval` that fails is an error of that one call."""

    async def needs(arguments: dict[str, Any]) -> bool:
        if arguments["n"] == 1:
            return False
        if fault == "raises":
            raise KeyError("limit")
        await trio.sleep_forever()
        raise AssertionError

    pay, paid = payer(needs)
    provider = Approver()
    played = play(agent(pays(1, 9), pay, approval=provider, callback_timeout_seconds=3))

    assert ([1], []) == (paid, provider.asked)
    assert {"c1": "ok", "c2": "error"} == statuses(played)
    assert results(played)["c2"][1].startswith("Not run: whether pay needs approval could not be told: ")


def test_the_requests_of_a_turn_are_open_together_and_all_decided_before_anything_runs() -> None:
    """T8: one request per call, all before the first resolution; the first body is entered after the last one."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("calc", {}, id="a"), *[call("pay", {"n": n}, id=f"c{n}") for n in (1, 2, 3)])
    seen: list[tuple[int, int]] = []

    async def act(run: Run) -> None:
        third = await event_of(run, ApprovalRequired, nth=3)
        first, second = run.open_requests[:2]
        for request in (third.request, second.request, first.request):
            seen.append((len(run.open_requests), len(bench.runs) + len(paid)))
            await run.decide(request, approve())
            await trio.sleep(1)

    spec = agent([turn, "ok"], bench.tool("calc"), pay, approval=remote())
    played = play(spec, act=act)
    kinds = [kind for kind in played.types if kind.startswith(("approval", "tool_started"))]

    assert ["approval_required"] * 3 + ["approval_resolved"] * 3 + ["tool_started"] * 4 == kinds
    assert [(3, 0), (2, 0), (1, 0)] == seen
    assert 3 == len({request.request for request in played.all(ApprovalRequired)})
    assert {"a": "ok", "c1": "ok", "c2": "ok", "c3": "ok"} == statuses(played)


def test_the_results_stand_in_call_order_whoever_was_decided_first() -> None:
    """T2: history in call order."""
    pay, _ = payer()

    async def provider(request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(10 - int(request.arguments["n"]))
        return deny() if request.call == "c2" else approve()

    played = play(agent(pays(1, 2, 3), pay, approval=provider))
    last = played.messages[2]

    assert isinstance(last, ToolMessage)
    assert ["c1", "c2", "c3"] == [result.call for result in last.results]
    assert ["denied", "ok", "ok"] == sorted(result.status for result in last.results)
    assert 9.0 == played.seconds
