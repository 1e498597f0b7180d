"""Twenty agents on one budget: however they race, it never admits one model call too many.

Every call is reserved before it is made, on the run's account and on the budget, in one step. The model is the built-in
planner, which is no language model: each agent counts the lines of one file, which takes it two calls.

    python examples/shared_budget.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from actors import Agent, AgentSpec, Budget, RunResult, files, open_runtime
from actors.models.planner import Planner

AGENTS = 20
CALLS = 25


def a_file_in(folder: str) -> str:
    """The name of one file of the folder."""
    return min((path.name for path in Path(folder).iterdir() if path.is_file()), default="README.md")


async def work(agent: Agent, path: str, results: list[RunResult]) -> None:
    """Have one file counted. A limit is no exception but a result."""
    async with agent.run(f"count lines in {path}") as run:
        results.append(await run.result())


async def main(folder: str) -> None:
    """Let all agents loose at once, and say what the budget came to."""
    budget = Budget(max_llm_calls=CALLS)
    results: list[RunResult] = []
    async with open_runtime(budget=budget) as runtime, trio.open_nursery() as nursery:
        for number in range(AGENTS):
            spec = AgentSpec(name=f"counter-{number}", model=Planner(), tools=files(folder), max_steps=5)
            nursery.start_soon(work, await runtime.spawn(spec), a_file_in(folder), results)
    answered = [result for result in results if result.answered]
    stopped = [result for result in results if result.stopped_by == "llm_calls"]
    print(f"{AGENTS} agents would need {2 * AGENTS} model calls; the budget holds {CALLS}")
    print(f"{budget.statistics().llm_calls} model calls were admitted")
    print(f"{len(answered)} agents answered, {len(stopped)} were stopped by the budget")
    print(f"the limit as they saw it: {stopped[0].limit}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
