"""Approvals among the other things that may become of a call: the gate, conditions, ends, pauses (T8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors import ApprovalRequest, ApprovalResponse, Run, approve, deny, external_tool, has_tool_call, remote, tool
from actors.models.scripted import call, reply
from protocol.approval import ApprovalDecision
from protocol.errors import SpecError
from protocol.events import ApprovalResolved, ContinuationRequired, ToolFinished
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.specs import APPROVE, agent


def plain(decision: ApprovalResponse) -> Callable[[ApprovalRequest], ApprovalResponse]:
    return lambda _request: decision


def slow(decision: ApprovalResponse) -> Any:
    async def provider(_request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(5)
        return decision

    return provider


def test_the_gate_comes_first_and_approves_no_call() -> None:
    """T8: the gate is asked for the batch; approving it leaves each call's own request to be decided."""
    pay, paid = payer()
    order: list[str] = []

    def gate(_request: Any) -> Any:
        order.append("gate")
        return APPROVE

    def approval(request: ApprovalRequest) -> ApprovalResponse:
        order.append(request.call)
        return deny("not that one") if request.call == "c2" else approve()

    script = [
        reply("", call("pay", {"n": 0}, id="c0")),
        reply("", call("pay", {"n": 1}, id="c1"), call("pay", {"n": 2}, id="c2")),
        "ok",
    ]
    played = play(agent(script, pay, max_tool_iterations=1, continuation=gate, approval=approval))

    assert ["c0", "gate"] == order[:2]
    assert {"c1", "c2"} == set(order[2:])
    assert [0, 1] == paid
    assert {"c0": "ok", "c1": "ok", "c2": "denied"} == statuses(played)
    assert (
        played.types.index("continuation_resolved")
        < [place for place, kind in enumerate(played.types) if kind == "approval_required"][1]
    )


def test_a_gate_that_declines_asks_for_no_approval() -> None:
    """T8, G5: what the gate did not let go on is not put to anybody."""
    pay, paid = payer()
    provider = Approver()
    script = [reply("", call("pay", {"n": n}, id=f"c{n}")) for n in (0, 1)]
    gate = remote(timeout_seconds=1)
    played = play(agent([*script, "final"], pay, max_tool_iterations=1, continuation=gate, approval=provider))

    assert ["c0"] == [request.call for request in provider.asked]
    assert ({"c0": "ok", "c1": "discarded"}, [0]) == (statuses(played), paid)
    assert 1 == len(played.all(ContinuationRequired))


def test_calls_that_the_gate_discarded_are_not_put_to_anybody() -> None:
    """T8, G3: only the calls that are left are asked about."""
    pay, _ = payer()
    provider = Approver()

    def gate(_request: Any) -> Any:
        return type(APPROVE)("approve", discard_tool_calls=["c1"])

    script = [
        reply("", call("pay", {"n": 0}, id="c0")),
        reply("", call("pay", {"n": 1}, id="c1"), call("pay", {"n": 2}, id="c2")),
        "ok",
    ]
    played = play(agent(script, pay, max_tool_iterations=1, continuation=gate, approval=provider))

    assert ["c0", "c2"] == [request.call for request in provider.asked]
    assert {"c0": "ok", "c1": "discarded", "c2": "ok"} == statuses(played)


def test_calls_that_cannot_run_are_put_to_nobody() -> None:
    """T3: unknown tools and bad arguments are answered before anybody is asked."""
    pay, _ = payer()
    provider = Approver()
    turn = reply(
        "",
        call("pay", {"n": "many"}, id="a"),
        call("gone", {}, id="b"),
        call("pay", "[1]", id="c"),
        call("pay", {"n": 3}, id="d"),
    )
    played = play(agent([turn, "ok"], pay, approval=provider))

    assert ["d"] == [request.call for request in provider.asked]
    assert {"a": "error", "b": "error", "c": "error", "d": "ok"} == statuses(played)


