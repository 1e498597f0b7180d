"""The task: a model asks for `add(1, 2)`, so and so often, and then answers with what the last call returned.

Needs the standard library alone, for it is done in the environments of others too.
"""

from __future__ import annotations

from typing import Any

__all__ = ("ANSWER", "DELTAS", "REPLY_TEXT", "add", "calls_made", "tool_calls_of")

ANSWER = "3"
"""The answer of every run with a tool call in it."""
DELTAS = 50
REPLY_TEXT = "word " * DELTAS
"""What the model server says in each turn, word by word."""

_calls = 0


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    global _calls  # noqa: PLW0603  one counter for the tools of all subjects
    _calls += 1
    return a + b


def calls_made() -> int:
    """How often `add` has run in this process."""
    return _calls


def tool_calls_of(iteration: int, width: int) -> list[dict[str, Any]]:
    """The calls that the model makes in an iteration."""
    return [{"id": f"c{iteration}-{number}", "name": "add", "arguments": '{"a": 1, "b": 2}'} for number in range(width)]
