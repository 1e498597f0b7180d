"""The seam for what watches runs from inside: spans, profiles, and the like.

A probe stands around a run, its model calls and the bodies of its tools, in the tasks that do the work: what it sets in
context variables there is seen by all that runs below, be it an HTTP client or a tool's own code. Where there is none, it
costs a look whether there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import attrs

from protocol.events import RunEvent
from protocol.model import Model, ModelRequest
from protocol.turns import ToolStatus, Turn

__all__ = ("CallProbe", "Probe", "ProbedRun", "RunProbe", "ToolProbe", "Watch")


@attrs.frozen(kw_only=True)
class ProbedRun:
    """The run that a probe stands around."""

    agent: str
    """The id of its agent, whose conversation it is: the same after a restart."""
    agent_name: str
    run: str
    path: tuple[str, ...]
    """Names from the root's sub-agent down to the one that runs; empty for the root itself."""
    model: Model
    """The agent's own: hooks and hand-offs may choose others."""
    system: str | None
    prompt: str


class CallProbe(AbstractContextManager[Any], Protocol):
    """Stands around one model call. It is left with what the model raises, or after `came`."""

    def came(self, turn: Turn) -> None:
        """The call has brought this turn. Must not raise."""
        ...


class ToolProbe(AbstractContextManager[Any], Protocol):
    """Stands around the body of one tool call. It is left with what cuts or fails the body, or after `came`."""

    def came(self, status: ToolStatus, text: str) -> None:
        """The body has come to this result, without a text where a hook stands around the call. Must not raise."""
        ...


class RunProbe(AbstractContextManager[Any], Protocol):
    """Stands around one run, from its first step to when all its services have joined."""

    def heard(self, event: RunEvent) -> None:
        """The run has said something; pieces of replies are said too. Called at once, and must neither raise nor wait."""
        ...

    def model_call(self, request: ModelRequest, model: Model) -> CallProbe:
        """What is to stand around a model call, in the task that makes it."""
        ...

    def tool_call(self, call: str, name: str, arguments: Mapping[str, Any]) -> ToolProbe:
        """What is to stand around the body of a tool, in the task that runs it."""
        ...


class Probe(Protocol):
    """Makes what stands around each run."""

    def run(self, run: ProbedRun, /) -> RunProbe:
        """What is to stand around a run."""
        ...


@attrs.define(eq=False)
class Watch:
    """How the runs of a runtime are watched: counted in any case, and probed if somebody asked for that."""

    probe: Probe | None = None
    ended: Counter[tuple[str, str]] = attrs.field(factory=Counter[tuple[str, str]])
    """Runs that have come to an end: by its kind, and by who stopped them."""
    calls: Counter[str] = attrs.field(factory=Counter[str])
    """Model calls: those that brought a turn (`ok`), and the others (`failed`)."""
    tools: Counter[str] = attrs.field(factory=Counter[str])
    """Tool calls that have their result, by its status."""
