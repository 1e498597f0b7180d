"""Strict JSON: what is sent to us means one thing, whoever reads it.

RFC 8259 leaves open what duplicate keys, lone surrogates and numbers out of range mean, and Python's reader takes NaN:
here all of these are refused (wire.md, *Messages*).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

__all__ = ("NotStrictError", "strict_loads")

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?')
_BRACKETS = re.compile(r"[\[\]{}]")
_MOST = 2**63
_MOST_DIGITS = 19


class NotStrictError(ValueError):
    """The text is no strict JSON; the message says why, and quotes nothing of it."""


def strict_loads(data: str | bytes, *, max_depth: int = 64) -> Any:
    """Parse one JSON value. Raises `NotStrictError`. Bound the length before you call it."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        if text.startswith("\ufeff"):
            raise NotStrictError("it begins with a byte order mark")
        _check_depth(text, max_depth)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
        )
        # Also what was escaped: "\ud800" alone is no character.
        json.dumps(value, ensure_ascii=False).encode()
    except NotStrictError:
        raise
    except UnicodeError:
        raise NotStrictError("it holds what is no Unicode text") from None
    except (ValueError, RecursionError):
        raise NotStrictError("it is no JSON") from None
    return value


def _check_depth(text: str, most: int) -> None:
    """Brackets outside strings, counted: a parser that recurses must not see what is too deep."""
    if text.count("[") + text.count("{") <= most:
        return
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > most:
            raise NotStrictError(f"it nests deeper than {most}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotStrictError("an object has a key twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise NotStrictError(f"{name} is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotStrictError("a number is outside the range of a double")
    return value


def _int(text: str) -> int:
    if len(text.lstrip("-")) > _MOST_DIGITS:
        raise NotStrictError("an integer is outside 2^63")
    value = int(text)
    if not -_MOST <= value < _MOST:
        raise NotStrictError("an integer is outside 2^63")
    return value
