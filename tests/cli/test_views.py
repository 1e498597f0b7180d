"""What is shown of each event, and the streams it goes to."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Generator

import attrs
import pytest
import trio

from actors import EventsLost
from actors.cli._follow import Follower
from actors.cli._json import JsonView
from actors.cli._live import LiveView
from actors.cli._output import Output
from actors.cli._screen import Screen
from protocol.events import (
    ContentDelta,
    ContextCompacted,
    ContinuationResolved,
    Event,
    ModelRetry,
    ReasoningDelta,
    Rollback,
    RunStarted,
    ToolFinished,
    ToolRequested,
    Warned,
)

from .test_answers import request


@attrs.define(eq=False)
class Pipes:
    """A screen on two pipes, which are read here."""

    screen: Screen
    out: int
    err: int

    def leave(self) -> None:
        """Close the reading ends, as a reader does that has seen enough."""
        os.close(self.out)
        os.close(self.err)
        self.out = self.err = -1

    def read(self) -> tuple[str, str]:
        """All that has been written since."""
        return _all(self.out), _all(self.err)


def _all(descriptor: int) -> str:
    pieces: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
    return b"".join(pieces).decode()


@pytest.fixture
def pipes() -> Generator[Pipes]:
    """Two pipes with a screen at their ends."""
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    os.set_blocking(out, False)
    os.set_blocking(err, False)

    async def make() -> Screen:
        return Screen(Output(out_end), Output(err_end))

    made = Pipes(trio.run(make), out, err)
    yield made
    for descriptor in (made.out, out_end, made.err, err_end):
        if descriptor >= 0:
            os.close(descriptor)


async def show(pipes: Pipes, *events: Event) -> tuple[str, str]:
    """What a live view makes of these events."""
    view = LiveView(pipes.screen)
    for number, event in enumerate(events, 1):
        await view.show(event, number)
    return pipes.read()


def text(message: str, piece: str) -> ContentDelta:
    """A piece of visible text."""
    return ContentDelta(run="r", message=message, text=piece)


async def test_texts_of_turns_stand_on_lines_of_their_own(pipes: Pipes) -> None:
    """Pieces of one message are joined; the next message begins a line."""
    out, err = await show(pipes, text("m1", "one, "), text("m1", "two"), text("m2", "three\n"), text("m3", "four"))

    assert (out, err) == ("one, two\nthree\nfour", "")


async def test_tools_show_what_was_asked_and_what_came(pipes: Pipes) -> None:
    """A call's end shows its status, its arguments and the beginning of its result."""
    asked = ToolRequested(run="r", call="c1", name="search", arguments={"pattern": "x"})
    ended = ToolFinished(run="r", call="c1", name="search", status="error", started=True, text="no\nsuch \x1b thing")
    _, err = await show(pipes, asked, ended)

    assert err == '  error       search(pattern="x") -> no such \\x1b thing\n'


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (ModelRetry(run="r", attempt=2, seconds=1.5, reason="busy"), "retry 2 in 1.5 s: busy"),
        (Warned(run="r", code="x", text="look out"), "warning: look out"),
        (Rollback(run="r", message="m", to=0), "the text above is void"),
        (
            ContextCompacted(
                run="r", by="tr\x1bim", messages_before=42, messages_after=7, tokens_before=31_000, tokens_after=4200
            ),
            "conversation compacted by tr\\x1bim: 42 -> 7 messages, about 31,000 -> 4,200 tokens",
        ),
        (ContinuationResolved(run="r", request="q", outcome="timed_out", by=None), "timed out"),
        (
            ContinuationResolved(run="r", request="q", outcome="timed_out", by=None, effect="approved"),
            "timed out, which counts as approved",
        ),
    ],
)
async def test_notes(pipes: Pipes, event: Event, said: str) -> None:
    """What changes the course is said on a line of its own, on stderr."""
    out, err = await show(pipes, text("m", "open"), event)

    assert out == "open\n"
    assert said in err


async def test_reasoning_is_beside_the_answer(pipes: Pipes) -> None:
    """Reasoning goes to stderr, its pieces on one line."""
    thoughts = [ReasoningDelta(run="r", message="m", text=piece) for piece in ("hm", "m", "m")]
    out, err = await show(pipes, *thoughts, Warned(run="r", code="x", text="w"), thoughts[0])

    assert out == ""
    assert err == "hmmm\n  warning: w\nhm"


async def test_lost_events_are_said(pipes: Pipes) -> None:
    """Both views say how many events they did not get."""
    await LiveView(pipes.screen).lost(3)
    await JsonView(pipes.screen).lost(3)
    out, err = pipes.read()

    assert json.loads(out) == {"type": "skipped", "n": 3}
    assert "3 events were not shown" in err


@attrs.define
class Reading:
    """A reader that gives these."""

    items: list[Event | EventsLost]
    seq: int = 0

    def __aiter__(self) -> AsyncIterator[Event | EventsLost]:
        return self

    async def __anext__(self) -> Event | EventsLost:
        await trio.lowlevel.checkpoint()
        if not self.items:
            raise StopAsyncIteration
        self.seq += 1
        return self.items.pop(0)


@pytest.mark.parametrize("last", [request(), EventsLost(1)])
async def test_a_question_waits_for_what_came_before_it(
    pipes: Pipes, last: Event | EventsLost, autojump_clock: trio.testing.MockClock
) -> None:
    """The question is put when its event has been shown, or can no longer be."""
    follower = Follower(JsonView(pipes.screen))
    started = RunStarted(run="r", agent="a", model="m", prompt="p")
    with trio.fail_after(3600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.wait_shown, request())
            await trio.testing.wait_all_tasks_blocked()
            waiting = len(nursery.child_tasks)
            await follower.follow(Reading([started, last]))
        await follower.wait_shown(request())

    assert waiting == 1
    assert pipes.read()[0].count("\n") == 2


async def test_a_slow_reader_holds_up_the_writer_alone(pipes: Pipes) -> None:
    """A full pipe makes the writing task wait, and no other."""
    done = False

    async def write() -> None:
        nonlocal done
        await pipes.screen.text("x" * 200_000)
        done = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked(0.01)
        was_done = done
        length = 0
        while not done:
            length += len(pipes.read()[0])
            await trio.lowlevel.checkpoint()

    assert not was_done
    assert length + len(pipes.read()[0]) == 200_000


async def test_a_reader_that_left(pipes: Pipes) -> None:
    """Nobody reading the notes is no fault; nobody reading the answer is."""
    pipes.leave()
    await pipes.screen.note("nobody hears")

    with pytest.raises(BrokenPipeError):
        await pipes.screen.text("nobody reads")


async def test_surrogates_are_replaced(pipes: Pipes) -> None:
    """What UTF-8 cannot say is replaced, not raised."""
    await pipes.screen.text("a\udc80b")

    assert pipes.read()[0] == "a\ufffdb"
