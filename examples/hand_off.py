"""A hand-off: the desk hands the run over to an auditor, which goes on in the same conversation.

Run, limits and account stay those of the desk; model, tools and hooks are the auditor's from there on. The desk's turns
are a script. The auditor uses the built-in planner, which is no language model: it counts the files of a folder by rules.

    python examples/hand_off.py [FOLDER]
"""

from __future__ import annotations

import sys

import trio

from actors import AgentSpec, files, handoff, open_runtime
from actors.models import Scripted, call, reply
from actors.models.planner import Planner
from protocol.events import HandedOff, ToolFinished


async def main(folder: str) -> None:
    """Ask the desk for an audit, and see who answers."""
    auditor = AgentSpec(name="auditor", model=Planner(), tools=files(folder))
    desk = AgentSpec(
        name="desk",
        model=Scripted([reply("That is one for the auditor.", call("transfer_to_auditor", {"reason": "an audit"}))]),
        tools=[handoff(auditor)],
        max_llm_calls=30,
    )
    calls = 0
    async with open_runtime() as runtime:
        agent = await runtime.spawn(desk)
        async with agent.run("Audit this folder") as run:
            async for event in run:
                if isinstance(event, HandedOff):
                    print(f"handed over to {event.agent}, model {event.model}")
                elif isinstance(event, ToolFinished):
                    calls += 1
            result = await run.result()
    print(result.text)
    print(f"answered: {result.answered}, tool calls: {calls}, model calls: {result.counters.llm_calls} of 30")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
