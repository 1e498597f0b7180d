"""What libraries on asyncio have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

__all__ = ("AsyncioDriver",)


class AsyncioDriver(ABC):
    """Does the work with one library."""

    start = staticmethod(lambda fn, *args: asyncio.run(fn(*args)))

    @abstractmethod
    async def run(self, iterations: int, width: int) -> str:
        """One agent, one run; the answer."""

    async def many(self, agents: int, iterations: int) -> list[str]:
        """So many runs, all at once; the answers."""
        return await asyncio.gather(*(self.run(iterations, 1) for _ in range(agents)))

    @abstractmethod
    async def connect(self, base_url: str) -> None:
        """Make the client of a model server."""

    async def close(self) -> None:  # noqa: B027  a choice, not an omission
        """Close that client; here the end of the process does."""

    @abstractmethod
    async def stream(self, turns: int) -> tuple[str, int]:
        """One run by that client; the answer, and how many pieces of text were heard in it."""
