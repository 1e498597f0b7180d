"""A run that is held between its steps, and what its model was asked."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from actors import AgentSpec
from tests.support.scripts import Bench, calls_until
from tests.support.specs import agent
from tests.support.strict import StrictModel


def asked(spec: AgentSpec) -> int:
    """How many requests the agent's model has had."""
    assert isinstance(spec.model, StrictModel)
    return len(spec.model.asked)


def two_rounds(**options: Any) -> AgentSpec:
    return agent(calls_until(2), Bench().tool(), **options)


async def settle() -> None:
    """Let everything go on that can, for a long time."""
    await trio.sleep(100)
    await trio.testing.wait_all_tasks_blocked()
