"""The parameters of the built-in conditions: what could never be met as it is meant is refused where it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import SpecError

__all__ = ("check_amount", "check_count", "check_names")


def check_count(condition: Callable[..., Any], parameter: str, value: object, *, least: int = 1) -> None:
    """Raise `SpecError` for anything but an integer of at least `least`."""
    if type(value) is not int or value < least:
        name = condition.__name__
        raise SpecError(f"{name}({parameter}): {parameter} must be an integer >= {least}; it is {value!r}")


def check_amount(condition: Callable[..., Any], parameter: str, value: object, *, unit: str) -> None:
    """Raise `SpecError` for anything but a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        name = condition.__name__
        raise SpecError(f"{name}({parameter}): {parameter} must be a finite number of {unit} above 0; it is {value!r}")


def check_names(condition: Callable[..., Any], names: tuple[object, ...]) -> None:
    """Raise `SpecError` unless there are names, and each is a text that is not empty."""
    name = condition.__name__
    if not names:
        raise SpecError(f"{name}() needs at least one tool name, such as {name}('search')")
    for given in names:
        if not isinstance(given, str) or not given.strip():
            raise SpecError(f"{name}(*names): each name must be a tool's name, such as 'search'; one is {given!r}")
