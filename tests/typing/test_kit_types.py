"""What the type checkers prove of the kit. Each `type: ignore` is one that a checker must need: mypy reports the others."""

from __future__ import annotations

from typing import assert_never, assert_type

import attrs
import trio

from actors.kit import Ask, Mailbox, Port, Reply, run_once


@attrs.frozen(eq=False)
class Length(Ask[int]):
    """How long is this?"""

    text: str


@attrs.frozen(eq=False)
class Shout(Ask[str]):
    """Say it louder."""

    text: str


@attrs.frozen
class Stop:
    """End."""


Word = Length | Shout | Stop


class Reader:
    """Answers each question with its own type."""

    async def run(self, mailbox: Mailbox[Word]) -> None:
        async for message in mailbox:
            match message:
                case Length(text=text):
                    assert_type(message.reply, Reply[int])
                    message.reply.set(len(text))
                case Shout(text=text):
                    message.reply.set(text.upper())
                case Stop():
                    return
                case _:
                    assert_never(message)


async def test_an_answer_has_the_questions_type() -> None:
    """`ask` gives what the message says, proven before it runs and true when it does."""
    box: Mailbox[Word] = Mailbox("reader")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Reader(), box)
        length = await box.port.ask(Length("four"))
        shout = await box.port.ask(Shout("hey"))
        assert_type(length, int)
        assert_type(shout, str)
        box.port.tell(Stop())

    assert (4, "HEY") == (length, shout)


async def test_an_answer_can_stand_anywhere() -> None:
    """Where something wider is wanted (an object to print, a float), an ask for an int is right as it is."""
    box: Mailbox[Word] = Mailbox("reader")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Reader(), box)
        told = f"{await box.port.ask(Length('four'))}"
        number: float = await box.port.ask(Length("four"))
        things: list[object] = [await box.port.ask(Shout("hey"))]
        box.port.tell(Stop())

    assert ("4", 4, ["HEY"]) == (told, number, things)


def test_a_port_of_more_is_a_port_of_less() -> None:
    """Who takes every word takes one of them: ports are contravariant."""
    box: Mailbox[Word] = Mailbox("reader")
    narrow: Port[Stop] = box.port

    assert box.port is narrow


def refused_by_the_checkers(port: Port[Stop], message: Length, reply: Reply[int]) -> None:
    """Never called: each of these lines is an error, and a checker that does not see it fails the build."""
    port.tell(message)  # type: ignore[arg-type]
    message.reply.set("four")  # type: ignore[arg-type]
    number: str = reply.result()  # type: ignore[assignment]
    port.request(message, lambda answered: takes_text(answered.result()))  # type: ignore[arg-type]
    del number


def takes_text(text: str) -> None:
    """Takes a text."""
    del text
