"""`max_tool_calls`: bodies entered, the first k of a turn, and what follows the limit (B4)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio

from actors import Budget, ContinuationResponse, Limits, deny, tool
from actors.models.scripted import call, reply
from protocol.events import ContinuationRequired, Finalizing, LimitReached, ToolStarted
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import APPROVE, DECLINE, Answers, agent

NOT_RUN = "Not run: the limit of {} tool calls was reached."


def fan(count: int, *, first: int = 0) -> Turn:
    """One turn with that many calls."""
    return reply("", *[call("t", {}, id=f"c{n}") for n in range(first, first + count)])


def always(*, width: int = 1) -> Any:
    """A model that never stops calling, whatever becomes of the calls."""
    numbers = itertools.count()

    def script(request: ModelRequest) -> Turn | str:
        if not request.tools_on:
            return "final"
        return reply("", *[call("t", {}, id=f"c{next(numbers)}") for _ in range(width)])

    return script


@pytest.mark.parametrize("parallel", [None, 1, 3])
def test_one_turn_cannot_fan_out_past_the_limit(parallel: int | None) -> None:
    """LIM-07: of 40 calls the first 8 run, the rest are `not_run` and say why; then the limit ends the run."""
    bench = Bench()
    spec = agent([fan(40)], bench.tool(), max_tool_iterations=20, max_tool_calls=8, max_parallel_tools=parallel)
    played = play(spec)
    found = results(played)

    assert ({"t": 8}, 8) == (bench.runs, played.result.counters.tool_calls)
    assert [f"c{n}" for n in range(8)] == sorted(event.call for event in played.all(ToolStarted))
    assert 40 == len(found)
    assert {("not_run", NOT_RUN.format(8))} == {found[f"c{n}"] for n in range(8, 40)}
    assert ("tool_calls", "max_tool_calls", LimitState("tool_calls", 8, 8)) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.limit,
    )
    assert ["limit_reached", "run_finished"] == played.types[-2:]
    assert 1 == len(played.asked)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_with_finalization_the_last_allowed_body_leads_to_the_final_call(width: int) -> None:
    """LIM-14, F3: after the last body one call with tools off; it does not depend on the model giving up."""
    bench = Bench()
    played = play(agent(always(width=width), bench.tool(), max_tool_calls=2, tool_iteration_limit_finalization=""))

    assert ({"t": 2}, "final", "model") == (bench.runs, played.result.text, played.result.finalized)
    assert LimitState("tool_calls", 2, 2) == played.result.limit == played.only(Finalizing).limit
    assert len(played.asked) == (3 if width == 1 else 2)
    assert ["limit_reached", "finalizing"] == [kind for kind in played.types if kind in {"limit_reached", "finalizing"}]
    assert "2 tool calls" in (played.asked[-1].tail or "")


def test_exactly_the_allowance_is_no_overrun() -> None:
    """B6: a model that answers after its last allowed call has reached no limit."""
    played = play(agent([fan(2), "done"], Bench().tool(), max_tool_calls=2, max_steps=9))

    assert ("model", None, []) == (played.result.stopped_by, played.result.limit, played.all(LimitReached))


def test_the_next_turn_finds_nothing_left() -> None:
    """B4: with the allowance used up, a further turn's calls are all `not_run`, and then the limit."""
    bench = Bench()
    played = play(agent(always(), bench.tool(), max_tool_calls=2, max_steps=50))

    assert ({"t": 2}, 3) == (bench.runs, len(played.asked))
    assert ["ok", "ok", "not_run"] == list(statuses(played).values())
    assert ("tool_calls", 3) == (played.result.stopped_by, played.result.counters.tool_iterations)


def test_denied_and_bad_calls_use_up_nothing() -> None:
    """B4: the first k of those that would run, after approvals, in call order."""
    pay, paid = payer()
    turn = reply(
        "",
        call("pay", {"n": 1}, id="a"),
        call("gone", {}, id="b"),
        call("pay", {"n": "x"}, id="c"),
        call("pay", {"n": 2}, id="d"),
        call("pay", {"n": 3}, id="e"),
        call("pay", {"n": 4}, id="f"),
    )
    provider = Approver(a=deny())
    played = play(agent([turn], pay, approval=provider, max_tool_calls=2))

    assert ["denied", "error", "error", "ok", "ok", "not_run"] == list(statuses(played).values())
    assert ([2, 3], 4) == (sorted(paid), len(provider.asked))


def test_a_body_that_fails_was_entered() -> None:
    """B4: errors and timeouts count, for they may have had an effect."""
    bench = Bench()
    spec = agent(always(), bench.tool(value=ValueError("boom")), max_tool_calls=2, max_steps=50)
    played = play(spec)

    assert ({"t": 2}, ["error", "error", "not_run"]) == (bench.runs, list(statuses(played).values()))


def test_a_final_call_after_an_overrun_sees_every_result() -> None:
    """B4, R2: the exchange is whole before the final call is made."""
    played = play(
        agent([fan(3), "final"], Bench().tool(), max_tool_calls=1, tool_iteration_limit_finalization="Sum up.")
    )

    assert ("final", "Sum up.") == (played.result.text, played.asked[-1].tail)
    assert ["ok", "not_run", "not_run"] == list(statuses(played).values())


