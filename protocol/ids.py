"""Ids: short, readable, unique in the process and across restarts."""

from __future__ import annotations

import itertools
import secrets

__all__ = ("new_id",)

_BOOT = secrets.token_hex(4)
_numbers = itertools.count(1)


def new_id(kind: str) -> str:
    """Return `KIND-BOOT-NUMBER`: `BOOT` is random per process, so that a restart repeats no id."""
    return f"{kind}-{_BOOT}-{next(_numbers)}"
