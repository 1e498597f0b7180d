"""A bot that decides from afar: it follows all agents of a gateway over WebSocket, and answers what they ask.

Host and bot stand in one file here, and speak over a socket all the same; the bot needs `actors.client` alone, an address
and a token. It approves two windows of rounds, steers with the first, and declines the third. The model is a planner.

    python examples/remote_gate.py [FOLDER]
"""

from __future__ import annotations

import sys

import trio

from actors import AgentSpec, files, open_runtime, remote
from actors.client import Attached, Client, Gone, Received, WireRefused, connect
from actors.gateway import open_gateway
from actors.models.planner import Planner
from protocol.events import ContinuationRequired, ContinuationResolved, RunFinished

MOST_ROUNDS = 6


async def answer(client: Client, asked: ContinuationRequired) -> None:
    """Let it go on, up to a bound; somebody else may have been quicker."""
    try:
        if asked.total_iterations >= MOST_ROUNDS:
            await client.decide(asked, "decline", message=f"{asked.total_iterations} rounds are enough")
        else:
            await client.decide(asked, "approve", message="only *.py" if asked.total_iterations <= 2 else None)
    except WireRefused as refused:
        if refused.code not in {"already_resolved", "not_found"}:
            raise


async def bot(address: str, token: str | None) -> None:
    """Answer whatever waits and whatever comes, until the first run has ended."""
    async with connect(address, token=token, name="bot") as client, client.follow("*") as events:
        (agent,) = await client.agents()
        await client.start(agent.agent, "Audit this folder")
        async for item in events:
            match item:
                case Attached():
                    for request in item.reply.open_requests:
                        if isinstance(request, ContinuationRequired):
                            await answer(client, request)
                case Received(event=ContinuationRequired() as asked):
                    print(
                        f"{agent.name} asks after {asked.total_iterations} rounds, {len(asked.tool_calls)} calls wait"
                    )
                    await answer(client, asked)
                case Received(event=ContinuationResolved() as resolved):
                    print(f"{resolved.outcome} by {resolved.by}: {resolved.message or 'no message'}")
                case Received(event=RunFinished() as finished):
                    print(f"answered: {finished.summary.answered}, limit: {finished.summary.limit}")
                    return
                case Received() | Gone():
                    pass


async def main() -> None:
    """Host an agent that asks, and let the bot in."""
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    spec = AgentSpec(name="auditor", model=Planner(), tools=files(folder), max_tool_iterations=2, continuation=remote())
    async with open_runtime() as runtime, open_gateway(runtime, port=0) as gateway:
        await runtime.spawn(spec)
        await bot(gateway.address, gateway.token)


if __name__ == "__main__":
    trio.run(main)
