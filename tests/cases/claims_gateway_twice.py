"""What must hold of the cases about what is tried, or said, a second time."""

from __future__ import annotations

from protocol.events import (
    ContentDelta,
    ModelRetry,
    Rollback,
    RunFailed,
    RunFinished,
    RunStarted,
    StepStarted,
)
from protocol.wire.replies import Started

from .claims import claim, said
from .claims_gateway_approval import a_of
from .claims_wire_stream import only
from .gateway.person import Person
from .program import CASES

REPLAY = ("config.delivery", "replay")


def shown_text(person: Person) -> str:
    """What a client shows that has applied all events."""
    text = ""
    for item in person.received:
        match item.event:
            case StepStarted():
                text = ""
            case ContentDelta(text=more):
                text += more
            case Rollback(to=to):
                text = text[:to]
            case _:
                pass
    return text


@claim(
    "HTP-05",
    "one of: no retry after the first delta (outcome error, partial text kept); or a retry announced by a reset event"
    " that tells clients to drop the partial text",
)
def a_retry_behind_text_is_announced() -> None:
    strict, replay = only("HTP-05"), only("HTP-05", REPLAY)
    kinds = [type(item.event) for item in a_of(replay).received]

    assert ("error", 1, "Here is") == (strict.outcome, len(strict.served.bodies), strict.last.result.text)
    assert ([], []) == (a_of(strict).all(ModelRetry), a_of(strict).all(Rollback))
    assert ("answer", 2) == (replay.outcome, len(replay.served.bodies))
    assert 0 == a_of(replay).only(Rollback).to
    assert [ContentDelta, Rollback, ContentDelta] == [kind for kind in kinds if kind in {ContentDelta, Rollback}]
    assert 1 == len(a_of(replay).all(ModelRetry))


@claim(
    "HTP-05",
    "final text and a client that applies all events both end with 'Here is the plan' once, or 'Here is' with an"
    " error; never 'Here isHere is the plan'",
)
def text_is_shown_once() -> None:
    strict, replay = only("HTP-05"), only("HTP-05", REPLAY)

    assert ("Here is", "Here is") == (shown_text(a_of(strict)), a_of(strict).only(RunFailed).summary.text)
    assert "Here is the plan" == shown_text(a_of(replay)) == a_of(replay).only(RunFinished).summary.text


@claim(
    "HTP-07",
    "exactly one message-start event reaches clients, or the second one has a new message id and the first was closed",
)
def one_message_is_begun() -> None:
    person = a_of(only("HTP-07"))

    assert 1 == len(person.all(StepStarted)) == len(person.all(ModelRetry))
    assert 1 == len({event.message for event in person.all(ContentDelta)})
    assert ("Hello", []) == (shown_text(person), person.all(Rollback))


@claim("GTW-12", "the second send is answered with the first run's id and state")
def a_start_is_answered_again() -> None:
    came = only("GTW-12")
    person = a_of(came)
    (run,) = person.all(RunStarted)
    answers = [said.answer for said in person.said]

    # The one that was under way was sent again by the client itself; then by hand.
    assert [Started(run=run.run, seq=1, replayed=True, state="ended")] * 2 == answers
    assert 2 == person.client.statistics().connections
    assert came.last.seconds <= person.said[0].time


@claim("GTW-12", "the transcript has one user message")
def a_start_is_done_once() -> None:
    came = only("GTW-12")

    assert ["hello"] == said(came.messages)
    assert (1, "answer") == (len(came.played), came.last.result.text)


@claim("GTW-12", "m1 with a different text is refused")
def another_text_is_another_command() -> None:
    told = [*CASES["GTW-12"]["input"]["actions"], "client sends m1 with a different text"]
    came = only("GTW-12", ("actions", told))

    assert "idem_conflict" == a_of(came).said[-1].refusal.code
    assert (1, ["hello"]) == (len(came.asked), said(came.messages))


@claim(
    "GTW-13",
    "one of: the retry runs; or the reply says 'm1 failed, use a new id'. Never a silent 'duplicate' with no answer",
)
def a_failed_start_is_told_as_such() -> None:
    came = only("GTW-13")
    person = a_of(came)
    first, again, new = [said.answer for said in person.said]

    assert Started(run=first.run, seq=first.seq, replayed=True, state="failed") == again
    assert (None, False) == (new.state, new.replayed)
    assert [first.run, new.run] == [event.run for event in person.all(RunStarted)]
    assert [first.run] == [event.run for event in person.all(RunFailed)]
    assert 2 == len(came.served.bodies)
