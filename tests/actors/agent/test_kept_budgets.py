"""Budgets with a name go on where they were in the next process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from actors import AgentSpec, Budget, open_runtime
from actors import sub_agent as agent_tool
from actors.journal import read_journal
from protocol.codec import decode_event
from protocol.errors import SpecError
from protocol.events import RunFinished
from protocol.ledger import AccountStatistics
from protocol.usage import NO_USAGE
from tests.crash.lives import Reader, World, worker
from tests.support.disk import Batch, FakeDisk, events_of, journal_on

Clock = trio.testing.MockClock
AGENTS = ("first", "second")


def spec(name: str, budget: Budget | None, *, child: AgentSpec | None = None) -> AgentSpec:
    """Two rounds of tools and an answer: three model calls, two bodies."""
    world = World()
    if child is None:
        return AgentSpec(name=name, model=Reader(world, 2, 1), tools=[worker(world)], budget=budget)
    return AgentSpec(
        name=name, model=Reader(world, 1, 1, (f"ask_{child.name}",)), tools=[agent_tool(child)], budget=budget
    )


async def live(batches: Sequence[Batch], budget: Budget, *, runs: bool = True) -> FakeDisk:
    """Each agent runs once, if it has not; what was begun goes on."""
    disk = FakeDisk(list(batches))
    async with open_runtime(journal=journal_on(disk)) as runtime:
        for name in AGENTS:
            agent = await runtime.spawn(spec(name, budget))
            if agent.brought_back is not None:
                await agent.brought_back.wait_ended()
            elif runs and not agent.messages:
                await (await agent.start("go")).result()
    return disk


def used(budget: Budget) -> tuple[int, int]:
    statistics = budget.statistics()
    return statistics.llm_calls, statistics.tool_calls


async def test_at_any_moment(autojump_clock: Clock) -> None:
    """Wherever the process died: what the budget has is what all runs together used, nothing lost and nothing twice."""
    whole = Budget(name="team")
    batches = (await live([], whole)).batches
    came_to: list[tuple[int, int]] = []
    told: list[tuple[int, int]] = []
    for count in range(len(batches) + 1):
        budget = Budget(name="team")
        disk = await live(batches[:count], budget)
        ends = [event for line in events_of(disk.records()) if isinstance(event := decode_event(line), RunFinished)]
        counters = [end.summary.counters for end in ends]
        told.append((sum(one.llm_calls for one in counters), sum(one.tool_calls for one in counters)))
        came_to.append(used(budget))

    assert (6, 4) == used(whole) == came_to[0] == came_to[-1]
    assert len(batches) > 20
    assert told == came_to


async def test_it_limits(autojump_clock: Clock) -> None:
    """What is used up stays used up."""
    disk = await live([], Budget(name="team", max_llm_calls=6))
    async with open_runtime(journal=journal_on(FakeDisk(disk.batches))) as runtime:
        agent = await runtime.spawn(spec("third", Budget(name="team", max_llm_calls=6)))
        result = await (await agent.start("go")).result()

    assert ("max_llm_calls", 0) == (result.finish_reason, result.counters.llm_calls)


async def test_all_that_it_counts(autojump_clock: Clock) -> None:
    """Calls, bodies, usage and seconds of work; of the process before and the one before that."""
    limits: Any = {"max_llm_calls": 50, "wall_clock_seconds": 500, "name": "team"}
    seen: list[AccountStatistics] = []
    disk = FakeDisk()
    for _ in range(3):
        budget = Budget(**limits)
        disk = await live(disk.batches, budget)
        seen.append(budget.statistics())

    assert seen[0] == seen[1] == seen[2]
    assert (6, 4) == used(budget)
    assert seen[0].work_seconds is not None
    assert seen[0].work_seconds > 0
    assert seen[0].usage != NO_USAGE


async def test_a_part_of_another_and_the_runtimes(autojump_clock: Clock) -> None:
    """Each that has a name is kept, once, wherever it stands; one without a name begins at nothing."""
    found: list[list[int]] = []
    batches: list[Batch] = []
    for _ in range(2):
        whole = Budget(name="whole")
        nameless = Budget(parent=whole)
        part = Budget(name="part", parent=nameless)
        disk = FakeDisk(batches)
        async with open_runtime(journal=journal_on(disk), budget=whole) as runtime:
            agent = await runtime.spawn(spec("first", part))
            if not agent.messages:
                await (await agent.start("go")).result()
        batches = disk.batches
        found.append([one.statistics().llm_calls for one in (whole, nameless, part)])

    assert [[3, 3, 3], [3, 0, 3]] == found


async def test_sub_agents(autojump_clock: Clock) -> None:
    """A budget that a sub-agent alone draws on is told of its runs; one that is above both hears of them once."""
    found: list[list[tuple[int, int]]] = []
    batches: list[Batch] = []
    for _ in range(2):
        whole, own = Budget(name="whole"), Budget(name="own")
        disk = FakeDisk(batches)
        async with open_runtime(journal=journal_on(disk)) as runtime:
            agent = await runtime.spawn(spec("first", whole, child=spec("child", own)))
            if agent.messages:
                await runtime.spawn(spec("other", own))
            else:
                await (await agent.start("go")).result()
        batches = disk.batches
        found.append([used(one) for one in (whole, own)])

    assert [[(5, 3), (3, 2)]] * 2 == found


async def test_two_of_one_name(autojump_clock: Clock) -> None:
    """They are refused where there is a journal, which could not tell them apart; the same one may be given to many."""
    one, other = Budget(name="team"), Budget(name="team")
    async with open_runtime(journal=journal_on(FakeDisk())) as runtime:
        for name in AGENTS:
            await runtime.spawn(spec(name, one))
        with pytest.raises(SpecError, match="two budgets named 'team': the journal keeps one"):
            await runtime.spawn(spec("third", other))
    async with open_runtime() as runtime:
        for budget in (one, other):
            await runtime.spawn(spec("x", budget))


async def test_one_that_has_lived_on(autojump_clock: Clock) -> None:
    """The same object in the next runtime knows what it had: it is not given it twice."""
    budget = Budget(name="team")
    disk = await live([], budget)
    await live(disk.batches, budget)

    assert (6, 4) == used(budget)


@pytest.mark.parametrize("name", ["", " ", 7])
def test_a_name_that_is_none(name: Any) -> None:
    """It is refused when it is given."""
    with pytest.raises(SpecError, match=r"Budget\(name=\) must be a name such as 'team'"):
        Budget(name=name)


async def test_in_a_file(tmp_path: Path) -> None:
    """It is no agent there, and its old records go."""
    path = tmp_path / "onward.db"
    for _ in range(2):
        budget = Budget(name="team")
        async with open_runtime(journal=path) as runtime:
            for name in AGENTS:
                agent = await runtime.spawn(spec(name, budget))
                if not agent.messages:
                    await (await agent.start("go")).result()
    with read_journal(path) as journal:
        names = [known.name for known in journal.agents]

    assert (6, 4) == used(budget)
    assert [*AGENTS] == names
