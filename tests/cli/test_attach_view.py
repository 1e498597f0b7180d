"""What a client shows."""

from __future__ import annotations

import json

import msgspec
import pytest

from actors.cli._attach_view import EventLines, PersonView
from actors.cli._board import Board
from actors.client import Attached, Gone, Item
from protocol.events import (
    AgentStopped,
    ApprovalResolved,
    ContentDelta,
    ContinuationResolved,
    ErrorInfo,
    PendingCall,
    Rollback,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from protocol.turns import UserMessage
from protocol.wire.replies import Attached as AttachReply
from protocol.wire.replies import OpenContinuation, Snapshot

from ._attached import approval, board, info, opened, received
from .test_answers import request
from .test_views import Pipes, pipes
from .test_words import result

__all__ = ("pipes",)  # a fixture


async def shown(pipes: Pipes, known: Board, *items: Item, asks: bool = True) -> tuple[str, str]:
    """What a person sees of these."""
    view = PersonView(pipes.screen, known, asks)
    for item in items:
        known.take(item)
        await view.show(item)
    return pipes.read()


def text(message: str, piece: str, run: str = "r1") -> ContentDelta:
    """A piece of visible text."""
    return ContentDelta(run=run, message=message, text=piece)


START = RunStarted(run="r1", agent="auditor", model="m", prompt="Look\naround")


async def test_a_run_as_a_person_sees_it(pipes: Pipes) -> None:
    """Its prompt, its text, and what it used; no name where there is one agent."""
    end = RunFinished(run="r1", summary=result(text="Done.").summary())
    out, err = await shown(pipes, board(info()), received(START), received(text("m1", "Done.")), received(end))

    assert out == "Done.\n"
    assert err.splitlines()[0] == "run: Look around"
    assert "2 model calls | 1 tool iteration" in err
    assert "--" not in err
    assert "as a whole" not in err


async def test_what_was_added_at_the_end_is_shown(pipes: Pipes) -> None:
    """Of a text that was taken back in part, and has a fallback at its end, nothing is shown twice."""
    summary = result(answered=False, text="one\n\nfallback", stopped_by="tool_iterations").summary()
    events = (
        START,
        text("m1", "one two"),
        Rollback(run="r1", message="m1", to=3),
        RunFinished(run="r1", summary=summary),
    )
    out, _ = await shown(pipes, board(info()), *[received(event) for event in events])

    assert out == "one two\nfallback\n"


@pytest.mark.parametrize(
    ("seen", "whole", "again"),
    [
        ("all of it", "all of it", False),
        ("last", "first\n\nlast", False),
        ("end", "the beginning and the end", True),
        ("", "all of it", True),
        ("", "", False),
    ],
)
async def test_who_comes_in_the_middle_gets_the_whole_text(pipes: Pipes, seen: str, whole: str, again: bool) -> None:
    """Unless all of the last message has been shown."""
    end = RunFinished(run="r1", summary=result(text=whole, answered=False).summary())
    pieces = [received(text("m1", seen))] if seen else []
    out, err = await shown(pipes, board(info(run="r1")), *pieces, received(end))

    assert ("its text as a whole:" in err) is again
    assert out == (f"{seen}\n" if seen else "") + (f"{whole}\n" if again else "")


async def test_agents_do_not_speak_at_the_same_time(pipes: Pipes) -> None:
    """Text of another agent waits until it does something else; each speaks under its name."""
    items = [
        received(text("m1", "one "), agent="a1"),
        received(text("m2", "alpha ", "r2"), agent="a2"),
        received(text("m1", "two"), agent="a1"),
        received(text("m2", "beta", "r2"), agent="a2"),
        received(ToolStarted(run="r2", call="c1", name="search"), agent="a2"),
        received(text("m3", "three"), agent="a1"),
    ]
    out, err = await shown(pipes, board(info(), info("a2", "writer")), *items)

    assert out == "one two\nalpha beta\nthree"
    assert err.splitlines() == ["-- auditor", "-- writer", "  start       search()", "-- auditor"]


async def test_sub_agents_have_their_path(pipes: Pipes) -> None:
    """And their ends are not those of the run."""
    started = ToolStarted(run="r2", agent_path=("helper",), call="c1", name="search")
    end = RunFinished(run="r2", agent_path=("helper",), summary=result().summary())
    _, err = await shown(pipes, board(info()), received(text("m1", "x")), received(started), received(end))

    assert err.splitlines() == ["-- auditor/helper", "  start       search()"]


async def test_what_waits_is_told_where_nobody_is_asked(pipes: Pipes) -> None:
    """With what it waits for and how long."""
    paused = RunPaused(run="r1", request="q3", calls=(PendingCall("c1", "ask", {}),))
    _, err = await shown(pipes, board(info()), received(request()), received(approval()), received(paused), asks=False)
    _, silent = await shown(pipes, board(info()), received(request()), received(approval()))

    assert err.splitlines() == [
        "  waits for a decision: 3 of 3 tool iterations, 3 calls; 600 s left",
        '  waits for an approval: delete(path="a.txt"); 60 s left',
        "  waits for the results of 1 call, which its caller runs",
    ]
    assert silent == ""


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Gone("a1"), "agent auditor is not there any more\n"),
        (received(AgentStopped(agent="a1", reason="asked to")), "the agent has stopped: asked to\n"),
        (
            received(RunFailed(run="r1", error=ErrorInfo("x", "no \x1b way"), summary=result(text="").summary())),
            "failed: no \\x1b way\n",
        ),
        (
            received(ContinuationResolved(run="r1", request="q1", outcome="approved", by="somebody", message="go on")),
            "  approved by somebody: go on\n",
        ),
        (
            received(ApprovalResolved(run="r1", request="q2", call="c1", outcome="denied", by="x", reason="no")),
            "  call denied by x: no\n",
        ),
    ],
)
async def test_what_changes_the_course_is_said(pipes: Pipes, item: Item, said: str) -> None:
    """On a line of its own, and harmless to the terminal."""
    _, err = await shown(pipes, board(info()), item)

    assert err.startswith(said)


