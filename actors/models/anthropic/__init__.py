"""The wire format of Anthropic, and of the servers that speak it."""

from __future__ import annotations

from ._messages import Anthropic

__all__ = ("Anthropic",)
