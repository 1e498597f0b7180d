"""Agents that the tests drive from afar."""

from __future__ import annotations

from typing import Any

from actors import AgentSpec, remote, tool
from actors.models import call, reply
from actors.tools import Tool
from tests.support.scripts import Trickle

WORDS = ("Round", " goes", " on: 日本", " \U0001f600", ".")


@tool
async def look(at: int) -> str:
    """Look at it."""
    return f"seen {at}"


@tool(needs_approval=True)
async def send(to: str) -> str:
    """Send it."""
    return f"sent to {to}"


def talker(*, rounds: int = 3, seconds: float = 0.05, tools: tuple[Tool, ...] = (look,), **settings: Any) -> AgentSpec:
    """One that talks in pieces and asks after every round of tools."""
    pieces = [part for word in WORDS for part in (word, seconds)]
    text = "".join(WORDS)
    turns = [[*pieces, reply(text, call("look", {"at": number}))] for number in range(rounds)]
    given: dict[str, Any] = {"max_tool_iterations": 1, "continuation": remote(), "tools": tools, **settings}
    return AgentSpec(name="ada", model=Trickle([*turns, [*pieces, " Done.", reply(f"{text} Done.")]]), **given)
