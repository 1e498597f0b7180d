"""Accounts in a tree: budgets in budgets, over runtimes and runs; a caller and what it starts (B0, B2, G3)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import AgentSpec, Budget, ContinuationResponse, RunResult, open_runtime
from actors.models.scripted import Scripted, call, reply
from protocol.errors import SpecError
from protocol.ledger import AccountStatistics
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import Turn
from protocol.usage import Usage
from tests.support.costs import TEN, Prices, spec
from tests.support.families import asks
from tests.support.play import Stage, perform
from tests.support.scripts import Bench, results_in


def endless(request: ModelRequest) -> Turn:
    """A tool call in every turn; ten tokens each."""
    if not request.tools_on:
        return reply("final", usage=TEN)
    return reply("", call("t", {}, id=f"c{results_in(request.messages)}"), usage=TEN)


def test_nested_budgets_each_bound_what_is_below_them() -> None:
    """B0: a budget within a budget: the smaller one stops its own, the larger one stops them all."""

    async def scene(stage: Stage) -> list[LimitState | None]:
        whole = Budget(max_llm_calls=5, name="whole")
        part = Budget(max_llm_calls=3, parent=whole, name="part")
        inner = await stage.spawn(spec(endless, Bench().tool(), name="inner", budget=part))
        outer = await stage.spawn(spec(endless, Bench().tool(), name="outer", budget=whole))
        limits = [(await stage.play(agent)).result.limit for agent in (inner, outer, inner)]
        assert (5, 3) == (whole.statistics().llm_calls, part.statistics().llm_calls)
        return limits

    assert [
        LimitState("llm_calls", 3, 3),
        LimitState("llm_calls", 5, 5),
        LimitState("llm_calls", 3, 3),
    ] == perform(scene)


def test_a_budget_outlives_its_runs() -> None:
    """B0: run after run draws on the same object; each run's own counters begin anew."""

    async def scene(stage: Stage) -> list[tuple[int, str]]:
        agent = await stage.spawn(spec(lambda _request: reply("done", usage=TEN), budget=Budget(max_total_tokens=30)))
        results = [(await stage.play(agent)).result for _ in range(4)]
        return [(result.counters.llm_calls, result.stopped_by) for result in results]

    assert [(1, "model"), (1, "model"), (1, "model"), (0, "total_tokens")] == perform(scene)


def test_the_runtimes_budget_is_over_all_agents() -> None:
    """B0: `open_runtime(budget=)` is drawn on by every agent; an agent that has the same budget draws on it once."""

    async def main() -> tuple[list[str], int, int]:
        budget = Budget(max_llm_calls=4)
        ends: list[str] = []
        async with open_runtime(budget=budget) as runtime:
            for own in (None, budget, budget, None, None):
                agent = await runtime.spawn(
                    AgentSpec(model=Scripted([reply("done", usage=TEN)]), budget=own, max_llm_calls=3)
                )
                async with agent.run("go") as run:
                    ends.append((await run.result()).stopped_by)
            counted_by_runtime = runtime.statistics().llm_calls
        return ends, budget.statistics().llm_calls, counted_by_runtime

    assert (["model"] * 4 + ["llm_calls"], 4, 4) == trio.run(main)


def test_a_runtimes_budget_for_cost_needs_prices() -> None:
    """B3: an agent whose cost nobody can work out cannot run where the runtime's cost is limited: it says what to do."""

    async def main() -> None:
        async with open_runtime(budget=Budget(max_cost=1.0)) as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted(["never"])))
            with pytest.raises(SpecError, match="max_cost needs prices: without them no cost is known"):
                async with agent.run("go"):
                    pass

    trio.run(main)


@attrs.frozen
class Diamond:
    """A caller and its sub-agent, which has a budget of its own, and maybe the same one."""

    root: RunResult
    child: RunResult
    budget: AccountStatistics
    runtime_calls: int


def diamond(*, shared: bool, root: dict[str, Any] | None = None, **child: Any) -> Diamond:
    """The caller asks once; the child calls tools without end."""

    async def scene(stage: Stage) -> Diamond:
        budget = Budget(max_llm_calls=4)
        results: list[RunResult] = []
        below = await stage.spawn(spec(endless, Bench().tool(), name="child", budget=budget, **child))
        script = [reply("", call("ask_child", {}, id="a"), usage=TEN), reply("done", usage=TEN)]
        tool = asks(stage, below, into=results)
        above = await stage.spawn(spec(script, tool, budget=budget if shared else None, **root or {}))
        played = await stage.play(above)
        calls = stage.runtime.statistics().llm_calls
        return Diamond(played.result, results[0], budget.statistics(), calls)

    return perform(scene)


