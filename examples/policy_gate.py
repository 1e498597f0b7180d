"""A gate that a policy answers: it steers once, then lets the agent go on up to a bound.

The model is the built-in planner, which is no language model: it counts the files of a folder by rules. With a bound of
six rounds it hits its window of two several times; the policy approves with a steering message, later without one, and
declines at the bound, where the agent answers from what it has.

    python examples/policy_gate.py [FOLDER]
"""

from __future__ import annotations

import sys

import trio

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, files, open_runtime
from actors.models.planner import Planner
from protocol.events import ContinuationResolved

BOUND = 6


def policy(request: ContinuationRequest) -> ContinuationResponse:
    """Steer at the first limit, approve up to the bound, decline there with a reason."""
    if request.total_iterations >= BOUND:
        return ContinuationResponse("decline", message=f"{BOUND} rounds are enough")
    if request.total_iterations == request.max_iterations:
        return ContinuationResponse("approve", message="only *.py")
    return ContinuationResponse("approve")


async def main(folder: str) -> None:
    """Audit a folder under the policy, and say what was decided."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(
            AgentSpec(
                name="auditor",
                model=Planner(),
                tools=files(folder),
                max_tool_iterations=2,
                max_llm_calls=20,
                continuation=policy,
            )
        )
        async with agent.run("Audit this folder") as run:
            async for event in run:
                if isinstance(event, ContinuationResolved):
                    print(f"{event.outcome}: {event.message or 'no message'}")
            result = await run.result()
    print(result.text)
    print(f"answered: {result.answered}, rounds: {result.counters.tool_iterations}, limit: {result.limit}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else ".")
