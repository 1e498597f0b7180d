"""Reading values that may be anything: each function returns what was looked for, or nothing of its kind."""

from __future__ import annotations

from typing import Any, cast

__all__ = ("items", "mapping", "number", "string")


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def string(value: Any) -> str:
    """`value` if it is a string, else `""`."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int | None:
    """`value` as an integer if it is a whole number that is not negative, else `None`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value >= 0 else None
