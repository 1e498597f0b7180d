"""A model in which rules decide, and no language model: it needs no network and no key."""

from __future__ import annotations

from ._planner import BANNER, Planner

__all__ = ("BANNER", "Planner")
