"""A parent with two sub-agents that work side by side; a client over WebSocket decides the gate of one.

The parent's turns are a script. The sub-agents use the built-in planner, which is no language model: one counts the lines
of a folder by rules, the other lists it. All their events stand in the parent's stream, each under its path, and so does
the question of the auditor when its window of rounds is full: whoever follows the parent is asked. Every call counts on
the parent's account.

    python examples/sub_agents.py [FOLDER]
"""

from __future__ import annotations

import sys
from typing import Literal

import trio

from actors import AgentSpec, files, open_runtime, remote, sub_agent
from actors.client import Client, Received, connect
from actors.gateway import open_gateway
from actors.models import Scripted, call, reply
from actors.models.planner import Planner
from protocol.events import ContinuationRequired, RunEvent, RunFinished, ToolFinished


def parent(folder: str) -> AgentSpec:
    """An agent with an auditor, which asks before it goes on, and a lister."""
    auditor = AgentSpec(
        name="auditor", model=Planner(), tools=files(folder), max_tool_iterations=1, continuation=remote()
    )
    lister = AgentSpec(name="lister", model=Planner(), tools=files(folder))
    script = Scripted([
        reply(
            "I ask both.",
            call("ask_auditor", {"task": "Audit this folder"}),
            call("ask_lister", {"task": "list ."}),
        ),
        "Both have told me what they found.",
    ])
    return AgentSpec(
        name="parent", model=script, tools=[sub_agent(auditor), sub_agent(lister)], max_steps=5, max_llm_calls=50
    )


async def answer(client: Client, asked: ContinuationRequired, rounds: list[int]) -> None:
    """Let whoever asks go on once, and have it answer then."""
    rounds.append(asked.total_iterations)
    decision: Literal["approve", "decline"] = "approve" if len(rounds) == 1 else "decline"
    reply = await client.decide(asked, decision)
    who = "/".join(asked.agent_path) or "parent"
    print(f"{who} asks after {rounds[-1]} rounds: {decision}, {reply.status}")


async def bot(client: Client, agent: str) -> None:
    """Follow the parent alone: what its sub-agents do, and ask, stands in its stream."""
    rounds: list[int] = []
    async with client.follow(agent) as events:
        await client.start(agent, "What is in this folder?")
        async for item in events:
            if not isinstance(item, Received) or not isinstance(item.event, RunEvent):
                continue
            event = item.event
            who = "/".join(event.agent_path) or "parent"
            if isinstance(event, ContinuationRequired):
                await answer(client, event, rounds)
            elif isinstance(event, ToolFinished) and who == "parent":
                print(f"{event.name} {event.status}: {event.text.splitlines()[0]}")
            elif isinstance(event, RunFinished):
                print(f"{who} has ended: answered={event.summary.answered}")
                if who == "parent":
                    print(event.summary.text)
                    counters = event.summary.counters
                    print(f"{counters.llm_calls} model calls, {counters.steps} of them the parent's own")
                    return


async def main(folder: str) -> None:
    """Host the parent, and let the bot in: over a socket, as from another machine."""
    async with open_runtime() as runtime, open_gateway(runtime, port=0) as gateway:
        agent = await runtime.spawn(parent(folder))
        async with connect(gateway.address, token=gateway.token, name="bot") as client:
            await bot(client, agent.id)


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
