"""Agents as these tests need them, in few words."""

from __future__ import annotations

import warnings
from typing import Any

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, LimitsWarning
from actors.tools import Tool

from .strict import StrictModel

APPROVE = ContinuationResponse("approve")
DECLINE = ContinuationResponse("decline")
DISCARD = ContinuationResponse("approve", discard_tool_calls=True)


def agent(script: Any, *tools: Tool, **options: Any) -> AgentSpec:
    """An agent with a strict model over a script or another model. Limits that warn are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitsWarning)
        return AgentSpec(model=StrictModel(script), tools=tools, **options)


class Answers:
    """A continuation provider that gives these answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: ContinuationResponse) -> None:
        self._answers = iter(answers)
        self.asked: list[ContinuationRequest] = []

    def __call__(self, request: ContinuationRequest) -> ContinuationResponse:
        self.asked.append(request)
        return next(self._answers)
