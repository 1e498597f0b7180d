"""A gateway of its own process, to be killed: `python _gateway_server.py PORT TOKEN`. Says `ready` when it is."""

from __future__ import annotations

import sys

import trio

from actors import open_runtime
from actors.gateway import Access, Principal, open_gateway
from tests.actors.client._agents import talker


async def main(port: int, token: str) -> None:
    access = Access.of({token: Principal("ada")})
    async with open_runtime() as runtime, open_gateway(runtime, port=port, tokens=access):
        await runtime.spawn(talker(rounds=40, seconds=0.01, max_tool_iterations=100, continuation=None))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await trio.sleep_forever()


trio.run(main, int(sys.argv[1]), sys.argv[2])
