"""Ids: short, readable, unique in the process and across restarts."""

from __future__ import annotations

import itertools
import secrets

__all__ = ("new_id", "renew_ids")

_boot = [secrets.token_hex(4)]
_numbers = itertools.count(1)


def new_id(kind: str) -> str:
    """Return `KIND-BOOT-NUMBER`: `BOOT` is random per process, so that a restart repeats no id."""
    return f"{kind}-{_boot[0]}-{next(_numbers)}"


def renew_ids() -> None:
    """Draw `BOOT` again: for a process that was forked from one that has drawn it, which would repeat its brothers' ids."""
    _boot[0] = secrets.token_hex(4)
