"""The wire formats of Google's Gemini: generateContent, and Interactions with decodes that go on."""

from __future__ import annotations

from ._generate import Gemini
from ._interactions import Interactions
from ._interactions_model import GeminiInteractions
from ._interactions_progress import DecodeProgress
from ._interactions_stream import InteractionEvent, InteractionStream, Rollback

__all__ = (
    "DecodeProgress",
    "Gemini",
    "GeminiInteractions",
    "InteractionEvent",
    "InteractionStream",
    "Interactions",
    "Rollback",
)
