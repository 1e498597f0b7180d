"""The client in Python plays every scenario over a real socket, as those in other languages do."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.client import Client, ClientPace, Received, WireRefused, connect
from protocol.events import TERMINAL_EVENTS
from tests.peers._scenarios import NAMES, Stage, open_stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]


async def give(client: Client, event: Any, method: str, params: dict[str, Any]) -> str:
    """Give one command of a scenario: what it is answered with."""
    given = {name: value for name, value in params.items() if name not in {"request", "digest", "discard_tool_calls"}}
    if changes := {name: params[name] for name in ("request", "digest") if name in params}:
        event = msgspec.structs.replace(event, **changes)
    if "discard_tool_calls" in params:
        given["discard"] = params["discard_tool_calls"]
    try:
        match method:
            case "continuation.decide":
                return (await client.decide(event, **given)).status
            case "approval.decide":
                return (await client.decide_approval(event, **given)).status
            case "run.steer":
                await client.steer(event.run, **given)
            case _:
                await client.cancel(event.run, **given)
    except WireRefused as error:
        return error.code
    return "done"


async def play(stage: Stage, client: Client) -> dict[str, Any]:
    seen: dict[str, Any] = {"numbers": [], "types": [], "answers": []}
    turns: dict[str, int] = {}
    async with client.follow(stage.agent.id, since="start") as events:
        await client.start(stage.agent.id, "look around")
        async for item in events:
            assert isinstance(item, Received)
            kind = item.event.type
            turn = turns.get(kind, 0)
            turns[kind] = turn + 1
            seen["numbers"].append(item.number)
            seen["types"].append(kind)
            due = stage.scenario["on"].get(kind, [])
            if turn < len(due):
                seen["answers"].append([await give(client, item.event, **command) for command in due[turn]])
            if isinstance(item.event, TERMINAL_EVENTS):
                break
    return seen


@pytest.mark.parametrize("name", [name for name in NAMES if name != "decide in every wrong way first"])
async def test_the_client_plays_it(name: str) -> None:
    """It sees all that happens, once and in order, and its commands count; its keys are its own, so none comes twice."""
    async with open_stage(name) as stage:
        pace = ClientPace(first_seconds=0.05)
        async with connect(stage.url, token=stage.gateway.token, pace=pace) as client:
            seen = await play(stage, client)

        assert stage.expected() == stage.came_to(json.dumps(seen))
