"""What the type checkers prove of actors in a runtime: a port keeps the types of its actor's messages, and of their answers."""

from __future__ import annotations

from typing import assert_type

import attrs

from actors import open_runtime
from actors.kit import Ask, Mailbox, Port, Restart, Restarts


@attrs.define(eq=False)
class Length(Ask[int]):
    """How long is this?"""

    text: str


@attrs.frozen
class Note:
    """Something to keep."""

    text: str


class Reader:
    """Answers, and keeps notes."""

    async def run(self, mailbox: Mailbox[Length | Note]) -> None:
        async for message in mailbox:
            if isinstance(message, Length):
                message.reply.set(len(message.text))


async def test_a_spawned_actors_port_is_typed() -> None:
    """`spawn_actor` gives a port of what the actor's `run` takes; sending and asking are checked against it."""
    told: list[Restart] = []
    async with open_runtime() as runtime:
        port = await runtime.spawn_actor(Reader(), restarts=Restarts(on_restart=told.append))
        assert_type(port, Port[Length | Note])
        answer = await port.ask(Length("four"))
        sent = await port.send(Note("x"))
        assert_type(answer, int)
        assert_type(sent, bool)

    assert (4, True, []) == (answer, sent, told)


async def refused_by_the_checkers(port: Port[Note], message: Length) -> None:
    """Never called: each of these lines is an error, and a checker that does not see it fails the build."""
    await port.send(message)  # type: ignore[arg-type]
    Restarts(on_restart=takes_text)  # type: ignore[arg-type]
    text: str = await port.ask(message)  # type: ignore[arg-type]
    del text


def takes_text(text: str) -> None:
    """Takes a text."""
    del text
