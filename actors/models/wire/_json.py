"""JSON that may hold anything."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from protocol.untyped import items, mapping, number, string

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
