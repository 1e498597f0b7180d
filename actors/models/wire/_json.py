"""Reading JSON that may hold anything: each function returns what was looked for, or nothing of its kind."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

__all__ = ("items", "mapping", "number", "parse", "string")


def parse(text: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` for what is none, or nests deeper than can be read.

    Lone surrogates (a character that a server cut in two) and NaN pass: servers send both.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # perhaps it is only not strict
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


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
