"""Budgets that many runs draw on at once: never one call, one body or one cent too many (B0-B2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, Budget, RunResult, open_runtime
from actors.models.scripted import Scripted, call, reply
from protocol.errors import RunCancelledError
from protocol.ledger import AccountStatistics
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.costs import TEN, Prices, counted, spec
from tests.support.families import asks
from tests.support.play import Stage, perform
from tests.support.scripts import Bench

CROWD = 200


@attrs.define
class Meter:
    """How many model calls are in flight, and how many have been."""

    seconds: float = 1.0
    now: int = 0
    most: int = 0
    total: int = 0

    async def answer(self, _request: ModelRequest) -> Turn:
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        await trio.sleep(self.seconds)
        self.now -= 1
        return reply("done", usage=TEN)


def crowd(
    budget: Budget, *, size: int = CROWD, script: Callable[[], Any] | None = None, order: int = 0, **options: Any
) -> tuple[list[RunResult], Meter, AccountStatistics]:
    """So many agents with one budget, started in the same tick; what became of each, in no order.

    Not judged: the judge takes longer than the crowd.
    """
    meter, bench = Meter(), Bench()
    tool = bench.tool()

    async def main() -> list[RunResult]:
        results: list[RunResult] = []

        async def one(agent: Agent) -> None:
            async with agent.run("go") as run:
                results.append(await run.result())

        async with open_runtime() as runtime:
            agents = [
                await runtime.spawn(spec(script() if script else meter.answer, tool, budget=budget, **options))
                for _ in range(size)
            ]
            async with trio.open_nursery() as nursery:
                for agent in agents:
                    nursery.start_soon(one, agent)
        return results

    trio._core._run._r.seed(order)  # there is no public way to it
    results = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    meter.total = meter.total or bench.runs.get("t", 0)
    return results, meter, budget.statistics()


def ended_by(results: list[RunResult]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.stopped_by] = counts.get(result.stopped_by, 0) + 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "options", "fits", "name", "order"),
    [
        ({"max_llm_calls": 37}, {}, 37, "llm_calls", 0),
        ({"max_total_tokens": 379}, {}, 37, "total_tokens", 1),
        ({"max_total_tokens": 370}, {}, 37, "total_tokens", 2),
        ({"max_cost": 3.7}, {"prices": Prices(call=0.1)}, 37, "cost", 3),
        ({"max_cost": 3.79}, {"prices": Prices(call=0.1)}, 37, "cost", 4),
        ({"max_cost": 20.0, "max_llm_calls": 150}, {"prices": Prices(call=0.1)}, 150, "llm_calls", 5),
    ],
)
def test_of_a_crowd_exactly_as_many_are_let_in_as_fit(
    limits: dict[str, Any], options: dict[str, Any], fits: int, name: str, order: int
) -> None:
    """B1, B2: 200 agents that start in the same tick share a budget: what fits is let in, at once, and no more."""
    results, meter, statistics = crowd(Budget(**limits), order=order, **options)

    assert (fits, fits, fits) == (meter.total, meter.most, statistics.llm_calls)
    assert {"model": fits, name: CROWD - fits} == ended_by(results)
    assert 0 == statistics.open_reservations
    assert fits * 10 == statistics.usage.total_tokens
    assert {0, 1} == {result.counters.llm_calls for result in results}


@pytest.mark.slow
def test_a_crowd_enters_exactly_as_many_bodies_as_it_may() -> None:
    """B4: of 200 agents with three calls each, 100 bodies run; every other call is `not_run`."""

    def three() -> Any:
        return [reply("", *[call("t", {}, id=f"c{n}") for n in range(3)], usage=TEN), reply("done", usage=TEN)]

    results, meter, statistics = crowd(Budget(max_tool_calls=100), script=three)
    statuses = [result.status for each in results for step in each.steps for result in step.results]

    assert (100, 100) == (meter.total, statistics.tool_calls)
    assert {"ok": 100, "not_run": 500} == {status: statuses.count(status) for status in statuses}
    assert 100 == sum(result.counters.tool_calls for result in results)
    assert {"model": 33, "tool_calls": 167} == ended_by(results)


@pytest.mark.parametrize(("ceiling", "admitted"), [(10.0, 0), (12.0, 1)])
def test_bud_01(ceiling: float, admitted: int) -> None:
    """BUD-01: 9.0 spent; five children that start in the same tick want a call of 2.0 each: as many as fit are let in."""

    async def scene(stage: Stage) -> tuple[int, list[RunResult], AccountStatistics]:
        budget, prices, meter = Budget(max_cost=ceiling), Prices(call=2.0), Meter()
        before = await stage.spawn(spec([reply("x", usage=TEN)], budget=budget, prices=Prices(call=9.0)))
        await stage.play(before)
        results: list[RunResult] = []
        children = [await stage.spawn(spec(meter.answer, name=f"c{n}", prices=prices)) for n in range(5)]
        tools = [asks(stage, child, into=results) for child in children]
        script = [
            reply("", *[call(each.name, {}, id=each.name) for each in tools], usage=TEN),
            reply("done", usage=TEN),
        ]
        await stage.play(await stage.spawn(spec(script, *tools, budget=budget, prices=Prices())))
        return meter.total, results, budget.statistics()

    total, results, statistics = perform(scene)

    assert admitted == total
    assert {"model": admitted, "cost": 5 - admitted} == {"model": 0, "cost": 0, **ended_by(results)}
    assert 9.0 + 2.0 * admitted == statistics.cost


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        ({"max_llm_calls": 1}, {}),
        ({"max_total_tokens": 10}, {}),
        ({"max_cost": 2.0}, {"prices": Prices(call=2.0)}),
    ],
)
def test_a_call_that_is_cancelled_before_it_is_sent_is_given_back(limits: Any, options: Any) -> None:
    """BUD-01, B1: the first child is cancelled in its hook; what was reserved for it lets the second in."""

    async def slow(config: Any) -> Any:
        await trio.sleep(100)
        return config

    async def scene(stage: Stage) -> tuple[str, int, str]:
        budget, meter = Budget(**limits), Meter()
        first = await stage.spawn(spec(["never"], name="first", budget=budget, prepare_call=slow, **options))
        second = await stage.spawn(spec(meter.answer, name="second", budget=budget, **options))
        async with stage.run(first) as run:
            await trio.sleep(5)
            reserved = budget.statistics().llm_calls
            run.cancel("not wanted")
            with pytest.raises(RunCancelledError):
                await run.result()
        assert (1, 0) == (reserved, budget.statistics().llm_calls)
        return (await stage.play(second)).result.text, meter.total, run.id

    text, total, _ = perform(scene)

    assert ("done", 1) == (text, total)


def test_a_call_that_is_cancelled_after_it_was_sent_counts() -> None:
    """B1: what the transport has been handed may have been counted by the provider: it is not given back."""

    async def scene(stage: Stage) -> tuple[AccountStatistics, LimitState | None]:
        budget = Budget(max_llm_calls=1, max_total_tokens=1000)
        first = await stage.spawn(spec(Meter(seconds=100).answer, name="first", budget=budget))
        second = await stage.spawn(spec(["never"], name="second", budget=budget))
        async with stage.run(first) as run:
            await trio.sleep(5)
            run.cancel("not wanted")
            with pytest.raises(RunCancelledError):
                await run.result()
        return budget.statistics(), (await stage.play(second)).result.limit

    statistics, limit = perform(scene)

    assert (1, 10, 0) == (statistics.llm_calls, statistics.estimated_tokens, statistics.open_reservations)
    assert LimitState("llm_calls", 1, 1) == limit


def test_a_model_that_reports_no_sending_counts_from_the_start() -> None:
    """B1: where the profile does not say when a request leaves, entering the model counts as sent."""

    class Mute(Scripted):
        async def turn(self, request: Any, emit: Any) -> Turn:
            raise ConnectionError("refused")

    async def calls_of(reports: bool) -> int:
        profile = attrs.evolve(counted(), reports_sending=reports)
        budget = Budget(max_llm_calls=5)
        async with open_runtime() as runtime:
            agent = await runtime.spawn(AgentSpec(model=Mute([], profile=profile), budget=budget))
            async with agent.run("go") as run:
                with pytest.raises(Exception, match="ConnectionError"):
                    await run.result()
        return budget.statistics().llm_calls

    async def scene(_stage: Stage) -> tuple[int, int]:
        return await calls_of(reports=False), await calls_of(reports=True)

    assert (1, 0) == perform(scene)


def test_children_in_a_crowd_leave_the_callers_held_call_alone() -> None:
    """B2: twenty children in the same tick get all but the call that is held, and the caller gives its answer."""

    async def scene(stage: Stage) -> tuple[RunResult, int]:
        meter = Meter()
        children = [await stage.spawn(spec(meter.answer, name=f"c{n}")) for n in range(20)]
        tools = [asks(stage, child) for child in children]
        start = reply("", *[call(each.name, {}, id=each.name) for each in tools], usage=TEN)
        script = [start, reply("done", usage=TEN)]
        root = await stage.spawn(spec(script, *tools, max_llm_calls=10, llm_call_limit_finalization=""))
        return (await stage.play(root)).result, meter.total

    result, total = perform(scene)

    assert (8, 10) == (total, result.counters.llm_calls)
    assert ("done", "model", LimitState("llm_calls", 10, 10)) == (result.text, result.finalized, result.limit)