@pytest.mark.parametrize("finalization", [None, ""])
def test_a_gate_on_tool_calls_is_asked_before_the_next_step(finalization: str | None) -> None:
    """G1: `gate_on={"tool_calls"}` asks at the boundary, no call pending; approve grants more, decline ends in an answer."""
    bench = Bench()
    gate = Answers(APPROVE, DECLINE)
    spec = agent(
        always(width=3),
        bench.tool(),
        max_tool_calls=2,
        continuation=gate,
        gate_on={"tool_calls"},
        tool_iteration_limit_finalization=finalization,
    )
    played = play(spec)

    assert [("tool_calls", 2, 2), ("tool_calls", 4, 4)] == [
        (r.limit.name, r.limit.max, r.limit.used) for r in gate.asked
    ]
    assert [(), ()] == [request.tool_calls for request in gate.asked]
    assert ({"t": 4}, "final", "max_tool_calls") == (bench.runs, played.result.text, played.result.finish_reason)
    assert ["ok", "ok", "not_run", "ok", "ok", "not_run"] == list(statuses(played).values())
    assert 3 == len(played.asked)


def test_a_grant_is_in_tool_calls() -> None:
    """G3: `grant` is in the limit's unit."""
    bench = Bench()
    gate = Answers(ContinuationResponse("approve", grant=1), DECLINE)
    play(agent(always(), bench.tool(), max_tool_calls=2, continuation=gate, gate_on={"tool_calls"}))

    assert ({"t": 3}, [2, 3]) == (bench.runs, [request.limit.max for request in gate.asked])


@pytest.mark.parametrize("finalization", [None, ""])
@pytest.mark.parametrize("own", [None, 10, 2])
def test_a_budget_that_no_gate_can_raise_ends_the_run(own: int | None, finalization: str | None) -> None:
    """LIM-14, G3: the gate raises the run's own limit alone; calls that another account refuses do not loop."""
    bench = Bench()
    gate = Answers(*[APPROVE] * 50)
    budget = Budget(max_tool_calls=2)
    spec = agent(
        always(),
        bench.tool(),
        max_tool_calls=own,
        max_steps=50,
        budget=budget,
        continuation=gate,
        gate_on={"tool_calls"},
        tool_iteration_limit_finalization=finalization,
    )
    played = play(spec)

    assert ({"t": 2}, 2) == (bench.runs, budget.statistics().tool_calls)
    assert len(played.asked) <= 4
    assert "tool_calls" == played.result.stopped_by
    assert [] == played.all(ContinuationRequired)


def test_runs_that_share_a_budget_share_its_tool_calls() -> None:
    """B0, B2: two runs at the same time never enter one body too many."""
    bench = Bench()
    budget = Budget(max_tool_calls=5)

    async def scene(stage: Stage) -> list[Played]:
        played: list[Played] = []
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                one = await stage.spawn(agent(always(width=4), bench.tool(seconds=2), budget=budget, max_steps=9))

                async def go(one: Any = one) -> None:
                    played.append(await stage.play(one))

                nursery.start_soon(go)
        return played

    played = perform(scene)

    assert ({"t": 5}, 5) == (bench.runs, budget.statistics().tool_calls)
    assert ["tool_calls", "tool_calls"] == [one.result.stopped_by for one in played]


def test_a_sub_agents_bodies_are_its_callers_too() -> None:
    """B2, B4: the caller's limit bounds what a tool's own agent may run."""
    inner = Bench()

    async def scene(stage: Stage) -> tuple[Played, str]:
        child = await stage.spawn(agent(always(width=5), inner.tool(), name="child", max_steps=9))
        ends: list[str] = []

        async def ask() -> str:
            async with child.run("go") as run:
                ends.append((await run.result()).stopped_by)
            return "asked"

        root = await stage.spawn(
            agent(
                [reply("", call("ask", {}, id="p")), "ok"], tool(ask, description="Ask."), max_tool_calls=3, max_steps=9
            )
        )
        return await stage.play(root), ends[0]

    played, end = perform(scene)

    assert ({"t": 2}, "tool_calls", "ok") == (inner.runs, end, played.result.text)


def test_a_tool_that_ends_the_run_wins_over_an_overrun() -> None:
    """T6, B4: the run ended by its tool; the calls beyond the limit are `not_run` all the same."""
    bench = Bench()

    async def done() -> str:
        await trio.lowlevel.checkpoint()
        return "bye"

    ending = tool(done, description="End.", ends_run=True)
    turn = reply("", call("done", {}, id="a"), call("t", {}, id="b"))
    played = play(agent([turn], ending, bench.tool(), max_tool_calls=1))

    assert ("tool", None, {"a": "ok", "b": "not_run"}) == (
        played.result.stopped_by,
        played.result.limit,
        statuses(played),
    )


def test_a_run_may_be_given_its_own_allowance() -> None:
    """R6: `agent.run(limits=)` holds for that run."""
    bench = Bench()
    played = play(agent(always(), bench.tool(), max_tool_calls=9), limits=Limits(max_tool_calls=1))

    assert ({"t": 1}, 1) == (bench.runs, played.result.limit and played.result.limit.max)


def test_an_approval_is_not_asked_twice_for_what_the_limit_refuses() -> None:
    """B4, T8: what was approved and not run is told; nothing of it is asked again."""
    pay, paid = payer()
    provider = Approver()
    played = play(agent(pays(1, 2, 3), pay, approval=provider, max_tool_calls=1, tool_iteration_limit_finalization=""))

    assert ([1], 3, "ok") == (paid, len(provider.asked), played.result.text)
    assert ["ok", "not_run", "not_run"] == list(statuses(played).values())
