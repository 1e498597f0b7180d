"""Models: a room for each vendor's wire formats, and two models that need no network.

What speaks to a server is imported on first use: `import actors` loads no HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .planner import Planner
from .scripted import Scripted, ScriptedTurn, call, reply

if TYPE_CHECKING:
    from .anthropic import Anthropic
    from .gemini import Gemini, GeminiInteractions
    from .openai import OpenAIChat, OpenAIResponses

__all__ = (
    "Anthropic",
    "Gemini",
    "GeminiInteractions",
    "OpenAIChat",
    "OpenAIResponses",
    "Planner",
    "Scripted",
    "ScriptedTurn",
    "call",
    "reply",
)


def __getattr__(name: str) -> object:
    rooms = {
        "Anthropic": "anthropic",
        "Gemini": "gemini",
        "GeminiInteractions": "gemini",
        "OpenAIChat": "openai",
        "OpenAIResponses": "openai",
    }
    if name not in rooms:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{rooms[name]}", __name__), name)
