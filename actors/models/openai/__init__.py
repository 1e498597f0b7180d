"""The wire formats of OpenAI, and of the many servers that speak them."""

from __future__ import annotations

from ._chat import OpenAIChat

__all__ = ("OpenAIChat",)
