"""Users' own actors in a runtime, and the models that it closes."""

from __future__ import annotations

import contextlib

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, open_runtime
from actors.kit import ActorGone, Ask, Mailbox, Restarts
from actors.models import Scripted


@attrs.frozen(eq=False)
class Count(Ask[int]):
    """How many asks has there been?"""

    crash: bool = False


@attrs.define
class Counter:
    """Counts what it is asked."""

    count: int = 0
    farewell: Exception | None = None

    async def run(self, mailbox: Mailbox[Count]) -> None:
        try:
            async for message in mailbox:
                self.count += 1
                if message.crash:
                    raise ValueError("broken")
                message.reply.set(self.count)
        finally:
            if self.farewell is not None:
                raise self.farewell


async def test_an_actor_of_ones_own() -> None:
    """It is asked through its port, counted, named after its class, and gone with the runtime."""
    async with open_runtime() as runtime:
        port = await runtime.spawn_actor(Counter())
        named = await runtime.spawn_actor(Counter(), name="tally")
        answers = [await port.ask(Count()), await port.ask(Count())]
        actors = runtime.statistics().actors
    with pytest.raises(ActorGone):
        await port.ask(Count())

    assert [1, 2] == answers
    assert ("Counter", "tally", 2) == (port.name, named.name, actors)
    assert 0 == runtime.statistics().actors


async def test_it_is_supervised() -> None:
    """After a crash it is there again, with the state that it had."""
    async with open_runtime() as runtime:
        port = await runtime.spawn_actor(Counter())
        port.request(Count(crash=True), lambda _: None)
        answer = await port.ask(Count())

    assert 2 == answer


async def test_one_that_crashes_too_often_ends_the_runtime() -> None:
    """With its error, which leaves the block; agents and other actors are stopped."""
    other = Counter()
    with pytest.RaisesGroup(ValueError, allow_unwrapped=True) as caught:
        async with open_runtime() as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted([])))
            await runtime.spawn_actor(other)
            port = await runtime.spawn_actor(Counter(), restarts=Restarts(limit=0))
            port.request(Count(crash=True), lambda _: None)
            await trio.sleep_forever()

    assert ["broken"] == leaves(caught.value)
    assert agent.stopped.is_set()


async def test_the_bodys_error_is_not_lost_beside_another() -> None:
    """Where an actor fails while it is being stopped, both errors leave."""
    with pytest.RaisesGroup(KeyError, OSError) as caught:
        async with open_runtime() as runtime:
            await runtime.spawn_actor(Counter(farewell=OSError("disk full")), restarts=Restarts(limit=0))
            await trio.testing.wait_all_tasks_blocked()
            raise KeyError("mine")

    assert {"'mine'", "disk full"} == set(leaves(caught.value))


def leaves(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for part in error.exceptions for text in leaves(part)]
    return [str(error)]


class Holding(Scripted):
    """A model that holds something open."""

    def __init__(self, *, seconds: float = 0, error: Exception | None = None) -> None:
        super().__init__(["fine"])
        self.closed: list[float] = []
        self.seconds = seconds
        self.error = error

    async def aclose(self) -> None:
        self.closed.append(trio.current_time())
        await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error


async def test_models_are_closed_once(autojump_clock: trio.testing.MockClock) -> None:
    """Also where several agents share one; after all agents have stopped; a model without `aclose` is left alone."""
    shared, own = Holding(), Holding()
    async with open_runtime() as runtime:
        agents = [await runtime.spawn(AgentSpec(model=model)) for model in (shared, shared, own, Scripted([]))]
        await trio.sleep(1)
        before = [*shared.closed, *own.closed]

    assert [] == before
    assert all(agent.stopped.is_set() for agent in agents)
    assert ([1.0], [1.0]) == (shared.closed, own.closed)


@pytest.mark.parametrize("body_fails", [False, True])
async def test_a_model_that_cannot_close_keeps_nobody_from_it(
    body_fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault is logged with the model's name; the others are closed, and an error of the body is not hidden."""
    first, second = Holding(error=OSError("no")), Holding()
    with pytest.raises(KeyError, match="mine") if body_fails else contextlib.nullcontext():
        async with open_runtime() as runtime:
            for model in (first, second):
                await runtime.spawn(AgentSpec(model=model))
            if body_fails:
                raise KeyError("mine")

    assert (1, 1) == (len(first.closed), len(second.closed))
    assert ["closing a model failed model=scripted"] == [record.message for record in caplog.records]


async def test_closing_models_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    """A model that never comes to an end of closing costs the grace time, also in a cancelled scope."""
    with trio.move_on_after(1) as scope:
        async with open_runtime(stop_grace_seconds=3) as runtime:
            await runtime.spawn(AgentSpec(model=Holding(seconds=1000)))
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert 4.0 == trio.current_time()
