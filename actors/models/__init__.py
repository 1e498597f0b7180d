"""Models: one file per wire format, and two that need no network.

`OpenAIChat` is imported on first use: `import actors` loads no HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .planner import Planner
from .scripted import Scripted, ScriptedTurn, call, reply

if TYPE_CHECKING:
    from .openai import OpenAIChat

__all__ = ("OpenAIChat", "Planner", "Scripted", "ScriptedTurn", "call", "reply")


def __getattr__(name: str) -> object:
    if name == "OpenAIChat":
        from .openai import OpenAIChat

        return OpenAIChat
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
