"""One agent driven twice: by its options, and by a loop of one's own. The events are equal.

The loop is written with the functions that the engine uses, so limits, stop conditions and the final call hold as ever.
The model is the built-in planner, which is no language model: it counts the files of a folder by rules.

    python examples/manual_loop.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import trio

from actors import (
    Agent,
    AgentSpec,
    Loop,
    append_exchange,
    evaluate_stop,
    execute_tools,
    files,
    generate_step,
    max_steps,
    open_runtime,
    should_continue,
    unanswered_calls,
)
from actors.models.planner import Planner

IDS_AND_TIMES = re.compile(r'-[0-9a-f]{8}-\d+|"elapsed_seconds":[^,}]+')


async def my_loop(loop: Loop) -> None:
    """Do what the engine does, one step at a time."""
    while should_continue(loop):
        await generate_step(loop)
        if unanswered_calls(loop.messages):
            await execute_tools(loop)
        await append_exchange(loop)
        if should_continue(loop) and (reason := await evaluate_stop(loop)):
            loop.stop(reason)


async def events_of(agent: Agent, **options: Any) -> list[str]:
    """Run an audit, and write its events down without ids and times."""
    async with agent.run("Audit this folder", **options) as run:
        events = [msgspec.json.encode(event).decode() async for event in run]
        result = await run.result()
    print(f"answered: {result.answered}, steps: {result.counters.steps}, finalized: {result.finalized}")
    return [IDS_AND_TIMES.sub("", event) for event in events]


async def main(folder: str) -> None:
    """Drive the same agent in both ways and compare."""
    spec = AgentSpec(
        name="auditor",
        model=Planner(),
        tools=files(folder),
        max_tool_iterations=2,
        tool_iteration_limit_finalization="",
        stop_when=[max_steps(10)],
        max_parallel_tools=1,  # side by side, calls may finish in another order each time
    )
    async with open_runtime() as runtime:
        print("by its options")
        first = await events_of(await runtime.spawn(spec))
        print("by a loop of its own")
        second = await events_of(await runtime.spawn(spec), loop=my_loop)
    print(f"{len(first)} events, {'equal' if first == second else 'NOT equal'}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
