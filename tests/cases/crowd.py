"""Many agents that are all alike, started in the same tick, on a budget that has been drawn on before."""

from __future__ import annotations

import re
from typing import Any

import attrs
import trio

from actors import Agent, AgentSpec, Budget
from tests.support.costs import Prices
from tests.support.play import Played, Stage
from tests.support.specs import agent

from .model import CaseModel
from .program import Case

TOLD = r"(\d+) children started in the same tick, each wants 1 model call, each call takes (\d+) s"
ANSWER = {"text": "done", "usage": {"in": 8, "out": 2}}
"""Every call's; what it costs does not depend on it."""


@attrs.define(eq=False)
class Crowd:
    """The agents of such a case, and what they draw on together."""

    stage: Stage
    spec: AgentSpec
    """Of each of them."""
    budget: Budget
    size: int
    agents: list[Agent] = attrs.field(factory=list[Agent])
    played: list[Played] = attrs.field(factory=list[Played])

    async def play(self) -> None:
        """All at once."""
        self.agents += [await self.stage.spawn(self.spec) for _ in range(self.size)]
        async with trio.open_nursery() as nursery:
            for one in self.agents:
                nursery.start_soon(self._play, one)

    async def _play(self, one: Agent) -> None:
        self.played.append(await self.stage.play(one))


async def crowd_of(told: Case, stage: Stage) -> Crowd:
    """The crowd of a case; what was spent before it is spent."""
    found = re.fullmatch(TOLD, told["agents"])
    assert found, told["agents"]
    budget, price = await drawn_on(told, stage)
    model = CaseModel(lambda _request: ANSWER, seconds=float(found[2]))
    spec = agent(model, name="child", budget=budget, prices=price)
    return Crowd(stage, spec, budget, int(found[1]))


async def drawn_on(told: Case, stage: Stage) -> tuple[Budget, Prices]:
    """The budget of a case, with what was spent before, and the price of one call."""
    config: dict[str, Any] = dict(told["config"])
    budget = Budget(max_cost=config.pop("shared_max_cost"))
    price = Prices(call=config.pop("price_per_call"), models=("case",))
    assert config == {}, config
    dear = Prices(call=told["spent_before"], models=("case",))
    before = agent(CaseModel(lambda _request: ANSWER, seconds=0), name="before", budget=budget, prices=dear)
    await stage.play(await stage.spawn(before))
    assert told["spent_before"] == budget.statistics().cost
    return budget, price
