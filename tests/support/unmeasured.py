"""Programs that are not to be measured: those that may not write, or must load nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ("unmeasured",)


def unmeasured(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment (`None`: this process's) without what has coverage started, which loads and writes a database."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if not name.startswith("COVERAGE")}