def test_a_child_draws_on_its_callers_account_and_on_its_own_budget() -> None:
    """B2: both bound it; the caller is not bound by the child's budget, and counts what the child does."""
    kin = diamond(shared=False)

    assert LimitState("llm_calls", 4, 4) == kin.child.limit
    assert ("done", None) == (kin.root.text, kin.root.limit)
    assert (6, 4, 4, 6) == (
        kin.root.counters.llm_calls,
        kin.child.counters.llm_calls,
        kin.budget.llm_calls,
        kin.runtime_calls,
    )
    assert (60, 40) == (kin.root.usage.total_tokens, kin.child.usage.total_tokens)


def test_a_call_counts_once_where_two_ways_lead_to_a_budget() -> None:
    """B2: caller and child have the same budget: a call of the child is one call of it, not two."""
    kin = diamond(shared=True)

    assert (4, 3, LimitState("llm_calls", 4, 4)) == (
        kin.budget.llm_calls,
        kin.child.counters.llm_calls,
        kin.child.limit,
    )
    assert (LimitState("llm_calls", 4, 4), 4) == (kin.root.limit, kin.runtime_calls)


@pytest.mark.parametrize(("own", "limit"), [(2, LimitState("llm_calls", 2, 2)), (9, LimitState("llm_calls", 3, 3))])
def test_a_childs_limit_is_bounded_by_its_callers(own: int, limit: LimitState) -> None:
    """B2: a developer's limit on the caller is a ceiling for the child's own: the nearest that is used up is told."""
    kin = diamond(shared=False, root={"max_llm_calls": 3}, max_llm_calls=own)

    assert limit == kin.child.limit


def test_the_held_call_is_the_callers_alone() -> None:
    """B2: with its finalization on, the caller's last call is held: the child is refused it, the caller answers."""
    kin = diamond(shared=False, root={"max_llm_calls": 4, "llm_call_limit_finalization": ""})

    assert (LimitState("llm_calls", 4, 3), 2) == (kin.child.limit, kin.child.counters.llm_calls)
    assert ("done", "model", 4) == (kin.root.text, kin.root.finalized, kin.root.counters.llm_calls)


def test_a_childs_last_call_is_the_last_that_it_can_get() -> None:
    """B2: the child's call is final when it takes the last one over all accounts, the held one left out."""
    options: dict[str, Any] = {"max_llm_calls": 4, "llm_call_limit_finalization": ""}
    kin = diamond(shared=False, root=options, llm_call_limit_finalization="That is all.")

    assert ("final", "model", LimitState("llm_calls", 4, 3)) == (kin.child.text, kin.child.finalized, kin.child.limit)
    assert ("done", "model") == (kin.root.text, kin.root.finalized)


def test_what_a_turn_has_used_is_booked_before_its_tools_begin() -> None:
    """Step 10, B2: a turn has used all 100 tokens: the child that its call asks is refused, not let in on a stale count."""

    async def scene(stage: Stage) -> tuple[RunResult, list[RunResult]]:
        results: list[RunResult] = []
        child = await stage.spawn(spec(["never"], name="child"))
        script = [reply("", call("ask_child", {}, id="a"), usage=Usage(90, 0, 0, 10, 0, complete=True))]
        root = await stage.spawn(spec(script, asks(stage, child, into=results), max_total_tokens=100))
        return (await stage.play(root)).result, results

    result, (child,) = perform(scene)

    assert (LimitState("total_tokens", 100, 100), 0) == (child.limit, child.counters.llm_calls)
    assert (LimitState("total_tokens", 100, 100), 1) == (result.limit, result.counters.llm_calls)


def test_what_a_run_has_used_is_booked_while_it_waits() -> None:
    """B2: another agent on the same budget sees what a turn has cost while that turn's tools still run."""

    async def scene(stage: Stage) -> tuple[float | None, LimitState | None]:
        budget, prices = Budget(max_cost=5.0), Prices(token=0.1)
        big = Usage(40, 0, 0, 10, 0, complete=True)
        script = [reply("", call("t", {}, id="a"), usage=big), "never"]
        first = await stage.spawn(spec(script, Bench().tool(seconds=50), budget=budget, prices=prices))
        second = await stage.spawn(spec(["never"], name="second", budget=budget, prices=prices))
        async with stage.run(first) as run:
            await trio.sleep(10)
            seen = budget.cost
            limit = (await stage.play(second)).result.limit
            await run.result()
        return seen, limit

    seen, limit = perform(scene)

    assert (5.0, LimitState("cost", 5.0, 5.0)) == (seen, limit)


