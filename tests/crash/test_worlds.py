"""Whatever a run meets, its process may die, and die again: random worlds, each in several lives.

`ONWARD_SWEEP=full` draws thousands of them, and lets the chosen ones die at every commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from protocol.events import Event, RunFinished, ToolFinished
from tests.properties.drawing import worlds
from tests.properties.test_worlds import CALL, CHOSEN
from tests.properties.world import Call, Disturbance, Does, Gate, Say, Settings, World

from .torn import Torn, begin, go_on
from .torn_judge import faults_of

FULL = os.environ.get("ONWARD_SWEEP") == "full"
TWO = Say("text", calls=(Call(), Call(1)))
MORE = {
    "cancelled": World(turns=(TWO,), tools=(Does(seconds=1), Does(seconds=8)), disturbances=(Disturbance(2.5, "cancel"),)),
    "left": World(turns=(TWO,), tools=(Does("stubborn", seconds=1), Does()), disturbances=(Disturbance(2.5, "leave"),)),
    "steered and stopped": World(
        turns=(TWO,),
        again=True,
        tools=(Does(seconds=1), Does(seconds=1)),
        disturbances=(Disturbance(0.5, "steer"), Disturbance(4.0, "stop")),
    ),
    "an agent of its own below": World(
        turns=(TWO,),
        tools=(Does("agent"), Does(seconds=1)),
        shared_child=True,
        child=World(
            turns=(TWO,),
            again=True,
            tools=(Does(), Does(seconds=1)),
            settings=Settings(max_tool_iterations=1),
            gate=Gate(answers=("approve", "some"), seconds=2),
        ),
    ),
}  # fmt: skip


def drawn(world: World) -> World:
    """What a hook around a call made of it is not known in the next life; the second run is a new one."""
    return attrs.evolve(world, hooks=attrs.evolve(world.hooks, around=()), continues=False)


def lives_of(world: World, deaths: tuple[int, ...]) -> list[str]:
    """What is wrong with a world whose process dies so often, each time somewhere behind where it died before."""
    torn = begin(world)
    faults = faults_of(torn)
    for death in deaths:
        last = torn.wild_commits
        if faults or last <= torn.first:
            break
        torn = go_on(torn, torn.first + 1 + death % (last - torn.first))
        faults += [f"dead after {torn.first} of {last} commits: {fault}" for fault in faults_of(torn)]
    return faults


@pytest.mark.slow
@settings(
    max_examples=3000 if FULL else 40,
    deadline=None,
    derandomize=not FULL,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@example(World(turns=(Say("text", finish="length"),)), (2, 0))
@example(World(turns=(CALL,), again=True, tools=(Does(ends_run=True),)), (5, 1))
@given(worlds.map(drawn), st.lists(st.integers(0, 200), min_size=1, max_size=3).map(tuple))
def test_the_rules_hold_over_several_lives(world: World, deaths: tuple[int, ...]) -> None:
    """No body is entered twice, no request is forgotten, nothing that was acknowledged is lost, and it ends in order."""
    assert [] == lives_of(world, deaths)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHOSEN, *MORE])
def test_a_death_at_any_commit(name: str) -> None:
    """The same with worlds that are chosen, which die at every commit in turn."""
    world = drawn((CHOSEN | MORE)[name])
    first = begin(world)
    found = {0: faults} if (faults := faults_of(first)) else {}
    for number in range(1, first.wild_commits + 1, 1 if FULL else 1 + first.wild_commits // 12):
        if faults := faults_of(go_on(first, number)):
            found[number] = faults

    assert {} == found


def entered_twice(torn: Torn) -> None:
    torn.truth.entered.append(torn.truth.entered[0])


def forgotten_request(torn: Torn) -> None:
    torn.truth.asked += [torn.truth.asked[0]] * 9


def lost_decision(torn: Torn) -> None:
    torn.truth.accepted["q-nobody"] = 1


def other_epoch(torn: Torn) -> None:
    torn.epoch = "epoch-other"


def gap(torn: Torn) -> None:
    del torn.read[0]


def without(kind: type[Event]) -> Callable[[Torn], None]:
    def spoil(torn: Torn) -> None:
        torn.events.remove(next(event for event in torn.events if isinstance(event, kind)))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [entered_twice, forgotten_request, lost_decision, other_epoch, gap, without(ToolFinished), without(RunFinished)],
)
def test_the_judge_sees_a_fault(spoil: Callable[[Torn], None]) -> None:
    """The judge is no rubber stamp: a second life that is right becomes a fault when its record is spoilt."""
    torn = go_on(begin(World(turns=(CALL, CALL))), 4)
    before = faults_of(torn)
    spoil(torn)

    assert [] == before
    assert [] != faults_of(torn)