async def test_calls_that_were_asked_for_before_are_known(pipes: Pipes) -> None:
    """Who comes while a question waits sees the calls with their arguments when they run."""
    reply = AttachReply(
        epoch="e1",
        head=9,
        oldest=1,
        recovered=True,
        open_requests=(opened(OpenContinuation, request()),),
        snapshot=None,
    )
    ended = ToolFinished(run="r1", call="c1", name="read_text", status="ok", started=True, text="x")
    _, err = await shown(pipes, board(info()), Attached("a1", reply), received(ended))
    _, told = await shown(pipes, board(info()), Attached("a1", reply), asks=False)

    assert 'read_text(path="1.txt")' in err
    assert "waits for" not in err
    assert told == "auditor waits for a decision: 3 of 3 tool iterations, 3 calls; 600 s left\n"


async def test_a_snapshot_is_json_too(pipes: Pipes) -> None:
    """The conversation in it is written as it is on the wire, whatever it holds."""
    stored = UserMessage("caf\xe9")
    snapshot = Snapshot(
        state="idle",
        run=None,
        step_number=0,
        counters=None,
        usage=None,
        history=(msgspec.Raw(msgspec.json.encode(stored)),),
        children=(),
    )
    reply = AttachReply(epoch="e\ud800", head=9, oldest=1, recovered=True, open_requests=(), snapshot=snapshot)
    await EventLines(pipes.screen).show(Attached("a1", reply))
    (line,) = pipes.read()[0].splitlines()

    assert [{"role": "user", "text": "caf\xe9"}] == json.loads(line)["attached"]["snapshot"]["history"]


async def test_lines_for_programs(pipes: Pipes) -> None:
    """One object per line: whose event it is, its number, and the event as it is on the wire."""
    view = EventLines(pipes.screen)
    reply = AttachReply(epoch="e1", head=9, oldest=1, recovered=True, open_requests=(), snapshot=None)
    for item in (Attached("a1", reply), received(text("m1", "x"), 10), Gone("a1")):
        await view.show(item)
    first, second, third = [json.loads(line) for line in pipes.read()[0].splitlines()]

    assert first == {
        "agent": "a1",
        "attached": {"epoch": "e1", "head": 9, "oldest": 1, "recovered": True, "open_requests": []},
    }
    assert second == {
        "agent": "a1",
        "epoch": "e1",
        "seq": 10,
        "event": {"type": "content_delta", "run": "r1", "message": "m1", "text": "x"},
    }
    assert third == {"agent": "a1", "gone": True}
