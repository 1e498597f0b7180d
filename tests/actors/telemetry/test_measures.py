"""Metrics of OpenTelemetry: what is counted, and under which attributes."""

from __future__ import annotations

import contextlib

import trio

from actors import AgentSpec, open_runtime, tool
from actors.models.scripted import Scripted, ScriptedTurn, call, reply
from protocol.errors import ModelError, RunError, ToolError
from protocol.usage import Usage
from tests.actors.telemetry.collected import Collected


async def look() -> str:
    await trio.lowlevel.checkpoint()
    return "seen"


async def fails() -> str:
    raise ToolError("no")


async def test_what_is_measured() -> None:
    """Tokens by type, and the time of runs, model calls and tools, with the kind of error where there was one."""
    collected = Collected()
    turns: list[ScriptedTurn] = [
        reply("", call("look"), call("fails"), usage=Usage(10, 5, None, 7)),
        reply("done"),
        ModelError("no"),
    ]
    async with open_runtime() as runtime:
        agent = await runtime.spawn(
            AgentSpec(name="ann", model=Scripted(turns, name="openai:x"), tools=[tool(look), tool(fails)])
        )
        with collected.of(runtime):
            for _ in range(2):
                async with agent.run("go") as run:
                    with contextlib.suppress(RunError):
                        await run.result()
    model = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "x"}
    body = {"gen_ai.tool.type": "function", "gen_ai.agent.name": "ann"}

    assert {
        "gen_ai.client.token.usage": [
            ({**model, "gen_ai.token.type": "input"}, 1),
            ({**model, "gen_ai.token.type": "output"}, 1),
        ],
        "gen_ai.client.operation.duration": [(model, 2), ({**model, "error.type": "ModelError"}, 1)],
        "gen_ai.invoke_agent.duration": [
            ({"gen_ai.agent.name": "ann"}, 1),
            ({"gen_ai.agent.name": "ann", "error.type": "model_error"}, 1),
        ],
        "gen_ai.execute_tool.duration": [
            ({**body, "gen_ai.tool.name": "fails", "error.type": "tool_error"}, 1),
            ({**body, "gen_ai.tool.name": "look"}, 1),
        ],
    } == {name: sorted(points, key=by_name) for name, points in collected.points().items()}


def by_name(point: tuple[dict[str, object], int]) -> tuple[str, bool, str]:
    attributes, _ = point
    return (
        str(attributes.get("gen_ai.tool.name", "")),
        "error.type" in attributes,
        str(attributes.get("gen_ai.token.type", "")),
    )
