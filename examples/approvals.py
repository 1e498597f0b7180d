"""Calls that need approval: a function approves one, denies one, and changes the arguments of one.

All requests of a turn are asked together, and nothing runs before all are decided. What was approved runs with exactly the
arguments that were shown; what was edited runs with the edited ones, and the model is told. The model is a script.

    python examples/approvals.py
"""

from __future__ import annotations

import trio

from actors import AgentSpec, ApprovalRequest, ApprovalResponse, approve, deny, edit, open_runtime, tool
from actors.models import Scripted, call, reply
from protocol.events import ApprovalRequired, ApprovalResolved, ToolFinished

SENT: list[str] = []


@tool(needs_approval=lambda arguments: arguments["to"] != "myself")
async def send(to: str, text: str) -> str:
    """Send a message; one to myself needs nobody's approval."""
    await trio.sleep(0.01)  # the mail server's part
    SENT.append(f"{to}: {text}")
    return f"sent to {to}"


def policy(request: ApprovalRequest) -> ApprovalResponse:
    """Let colleagues have all, partners no figures, and nobody else anything."""
    to, text = request.arguments["to"], request.arguments["text"]
    if to.endswith("@ours.example"):
        return approve()
    if to.endswith("@partner.example"):
        return edit({"to": to, "text": text.replace("42", "[figure]")})
    return deny("write to colleagues and partners only")


async def main() -> None:
    """Run one turn with four calls, and say what became of each."""
    people = ("ann@ours.example", "bob@partner.example", "eve@elsewhere.example", "myself")
    calls = [call("send", {"to": to, "text": "We sold 42."}, id=f"call-{number}") for number, to in enumerate(people)]
    model = Scripted([reply("I tell everybody.", *calls), "Two have it, and so have I."])
    spec = AgentSpec(name="clerk", model=model, tools=[send], approval=policy, max_steps=5, max_parallel_tools=1)
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run("Tell everybody what we sold") as run:
            async for event in run:
                match event:
                    case ApprovalRequired():
                        print(f"{event.call} asks to send to {event.arguments['to']}")
                    case ApprovalResolved():
                        print(f"{event.call} {event.outcome}")
                    case ToolFinished():
                        print(f"{event.call} {event.status}: {' '.join(event.text.split())}")
                    case _:
                        pass
            result = await run.result()
    print(result.text)
    print(*SENT, sep="\n")


if __name__ == "__main__":
    trio.run(main)
