"""Names of parameters: the same in every process."""

from __future__ import annotations

import re

__all__ = ("shown",)


def shown(value: object) -> str:
    """Its repr, without where it lies in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
