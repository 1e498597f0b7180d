"""What a client knows of the agents that it follows."""

from __future__ import annotations

import pytest

from actors.cli._board import Board
from actors.client import Gone, Reattached
from protocol.events import (
    AgentSpawned,
    AgentStopped,
    ApprovalResolved,
    ContinuationResolved,
    Event,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
)
from protocol.limits import Counters
from protocol.wire.replies import Attached as AttachReply
from protocol.wire.replies import OpenApproval, OpenContinuation

from ._attached import approval, board, info, opened, received
from .test_answers import request
from .test_words import result


def test_runs_come_and_go() -> None:
    """The run of an agent is its own, not that of a sub-agent."""
    known = board(info())
    seen: list[str | None] = []
    for event in (
        RunStarted(run="r1", agent="auditor", model="m", prompt="p"),
        RunStarted(run="r2", agent_path=("helper",), agent="helper", model="m", prompt="p"),
        RunFinished(run="r2", agent_path=("helper",), summary=result().summary()),
        RunFinished(run="r1", summary=result().summary()),
    ):
        known.take(received(event))
        seen.append(known.agents["a1"].run)

    assert seen == ["r1", "r1", "r1", None]


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        (request(), ContinuationResolved(run="r1", request="q1", outcome="approved", by="x")),
        (approval(), ApprovalResolved(run="r1", request="q2", call="c1", outcome="denied", by="x")),
        (RunPaused(run="r1", request="q3", calls=()), RunResumed(run="r1", counters=Counters())),
        (request(), RunFinished(run="r1", summary=result().summary())),
        (request(), AgentStopped(agent="a1", reason="x")),
    ],
)
def test_questions_wait_until_they_are_closed(opens: Event, closes: Event) -> None:
    """Whatever closes them: an answer, the end of the run, the end of the agent."""
    known = board(info())
    known.take(received(opens))
    before = len(known.waiting)
    known.take(received(closes))

    assert (1, 0) == (before, len(known.waiting))


def test_old_questions_are_not_asked_again() -> None:
    """Of what is followed from the start, only what the server lists as open waits."""
    known = Board(lambda: 0.0)
    known.listed([info(head=9)], [opened(OpenContinuation, request(expires_in_seconds=5.0))])
    known.take(received(request(request="old"), 3))
    known.take(received(request(), 8))
    known.take(received(request(request="new"), 10))

    assert ["q1", "new"] == list(known.waiting)
    assert known.waiting["q1"].deadline == 5.0


def test_seconds_that_are_left() -> None:
    """They run down from when the question was heard of, to nothing; without a deadline none are told."""
    now = 100.0
    known = Board(lambda: now)
    known.listed(
        [info()], [opened(OpenApproval, approval()), opened(OpenContinuation, request(expires_in_seconds=None))]
    )
    now = 145.0
    left = [known.as_of_now(waiting) for waiting in known.waiting.values()]
    now = 1000.0
    over = known.as_of_now(known.waiting["q2"])

    seconds = [one.expires_in_seconds for one in (*left, over) if not isinstance(one, RunPaused)]
    assert seconds == [15.0, None, 0.0]


def test_who_is_there() -> None:
    """Agents that come are known by their names, those that go are still called by theirs."""
    known = board(info(), info("a2", "auditor"))
    known.take(received(AgentSpawned(agent="a3", name="writer"), agent="a3"))
    several = len(known.named("auditor"))
    for agent in ("a1", "a2"):
        known.take(Gone(agent))
    known.take(received(AgentStopped(agent="a3", reason="x"), agent="a3"))

    assert several == 2
    assert known.is_deserted
    assert ("auditor", "writer", "a9") == (known.name_of("a1"), known.name_of("a3"), known.name_of("a9"))


def test_a_snapshot_replaces_what_was_known() -> None:
    """After events were lost, only what the server says still waits."""
    known = board(info())
    known.take(received(request(request="lost")))
    reply = AttachReply(
        epoch="e1",
        head=9,
        oldest=5,
        recovered=False,
        open_requests=(opened(OpenContinuation, request()),),
        snapshot=None,
    )
    known.take(Reattached("a1", reply))

    assert ["q1"] == list(known.waiting)
