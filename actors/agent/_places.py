"""How many agents a runtime has room for."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import final

from protocol.errors import RuntimeFull

__all__ = ("Places",)


@final
class Places:
    """Agents that are there, and those that are on their way."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._coming = 0

    def need_one(self, there: int) -> None:
        """Raise `RuntimeFull` if there is no room beside the agents that are there, and those that are on their way."""
        count = there + self._coming
        if self._most is not None and count >= self._most:
            raise RuntimeFull(
                f"the runtime holds {count} of at most {self._most} agents, idle ones included: stop one that is not needed"
                " any more, or raise max_agents"
            )

    @contextlib.contextmanager
    def kept(self) -> Generator[None]:
        """Inside the block an agent is on its way."""
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1
