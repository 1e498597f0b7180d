"""Fifty clients decide one request, twice and thrice, and lose their connections: one decision counts, for all."""

from __future__ import annotations

import contextlib
import os
import random
from typing import Any

import attrs
import pytest
import trio
import trio.testing
import trio_websocket

from .cast import asker
from .wired import Client, Hall, RefusedError, open_hall

CLIENTS = 50
QUICK = range(30)
FULL = os.environ.get("ONWARD_SWEEP") == "full"
SEEDS = 1000 if FULL else 100
CHUNK = 35
ALL = range(30, SEEDS, CHUNK)


@attrs.define
class Heard:
    """What one was told, in the end, and all that it was told before."""

    idem: tuple[str, str]
    accepted: int = 0
    resolutions: list[dict[str, Any]] = attrs.field(factory=list)


async def decide(hall: Hall, rng: random.Random, number: int, request: dict[str, Any], heard: list[Heard]) -> None:
    """One client: it sends its decision, loses its connection or not, and sends it again until it knows."""
    principal = f"p{number // 2}"  # two of them are one person, with one key
    one = Heard((principal, f"i{number // 2}"))
    heard.append(one)
    params = {
        "request": request["request"],
        "digest": request["digest"],
        "idem": one.idem[1],
        "decision": "approve" if number // 2 % 2 else "decline",
        "message": principal,
    }
    told = 0
    while not told:
        client = await hall.connect(principal)
        await trio.sleep(rng.random() * 0.02)
        with contextlib.suppress(trio_websocket.ConnectionClosed):
            ids = [await client.send("continuation.decide", params) for _ in range(rng.choice((1, 1, 2, 3)))]
            if rng.random() < 0.3:
                await trio.sleep(rng.choice((0, 0, 0.001, 0.02)))
                await client.drop()
                continue
            for id in ids:
                await note(client, id, one)
                told += 1


async def note(client: Client, id: Any, one: Heard) -> None:
    try:
        reply = await client.reply(id)
    except RefusedError as error:
        assert "already_resolved" == error.word
        one.resolutions.append(error.data["resolution"])
    else:
        assert "accepted" == reply["status"]
        one.accepted += 1


async def race(seed: int) -> None:
    rng = random.Random(seed)
    heard: list[Heard] = []
    async with open_hall() as hall:
        agent = await hall.spawn(asker(max_llm_calls=6, continuation_timeout_seconds=rng.choice((600, 0.03))))
        watcher = await hall.connect("watcher", "observe", queue=1000)
        await watcher.ask("agent.attach", agent=agent.id)
        await agent.start("go")
        await watcher.read_until(lambda: bool(watcher.requests(agent.id)))
        request = watcher.requests(agent.id)[0]
        async with trio.open_nursery() as nursery:
            for number in range(CLIENTS):
                nursery.start_soon(decide, hall, rng, number, request, heard)
        await watcher.read_for(1)
        events = [(seq, event) for seq, event in watcher.events(agent.id) if event.get("request") == request["request"]]
    resolved = [(seq, event) for seq, event in events if event["type"] == "continuation_resolved"]
    ((seq, event),) = resolved
    winners = {one.idem for one in heard if one.accepted}
    resolution = {"outcome": event["outcome"], "by": event.get("by"), "seq": seq}

    assert [] == [told for one in heard for told in one.resolutions if told != resolution]
    assert all(not one.resolutions for one in heard if one.accepted)
    assert all(one.accepted or one.resolutions for one in heard)
    if event["outcome"] == "timed_out":
        assert set() == winners
    else:
        ((winner, _),) = winners
        assert (winner, winner) == (event["by"], event["message"])


def run(seed: int) -> None:
    trio.run(race, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("seed", QUICK)
def test_one_of_fifty(seed: int) -> None:
    """Exactly one decision is accepted, under one key; all others are told the same resolution, which is the event's."""
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", ALL)
def test_one_of_fifty_at_length(first: int) -> None:
    """The same, a hundred times; `ONWARD_SWEEP=full` makes it a thousand."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        run(seed)
