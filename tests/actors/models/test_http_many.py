"""Many calls at once through one client: none disturbs another, and every place comes back."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
import trio
import trio.testing

from actors.models.wire import HttpStatistics
from protocol.errors import ModelError
from tests.actors.models._wire import DONE, HELLO, Heard, Network, Pause, Reply, chunk, stream
from tests.actors.models.conftest import MakeModel

CALLS = 100


def own_stream(number: int) -> Reply:
    """A reply that no other call may see a word of."""
    words = [step for word in range(20) for step in (chunk({"content": f"{number}.{word} "}), Pause(0.1))]
    return stream(*words, chunk(finish="stop"), DONE)


def text_of(number: int) -> str:
    return "".join([f"{number}.{word} " for word in range(20)])


@pytest.mark.slow
async def test_a_hundred_streams_at_once(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Each call has its own reply, all run at the same time, and their connections serve the next hundred."""
    model = make_model(max_connections=CALLS)
    texts: list[str] = []
    seen: list[HttpStatistics] = []

    async def call() -> None:
        heard = Heard()
        turn = await model.turn(HELLO, heard)
        assert turn.text == heard.text
        texts.append(turn.text)

    for _ in range(2):
        network.server.replies = [own_stream(number) for number in range(CALLS)]
        async with trio.open_nursery() as nursery:
            for _ in range(CALLS):
                nursery.start_soon(call)
            await trio.sleep(1)
            seen.append(model.statistics())

    assert sorted([text_of(number) for number in range(CALLS)] * 2) == sorted(texts)
    assert [HttpStatistics(calls=CALLS, waiting=0, max_connections=CALLS)] * 2 == seen
    assert CALLS == network.server.connections
    assert trio.current_time() < 5


@pytest.mark.parametrize("seed", range(10))
async def test_calls_that_are_cancelled_anywhere(
    seed: int, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """While connecting, waiting for a place, for a reply, in its middle or between retries: no place is ever lost."""
    dice = random.Random(seed)
    network.connect_seconds = 0.3

    def some_reply() -> Reply:
        pause = Pause(dice.uniform(0, 2))
        return dice.choice([
            stream(pause, chunk({"content": "x"}), pause, chunk(finish="stop"), DONE),
            stream(pause, end="cut"),
            stream(pause, chunk({"content": "x"}), end="hang"),
            stream(chunk(finish="stop"), pause, end="hang"),
        ])

    network.server.make_reply = some_reply
    model = make_model(max_connections=3, retries=2, idle_timeout_seconds=2)
    most = 0

    async def call() -> None:
        nonlocal most
        await trio.sleep(dice.uniform(0, 3))
        with trio.move_on_after(dice.uniform(0, 4)):
            with suppress(ModelError):
                await model.turn(HELLO, Heard())
        most = max(most, model.statistics().calls)

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()

    assert most <= 3
    assert HttpStatistics(calls=0, waiting=0, max_connections=3) == model.statistics()
    assert network.server.connections - network.closed <= 3  # those that wait for the next call
    await model.aclose()
    assert network.server.connections == network.closed