def test_the_arguments_are_shown_as_they_will_run() -> None:
    """T3, T8: what was mended is shown mended."""
    provider = Approver()

    async def note(tags: list[int]) -> str:
        await trio.lowlevel.checkpoint()
        return str(tags)

    turn = reply("", call("note", {"tags": "[1, 2]"}, id="a"))
    noted = tool(note, description="Note.", needs_approval=True)
    played = play(agent([turn, "ok"], noted, approval=provider))

    assert {"tags": [1, 2]} == provider.asked[0].arguments
    assert {"a": ("ok", "[1, 2]")} == results(played)


def test_a_condition_fires_after_a_call_that_had_to_be_approved() -> None:
    """PRE-04: 'stop after this tool' holds where the tool waited for a person first."""
    pay, paid = payer()
    spec = agent(pays(7, then="must not be asked"), pay, approval=slow(approve()), stop_when=[has_tool_call("pay")])
    played = play(spec)

    assert ("stop_condition", [7], 1) == (played.result.stopped_by, paid, len(played.asked))
    assert ["paid 7"] == [result.text for result in played.result.steps[-1].results]


@pytest.mark.parametrize(("decision", "asked"), [(approve(), 1), (deny(), 2)], ids=["approved", "denied"])
def test_a_tool_that_ends_the_run_does_so_only_if_it_was_approved(decision: ApprovalResponse, asked: int) -> None:
    """T6, T8: `ends_run` counts where the call succeeded."""
    pay, _ = payer(ends_run=True)
    played = play(agent(pays(7, then="not paid"), pay, approval=plain(decision)))

    assert asked == len(played.asked)
    assert ("tool" if asked == 1 else "model") == played.result.stopped_by


def test_a_callers_own_tool_may_need_approval() -> None:
    """T7, T8: an external call is approved first, and handed to the caller then; a denied one is not."""
    ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}}, needs_approval=True)
    turn = reply("", call("ask", {}, id="a"), call("ask", {}, id="b"))
    waited: list[str] = []

    async def act(run: Run) -> None:
        first = await run.result()
        waited.extend(pending.id for pending in run.pending)
        assert first.stopped_by == "pending_tools"
        run.submit({"a": "yes"})

    played = play(agent([turn, "ok"], ask, approval=Approver(b=deny())), act=act)

    assert ["a"] == waited
    assert {"a": ("ok", "yes"), "b": ("denied", "Not run: declined.")} == results(played)


def test_a_tool_that_needs_approval_needs_somebody_to_give_it() -> None:
    """T8: without a provider it is an error of the settings, which says what to set."""
    pay, _ = payer()

    with pytest.raises(SpecError, match="pay needs approval.*approval="):
        agent([], pay)


def test_time_stands_still_while_approval_is_waited_for() -> None:
    """B5: waiting for a decision is no work."""
    pay, _ = payer()
    played = play(agent(pays(7), pay, approval=slow(approve()), wall_clock_seconds=2))

    assert ("ok", None, 5.0) == (played.result.text, played.result.limit, played.seconds)


@pytest.mark.parametrize("decision", ["approve", "deny", "timeout"])
def test_every_decision_of_a_provider_comes_to_one_resolution(decision: ApprovalDecision) -> None:
    """G8: a function may say `timeout` too; each is told as what it is."""
    pay, paid = payer()
    played = play(agent(pays(7), pay, approval=plain(ApprovalResponse(decision))))
    outcome = {"approve": "approved", "deny": "denied", "timeout": "timed_out"}[decision]

    assert outcome == played.only(ApprovalResolved).outcome
    assert ([7] if decision == "approve" else []) == paid
    assert (None if decision == "timeout" else "provider") == played.only(ApprovalResolved).by


def test_an_approved_call_that_fails_is_an_error_like_any_other() -> None:
    """T4, T8: approval changes nothing about what the body does."""
    bench = Bench()

    async def boom() -> str:
        await trio.lowlevel.checkpoint()
        raise ValueError("boom")

    bad = tool(boom, description="Boom.", needs_approval=True)
    played = play(agent([reply("", call("boom", {}, id="a")), "ok"], bad, bench.tool(), approval=Approver()))

    assert {"a": ("error", "ValueError: boom")} == results(played)
    assert played.only(ToolFinished).started
