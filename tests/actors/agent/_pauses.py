"""Tools of the caller's own, for tests of the pause."""

from __future__ import annotations

from typing import Any

from actors import Run, external_tool
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.events import RunPaused
from tests.support.play import event_of


def asker(name: str = "ask", **options: Any) -> Tool:
    """A tool without a body."""
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    return external_tool(name, "Ask the caller.", parameters, **options)


def asks(*ids: str, then: Any = "ok") -> list[Any]:
    """A script: one turn with these calls of `ask`, then an answer."""
    return [reply("", *[call("ask", {"q": f"{id}?"}, id=id) for id in ids]), then]


def gives(**values: Any) -> Any:
    """What goes on beside a run: at its pause, submit these results."""

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit(values)

    return act
