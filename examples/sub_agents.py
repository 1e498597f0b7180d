"""A parent with two sub-agents that work side by side; the gate of one is decided in the parent's run.

The parent's turns are a script. The sub-agents use the built-in planner, which is no language model: one counts the lines
of a folder by rules, the other lists it. All their events stand in the parent's stream, each under its path, and so does
the question of the auditor when its window of rounds is full. Every call counts on the parent's account.

    python examples/sub_agents.py [FOLDER]
"""

from __future__ import annotations

import sys

import trio

from actors import AgentSpec, ContinuationResponse, files, open_runtime, remote, sub_agent
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


async def main(folder: str) -> None:
    """Run the parent; let the auditor go on once, and have it answer then."""
    asked = 0
    async with open_runtime() as runtime:
        agent = await runtime.spawn(parent(folder))
        async with agent.run("What is in this folder?") as run:
            async for event in run:
                if not isinstance(event, RunEvent):
                    continue
                who = "/".join(event.agent_path) or "parent"
                if isinstance(event, ContinuationRequired):
                    asked += 1
                    decision = ContinuationResponse("approve" if asked == 1 else "decline")
                    answer = await run.decide(event.request, decision)
                    print(f"{who} asks after {event.total_iterations} rounds: {decision.decision}, {answer.status}")
                elif isinstance(event, RunFinished):
                    print(f"{who} has ended: answered={event.summary.answered}")
                elif isinstance(event, ToolFinished) and who == "parent":
                    print(f"{event.name} {event.status}: {event.text.splitlines()[0]}")
            result = await run.result()
    print(result.text)
    print(f"{result.counters.llm_calls} model calls, {result.counters.steps} of them the parent's own")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
