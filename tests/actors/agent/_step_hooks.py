"""A step hook that acts at one step, and an agent of three calls for it."""

from __future__ import annotations

from typing import Any

from actors import AgentSpec, StepOverrides, StepState
from actors.models.scripted import Scripted, call, reply
from protocol.turns import UserMessage
from tests.support.scripts import Bench
from tests.support.specs import agent

SUMMARY = UserMessage("What was said before, in short.")


class At:
    """A `prepare_step` that returns these overrides at one step, and keeps what it is given."""

    def __init__(self, step: int, overrides: StepOverrides | None) -> None:
        self.seen: list[StepState] = []
        self._step = step
        self._overrides = overrides

    def __call__(self, state: StepState) -> StepOverrides | None:
        self.seen.append(state)
        return self._overrides if state.step_number == self._step else None


def spec_with(hook: Any, model: Scripted, **options: Any) -> AgentSpec:
    settings: dict[str, Any] = {
        "system": "Be exact.",
        "temperature": 0.5,
        "max_tokens": 100,
        "provider_options": {"seed": 1, "top_p": 0.9},
        **options,
    }
    return agent(model, Bench().tool(), prepare_step=hook, **settings)


def three_calls() -> Scripted:
    return Scripted([reply("", call("t", {}, id="a")), reply("", call("t", {}, id="b")), "done"])
