"""Several agents with one strict model between them, which knows each by its system prompt: so the judge counts them all."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import Any

from actors import AgentSpec, LimitsWarning
from actors.models.scripted import call, reply
from protocol.events import RunEvent, ToolFinished
from protocol.model import ModelRequest, Profile
from protocol.turns import Turn

from ...support.play import Stage, numbered_events
from ...support.strict import Asked, StrictModel


class Team:
    """Scripts by name: a list of turns, one after the other, or a function of the request."""

    def __init__(self, *, profile: Profile | None = None, **scripts: Any) -> None:
        self._scripts = {
            name: script if callable(script) else _following(iter(script)) for name, script in scripts.items()
        }
        self.model = StrictModel(self._turn, profile=profile)

    async def _turn(self, request: ModelRequest) -> Any:
        turn = self._scripts[request.system or ""](request)
        return await turn if inspect.isawaitable(turn) else turn

    def spec(self, name: str, *tools: Any, **options: Any) -> AgentSpec:
        """The agent of that name."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LimitsWarning)
            return AgentSpec(name=name, system=name, model=self.model, tools=tools, **options)

    def asked(self, name: str) -> list[Asked]:
        """What the model was asked in that agent's place."""
        return [asked for asked in self.model.asked if asked.system == name]


def _following(turns: Any) -> Any:
    return lambda _request: next(turns)


def ask(name: str, *tasks: str) -> Turn:
    """A turn that gives an agent tasks."""
    return reply("", *[call(f"ask_{name}", {"task": task}, id=f"{name}-{task}") for task in tasks])


def finished(events: Iterable[RunEvent], call: str) -> tuple[str, str]:
    """How a call ended."""
    found = [event for event in events if isinstance(event, ToolFinished) and event.call == call]
    assert len(found) == 1, found
    return found[0].status, found[0].text


async def told(stage: Stage) -> list[RunEvent]:
    """All events of the runs of the first agent, and of those below them."""
    return [event for _, event in await numbered_events(next(iter(stage.agents))) if isinstance(event, RunEvent)]
