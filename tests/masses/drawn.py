"""Draws a crowd: the worlds of `tests.properties`, half of them made long, and all that disturbs them told by the clock."""

from __future__ import annotations

import random

import attrs
from hypothesis import HealthCheck, given, seed, settings

from tests.properties.drawing import worlds
from tests.properties.world import Answer, Disturbance, Gate, World

STEP_SECONDS = 0.03
"""What stands here for a step of the scheduler: in a crowd those are everybody's."""
MANY_ANSWERS: tuple[Answer, ...] = (
    "approve",
    "grant",
    "approve",
    "some",
    "approve",
    "discard",
    "approve",
    "approve",
) * 2


def drawn_worlds(number: int, count: int) -> list[World]:
    """As many worlds; the same ones for the same number."""
    found: list[World] = []

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(worlds)
    def draw(world: World) -> None:
        found.append(world)

    draw()
    choice = random.Random(number)  # noqa: S311
    found = (found * (1 + count // len(found)))[:count]
    return [timed(long(world, choice) if place % 2 else world) for place, world in enumerate(found)]


def timed(world: World) -> World:
    """The same, disturbed at moments of the clock."""
    acts = [
        attrs.evolve(one, at=float(one.at * STEP_SECONDS)) if isinstance(one.at, int) else one
        for one in world.disturbances
    ]
    return attrs.evolve(world, disturbances=tuple(acts))


def long(world: World, choice: random.Random) -> World:
    """The same with a model that asks for tools again and again, and limits that let it."""
    calling = [say for say in world.turns if say.calls and say.fails is None and not say.lost and say.finish == "auto"]
    if not calling:
        return world
    rounds, calls = choice.choice([(None, None), (4, None), (7, 40), (None, 25)])
    limited = attrs.evolve(
        world.settings,
        max_tool_iterations=rounds,
        max_llm_calls=calls,
        max_tool_calls=None,
        max_total_tokens=None,
        max_cost=None,
        wall_clock_seconds=None,
        stop_when=(),
    )
    tools = tuple([attrs.evolve(does, ends_run=False) for does in world.tools])
    gate = Gate(choice.choice(["remote", "function"]), answers=MANY_ANSWERS, seconds=choice.choice([0, 0.5, 2]))
    acts = tuple([Disturbance(choice.uniform(0, 60), one.act) for one in world.disturbances if one.act != "stop_agent"])
    return attrs.evolve(
        world, turns=tuple(calling), again=True, settings=limited, gate=gate, tools=tools, disturbances=acts
    )
