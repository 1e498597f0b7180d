"""The keyboard of a client: which line is an answer to what, and what becomes of one that is refused."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.cli._attach_commands import Commands
from actors.cli._board import Board
from actors.cli._desk import Desk
from actors.cli._lines import Lines
from actors.client import Client, ReplyLost, WireRefused
from protocol.events import ContinuationRequired, ContinuationResolved, RunStarted
from protocol.wire.replies import OpenContinuation

from ._attached import approval, board, info, opened, received
from ._served import ASK
from .test_answers import request
from .test_views import Pipes, pipes

__all__ = ("pipes",)  # a fixture


@attrs.define(eq=False)
class Server:
    """What a client asks of a server, and what it is answered."""

    done: list[tuple[Any, ...]] = attrs.field(factory=list)
    refusal: Exception | None = None
    """Of the next command."""
    open: list[Any] = attrs.field(factory=list)

    async def decide(self, asked: ContinuationRequired, decision: str, **answer: Any) -> None:
        await self._do("decide", asked.request, asked.digest, decision, answer["message"])

    async def start(self, agent: str, prompt: str) -> None:
        await self._do("start", agent, prompt)

    async def steer(self, run: str, text: str) -> None:
        await self._do("steer", run, text)

    async def cancel(self, run: str, *, mode: str) -> None:
        await self._do("cancel", run, mode)

    async def requests(self) -> list[Any]:
        return self.open

    async def _do(self, *what: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.done.append(what)
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal


@attrs.define(eq=False)
class Keys:
    """Somebody who types."""

    lines: list[str] = attrs.field(factory=list)
    forgotten: int = 0
    _typed: trio.Event = attrs.field(factory=trio.Event)

    async def next(self) -> str | None:
        while not self.lines:
            self._typed = trio.Event()
            await self._typed.wait()
        return self.lines.pop(0)

    def forget(self) -> None:
        self.lines.clear()
        self.forgotten += 1

    def type(self, line: str) -> None:
        self.lines.append(line)
        self._typed.set()


@attrs.define(eq=False)
class Place:
    """A desk at which somebody types, and what there is to see."""

    pipes: Pipes
    board: Board
    server: Server
    keys: Keys
    desk: Desk
    nursery: trio.Nursery
    left: int = 0

    async def type(self, line: str) -> str:
        """Type a line; what was shown."""
        self.keys.type(line)
        return await self.see()

    async def hear(self, event: Any, agent: str = "a1") -> str:
        """Something happens; what was shown."""
        self.board.take(received(event, agent=agent))
        await self.desk.look()
        return await self.see()

    async def see(self) -> str:
        await wait_all_tasks_blocked()
        return self.pipes.read()[1]


@pytest.fixture
async def place(pipes: Pipes, nursery: trio.Nursery) -> Place:
    """A desk with one agent that is idle."""
    known, server, keys = board(info()), Server(), Keys()
    client = cast("Client", server)
    desk = Desk(client, pipes.screen, known, cast("Lines", keys), Commands(client, known), True, lambda: None)
    made = Place(pipes, known, server, keys, desk, nursery)

    def left() -> None:
        made.left += 1

    desk.left = left
    nursery.start_soon(desk.run)
    return made


STARTED = RunStarted(run="r1", agent="auditor", model="m", prompt="p")


async def test_prompts_and_commands(place: Place) -> None:
    """Between questions a line is a prompt, but what could be an answer is none; commands are for the run that goes on."""
    idle = await place.see()
    near = await place.type("d skip tests")
    await place.type("Audit this")
    running = await place.hear(STARTED)
    await place.type("/steer faster")
    ends = await place.type("/cancel")
    await place.type("/cancel now")
    empty = await place.type("")
    lacks = await place.type("/steer")
    help_ = await place.type("/help")
    nothing = await place.type("/waits")
    await place.type("/quit")

    assert place.server.done == [
        ("start", "a1", "Audit this"),
        ("steer", "r1", "faster"),
        ("cancel", "r1", "boundary"),
        ("cancel", "r1", "now"),
    ]
    assert idle == "> "
    assert "To start a run with this as its prompt: /run TEXT" in near
    assert (running, empty) == ("", "")
    assert "It ends after the step in hand." in ends
    assert "/steer lacks its text" in lacks
    assert "/quit" in help_
    assert "Nothing waits." in nothing
    assert place.left == 1


async def test_an_answer_goes_with_what_was_seen(place: Place) -> None:
    """With its digest; and nothing more is asked until everybody has been told what it came to."""
    await place.hear(STARTED)
    first = await place.hear(request(digest="of-the-first"))
    place.board.take(received(request(request="q9"), 2))
    sent = await place.type("s be quick")
    early = await place.type("a")
    then = await place.hear(ContinuationResolved(run="r1", request="q1", outcome="approved", by="us"))

    assert place.server.done == [("decide", "q1", "of-the-first", "approve", "be quick")]
    assert first.endswith(ASK)
    assert (sent, early) == ("", "")
    assert then.endswith(ASK)


async def test_what_is_no_answer_decides_nothing(place: Place) -> None:
    """It is asked again; the text of a steering may come on a line of its own; a command may come before the answer."""
    await place.hear(STARTED)
    await place.hear(request())
    misread = await place.type("approved")
    shown = await place.type("?")
    wants = await place.type("s")
    nothing = await place.type(" ")
    help_ = await place.type("/help")
    await place.type("s")
    undecided = list(place.server.done)
    await place.type("report now")

    assert misread.endswith(ASK)
    assert "'approved' is no answer" in misread
    assert "The model wants 3 more calls" in shown
    assert wants == "what shall the model read? "
    assert "nothing was said" in nothing
    assert "approve with steering" in help_
    assert "/steer TEXT" in help_
    assert undecided == []
    assert place.server.done == [("decide", "q1", "", "approve", "report now")]


async def test_somebody_was_quicker(place: Place) -> None:
    """Their answer takes the question off, and what was being typed with it; if only the server knew, it says so."""
    await place.hear(STARTED)
    await place.hear(request())
    forgotten = place.keys.forgotten
    told = await place.hear(ContinuationResolved(run="r1", request="q1", outcome="declined", by="anna"))
    after = place.keys.forgotten
    await place.hear(request(request="q2"))
    place.server.refusal = WireRefused("already_resolved", "q2 is declined by anna", {})
    late = await place.type("a")

    assert (told, after) == ("", forgotten + 1)
    assert "That is decided already: already_resolved: q2 is declined by anna." in late
    assert not late.endswith(ASK)
    assert place.board.waiting == {}


async def test_a_stale_view_is_shown_again(place: Place) -> None:
    """As it is now, and the next answer goes with that."""
    await place.hear(STARTED)
    await place.hear(request(digest="old"))
    place.server.refusal = WireRefused("stale_view", "look again", {})
    place.server.open = [
        opened(OpenContinuation, request(digest="new")),
        opened(OpenContinuation, request(request="q9")),
    ]
    again = await place.type("a")
    await place.type("a")

    assert "What waits has changed meanwhile: look again." in again
    assert again.endswith(ASK)
    assert [what[2] for what in place.server.done] == ["old", "new"]


@pytest.mark.parametrize(
    "trouble", [WireRefused("forbidden", "continuation.decide needs the role decide", {}), ReplyLost("no answer came")]
)
async def test_a_refusal_leaves_the_question(place: Place, trouble: Exception) -> None:
    """It is said why, and asked again."""
    await place.hear(STARTED)
    await place.hear(request())
    place.server.refusal = trouble
    said = await place.type("a")

    assert str(trouble) in said
    assert said.endswith(ASK)
    assert list(place.board.waiting) == ["q1"]


async def test_whose_question_it_is(place: Place) -> None:
    """A sub-agent's, or one of several agents': its name stands above."""
    await place.see()
    sub = await place.hear(request(agent_path=("helper",)))
    await place.hear(ContinuationResolved(run="r1", request="q1", outcome="declined", by="anna"))
    place.board.listed([info("a2", "writer")], ())
    other = await place.hear(approval(), "a2")

    assert sub.lstrip().startswith("auditor/helper\n")
    assert other.lstrip().startswith("writer\n")


async def test_who_is_meant(place: Place) -> None:
    """Of several agents one has to be named; without any there is nothing to do."""
    place.board.listed([info("a2", "writer", run="r2")], ())
    unclear = await place.type("/run Hello")
    await place.type("/to writer")
    busy = await place.type("/run Hello")
    who = await place.type("/agents")
    place.board.agents.clear()
    gone = await place.type("/cancel")

    assert "Which agent? /to NAME; there are: auditor, writer" in unclear
    assert "writer has a run going on" in busy
    assert "  auditor: idle\n  writer: runs" in who
    assert "No agent is there now." in gone
    assert place.server.done == []
