"""The two slips of a model that can be mended without a guess.

An object or array written as a JSON string, where a string would not fit, is decoded; a whole number written as a
float, where an integer is wanted, becomes one. A place that takes a string keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ._check import Path, Problem, check, json_type

__all__ = ("mend",)

_MOST_ROUNDS = 64
_EXACT_FLOATS = 2**53  # beyond it a float does not say which integer was meant
_NOTHING: Any = object()


def mend(schema: Mapping[str, Any], arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments, mended where that can be done, and the problems that are left. What was given is not changed."""
    problems: list[Problem] = []
    for _ in range(_MOST_ROUNDS):
        problems = check(schema, arguments)
        before = arguments
        for problem in problems:
            value = _mended(problem)
            if value is not _NOTHING:
                arguments = _replaced(arguments, problem.path, value)
        if arguments is before:
            break
    return arguments, problems


def _mended(problem: Problem) -> Any:
    value, wanted = problem.value, problem.wanted
    if problem.kind != "type":
        return _NOTHING
    if type(value) is float and "integer" in wanted and value.is_integer() and abs(value) <= _EXACT_FLOATS:
        return int(value)
    if type(value) is str and ("object" in wanted or "array" in wanted):
        try:
            decoded = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return _NOTHING
        if json_type(decoded) in {"object", "array"}.intersection(wanted):
            return decoded
    return _NOTHING


def _replaced(node: Any, path: Path, value: Any) -> Any:
    """A copy of `node` with `value` at `path`; only what lies on the way is copied."""
    if not path:
        return value
    copy = node.copy()
    copy[path[0]] = _replaced(node[path[0]], path[1:], value)
    return copy
