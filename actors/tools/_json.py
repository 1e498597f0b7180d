"""Looking into JSON values that may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ("list_or_empty", "mapping_or_empty")


def mapping_or_empty(value: object) -> Mapping[str, Any]:
    """The object that `value` is; an empty one if it is none."""
    return value if isinstance(value, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def list_or_empty(value: object) -> list[Any]:
    """The array that `value` is; an empty one if it is none."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
