"""The loops written by hand, and httpx reading the stream alone."""

from __future__ import annotations

from contextlib import AsyncExitStack

import trio

from benchmarks.harness.floors import bare_loop, four_thin_tool_tasks
from benchmarks.harness.http_clients import CLIENTS, FLOOR
from benchmarks.harness.work import DELTAS, REPLY_TEXT, add

_LOOPS = {"bare": bare_loop, "actors": four_thin_tool_tasks}


class Driver:
    """A floor, by its name."""

    start = staticmethod(trio.run)

    def __init__(self, name: str) -> None:
        self._loop = _LOOPS.get(name, bare_loop)

    async def run(self, iterations: int, width: int) -> str:
        answer: str = await self._loop(iterations, width)
        return answer

    async def many(self, agents: int, iterations: int) -> list[str]:
        answers: list[str] = []

        async def run_one() -> None:
            answers.append(await self.run(iterations, 1))

        async with trio.open_nursery() as nursery:
            for _ in range(agents):
                nursery.start_soon(run_one)
        return answers

    async def connect(self, base_url: str) -> None:
        self._client = AsyncExitStack()
        self._call = await self._client.enter_async_context(CLIENTS[FLOOR](base_url, 1))

    async def close(self) -> None:
        await self._client.aclose()

    async def stream(self, turns: int) -> tuple[str, int]:
        """The client itself checks what it read; it holds no conversation, so that each call is as the first."""
        for _ in range(turns):
            await self._call()
            await add(1, 2)
        await self._call()
        return REPLY_TEXT, DELTAS * (turns + 1)