def test_an_approval_gives_no_more_than_those_above_have_left() -> None:
    """G3: a child's grant is cut to what its caller has left; where that is no help, nobody is asked."""
    asked: list[Any] = []

    def decide(request: Any) -> Any:
        asked.append((request.limit.used, request.default_grant, request.max_grant))
        return ContinuationResponse("approve")

    kin = diamond(
        shared=False,
        root={"max_llm_calls": 5},
        max_llm_calls=2,
        gate_on={"llm_calls"},
        continuation=decide,
        max_grant=9,
    )

    # the caller has used one; the child asks before its second: three more are left, then one that it has anyway
    assert [(1, 2, 3)] == asked
    assert LimitState("llm_calls", 4, 4) == kin.child.limit


def test_a_window_has_no_ceiling_above_it() -> None:
    """N1, G3: a window is a run's own: the caller's window does not cut what the child's gate may grant."""
    grants: list[Any] = []

    def decide(request: Any) -> Any:
        grants.append((request.default_grant, request.max_grant))
        return ContinuationResponse("decline")

    diamond(shared=False, root={"max_tool_iterations": 1}, max_tool_iterations=2, continuation=decide, max_grant=7)

    assert [(2, 7)] == grants


def test_statistics_are_frozen_and_complete() -> None:
    """B0: `Budget.statistics()` says what is used, and `usage` and `cost` are the same numbers."""

    async def scene(stage: Stage) -> Budget:
        budget = Budget(max_cost=5.0, max_llm_calls=7, name="mine")
        agent = await stage.spawn(
            spec(endless, Bench().tool(), budget=budget, prices=Prices(call=0.5), max_llm_calls=3)
        )
        await stage.play(agent)
        return budget

    budget = perform(scene)
    statistics = budget.statistics()

    assert ("mine", 3, 3, 1.5, 0, 0.0, 0, None) == (
        statistics.name,
        statistics.llm_calls,
        statistics.tool_calls,
        statistics.cost,
        statistics.estimated_tokens,
        statistics.estimated_cost,
        statistics.open_reservations,
        statistics.work_seconds,
    )
    assert (budget.usage, budget.cost) == (statistics.usage, statistics.cost)
    assert (30, True) == (statistics.usage.total_tokens, statistics.usage.complete)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        statistics.llm_calls = 0  # type: ignore[misc]


@pytest.mark.parametrize(
    "field", ["max_llm_calls", "max_tool_calls", "max_total_tokens", "max_cost", "wall_clock_seconds"]
)
def test_a_budget_takes_limits_alone(field: str) -> None:
    """Section 6: what cannot be a limit is refused at construction, with its name."""
    with pytest.raises(SpecError, match=f"{field} must be"):
        Budget(**{field: 0})  # type: ignore[arg-type]


def test_what_is_no_budget_is_refused_where_it_is_given() -> None:
    """Section 6: a wrong parent, or a wrong budget of the runtime, is told as what it is, with what would be right."""
    wrong: Any = 5.0

    async def main() -> None:
        with pytest.raises(
            SpecError, match=r"open_runtime\(budget=\) must be a Budget\(...\), or None for none; it is 5.0"
        ):
            async with open_runtime(budget=wrong):
                pass

    trio.run(main)
    with pytest.raises(SpecError, match="parent must be the Budget that this one is a part of, or None; it is 5.0"):
        Budget(parent=wrong)


def test_a_budget_can_be_made_and_looked_at_outside_a_loop() -> None:
    """B0: a budget lives as long as its object, not as long as a runtime."""
    budget = Budget(wall_clock_seconds=10, max_llm_calls=2)

    async def main() -> str:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted(["done"]), budget=budget))
            async with agent.run("go") as run:
                return (await run.result()).stopped_by

    assert ["model", "model", "llm_calls"] == [trio.run(main) for _ in range(3)]
    assert 2 == budget.statistics().llm_calls
    assert isinstance(budget.statistics().work_seconds, float)
