"""Models whose every call uses a known amount, and prices for them: so that a limit fits a whole number of calls."""

from __future__ import annotations

import warnings
from typing import Any

import attrs

from actors import AgentSpec, LimitsWarning
from actors.tools import Tool
from protocol.model import Profile
from protocol.usage import Usage

from .strict import StrictModel

TEN = Usage(8, 0, 0, 2, 0, complete=True)
"""Ten tokens, reported."""


def counted(tokens: int = 10, **options: Any) -> Profile:
    """A profile that counts every request as so many tokens."""
    return Profile(keeps_tools_when_off=True, reports_sending=True, count_tokens=lambda _request: tokens, **options)


@attrs.frozen
class Prices:
    """A price per call, and one per token, for the models that it knows by name."""

    call: float = 0.0
    token: float = 0.0
    models: tuple[str, ...] = ("strict",)

    def cost(self, model: str, usage: Usage) -> float | None:
        if model not in self.models or not usage.complete:
            return None
        return self.call + self.token * usage.total_tokens

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        return self.call + self.token * (input_tokens + output_tokens) if model in self.models else None


def spec(script: Any, *tools: Tool, tokens: int = 10, name: str = "agent", **options: Any) -> AgentSpec:
    """An agent with a strict model over a script, whose requests count so many tokens. Limits that warn are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitsWarning)
        model = StrictModel(script, profile=counted(tokens))
        return AgentSpec(model=model, name=name, tools=tools, **options)
