"""A host of ten agents on one budget, from a host file; a client over WebSocket starts them all and follows them.

What `onward serve FILE` does stands here in a program: the file is read, a runtime is opened with its options, its agents are
spawned, and a gateway lets clients in. The model is the built-in planner, which is no language model: each agent counts
the lines of one file, which takes it two calls. The budget holds fifteen, and admits not one more, however they race.

    python examples/ten_agents.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import trio

from actors import open_runtime
from actors.client import Client, Received, connect
from actors.gateway import open_gateway
from actors.hostfile import HostFile, read_host_file
from protocol.events import RunFinished

AGENTS = 10

HOST = """
[gateway]
bind = "127.0.0.1:0"

[budgets.team]
max_llm_calls = 15

[tools.folder]
files = {folder}
"""
AGENT = """
[[agents]]
name = "counter-{number}"
tools = ["folder"]
budget = "team"
"""


def host_file(folder: str) -> HostFile:
    """The host file, written and read. What is wrong with one is told all at once, each with line and key."""
    agents = "".join(AGENT.format(number=number) for number in range(AGENTS))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "host.toml")
        path.write_text(HOST.format(folder=json.dumps(str(Path(folder).resolve()))) + agents, encoding="utf-8")
        return read_host_file(path)


def a_file_in(folder: str) -> str:
    """The name of one file of the folder."""
    return min((path.name for path in Path(folder).iterdir() if path.is_file()), default="README.md")


async def count(client: Client, path: str) -> None:
    """Start a run of every agent, and follow all of them to their ends."""
    ends: list[RunFinished] = []
    async with client.follow("*") as events:
        for agent in await client.agents():
            await client.start(agent.agent, f"count lines in {path}")
        async for item in events:
            if isinstance(item, Received) and isinstance(item.event, RunFinished):
                ends.append(item.event)
                if len(ends) == AGENTS:
                    break
    answered = [end for end in ends if end.summary.answered]
    stopped = [end for end in ends if end.summary.stopped_by == "llm_calls"]
    print(f"{len(answered)} agents answered, {len(stopped)} were stopped by the budget")
    print(f"one answer: {answered[0].summary.text.splitlines()[0]}")


async def main(folder: str) -> None:
    """Host them, and let the client in."""
    host = host_file(folder)
    async with open_runtime(**host.runtime) as runtime:
        for spec in host.spawned:
            await runtime.spawn(spec)
        async with open_gateway(runtime, **host.gateway_options()) as gateway:
            print(f"{len(runtime.agents)} agents would need {2 * AGENTS} model calls; the budget holds 15")
            async with connect(gateway.address, token=gateway.token) as client:
                await count(client, a_file_in(folder))
    print(f"{host.budgets['team'].statistics().llm_calls} model calls were admitted")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
