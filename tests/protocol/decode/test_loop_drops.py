"""What follows a request of a decode that broke off."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.decode import Done, NextHop, Policy, Raise
from protocol.errors import (
    ModelError,
    ModelReplyError,
)
from tests.protocol.decode.playing import (
    BODY,
    DROP,
    GARBAGE,
    GONE,
    REFUSED,
    SILENT,
    decode,
    feed,
    interrupted,
    to_hop_2,
)
from tests.protocol.decode.speech import completed, created, delta, start, stop, update


def test_a_hop_that_is_tried_again_names_the_owner_of_its_token() -> None:
    """Its own id, known by then, has issued nothing."""
    state = feed(to_hop_2(), created("i2"))
    decision = state.end_hop(DROP)

    assert NextHop("t1", reconnects=1) == decision
    assert "i1" == state.request_body()["previous_interaction_id"]


@pytest.mark.parametrize("error", [DROP, SILENT, None])
@pytest.mark.parametrize("status", ["in_progress", "queued", "requires_continuation"])
def test_whatever_ends_a_connection_behind_a_checkpoint(error: ModelError | None, status: str) -> None:
    """A drop, a silence and a clean end without a final status are the same: the latest token is presented."""
    state = feed(decode(), created(), start(), delta("A"), update("ck1"), delta("B"), update("ck2", status))
    decision = state.end_hop(error)

    assert isinstance(decision, NextHop)
    assert "ck2" == decision.token


def test_output_behind_the_checkpoint_is_fatal_in_strict_delivery() -> None:
    """It would come twice. All of it is in the error, with the token that makes the end of it again."""
    state = feed(decode(), created(), start(), delta("A"), update("ck1"), delta("B"))
    error = interrupted(state.end_hop(DROP))

    assert ("transport", "ck1", "i1", ("i1",), 0) == (
        error.reason,
        error.token,
        error.interaction_id,
        error.continuation_ids,
        error.hops,
    )
    assert "AB" == (error.interaction or {})["output_text"]
    assert {"continuation_token": "ck1", "previous_interaction_id": "i1"} == error.resume_kwargs()
    assert error.retryable


def test_replay_takes_back_what_comes_again() -> None:
    """The events up to the checkpoint stand, the ones behind it are void, in the result too."""
    state = feed(decode(delivery="replay"), created(), start(), delta("A"), update("ck1"), delta("B"), stop())
    decision = state.end_hop(DROP)
    feed(state, created("i2"), start(), delta("B"), stop(), completed(id="i2"))

    assert NextHop("ck1", reconnects=0, rollback_to=4) == decision
    assert 4 + 5 == state.events
    assert Done() == state.end_hop()
    assert "AB" == (state.merged() or {})["output_text"]


def test_replay_goes_back_to_where_the_hop_began() -> None:
    """Its token was a checkpoint, too; what the hop before brought stands."""
    state = feed(to_hop_2(delivery="replay"), created("i2"), start(), delta("B"))

    assert NextHop("t1", reconnects=1, rollback_to=5) == state.end_hop(DROP)
    assert "A" == (state.merged() or {})["output_text"]


def test_replay_needs_a_token() -> None:
    """Without one the decode would begin anew: that is another request."""
    state = feed(decode(delivery="replay"), created(), start(), delta("A"))

    assert Raise(DROP) == state.end_hop(DROP)


@pytest.mark.parametrize("error", [DROP, GONE, REFUSED, GARBAGE])
def test_before_anything_was_gained_the_error_stays_as_it_is(error: ModelError) -> None:
    """There is nothing that could be resumed."""
    assert Raise(error) == decode().end_hop(error)
    assert Raise(error) == feed(decode(), created(), start(), delta("A")).end_hop(error)


def test_the_plain_error_says_which_interactions_there_are() -> None:
    """They stay stored at the provider."""
    error = ModelError("broke")
    feed(decode(), created("i7")).end_hop(error)

    assert ["interactions of the decode: i7"] == error.__notes__


@pytest.mark.parametrize(("error", "reason"), [(REFUSED, "http_status"), (GARBAGE, "protocol")])
def test_an_answer_that_is_no_reply_interrupts_at_once(error: ModelError, reason: str) -> None:
    """The layer below has repeated what is worth it."""
    state = to_hop_2()
    state.hop.opened = False
    decision = state.end_hop(error)

    assert reason == interrupted(decision).reason
    assert isinstance(decision, Raise)
    assert error is decision.cause


def test_a_connection_that_does_not_come_to_stand_is_tried_again() -> None:
    """Three times with one token."""
    state = to_hop_2()
    state.hop.opened = False
    tries = [state.end_hop(GONE) for _ in range(4)]

    assert [NextHop("t1", reconnects=count) for count in (1, 2, 3)] == tries[:3]
    assert "transport" == interrupted(tries[3]).reason


def test_a_new_checkpoint_makes_the_tries_start_anew() -> None:
    """As many times as there are new ones."""
    state = to_hop_2()
    seen: list[object] = []
    for number in range(6):
        seen += [state.end_hop(DROP), state.end_hop(DROP)]
        feed(state, update(f"ck{number}"))

    assert all(isinstance(decision, NextHop) for decision in seen)
    assert [1, 2, 0, 1, 0, 1] == [decision.reconnects for decision in seen[:6] if isinstance(decision, NextHop)]


def test_a_hop_that_ends_makes_the_tries_start_anew() -> None:
    """What was tried before it does not count."""
    state = to_hop_2()
    for _ in range(3):
        assert isinstance(state.end_hop(DROP), NextHop)
    feed(state, created("i2"), start(), delta("B"), completed("requires_continuation", "t2", "i2"))
    state.end_hop()

    assert [NextHop("t2", reconnects=count) for count in (1, 2, 3)] == [state.end_hop(DROP) for _ in range(3)]


def test_a_callers_token_is_worth_four_requests() -> None:
    """And as it was the caller's before, nothing is gained: the error stays plain."""
    state = decode(body={**BODY, "continuation_token": "mine"})
    first = state.request_body()
    decisions = []
    for _ in range(4):
        state.hop.opened = True
        decisions.append(state.end_hop(DROP))

    assert [NextHop("mine", reconnects=count) for count in (1, 2, 3)] == decisions[:3]
    assert Raise(DROP) == decisions[3]
    assert {**BODY, "continuation_token": "mine"} == first == state.request_body()


@pytest.mark.parametrize(
    "events",
    [
        [created(), start(), delta("A")],
        [created()],
        [],
        [created(), start(), delta("A"), update(status="new_word")],
        [created(), update(status="completed"), start(), delta("A")],
    ],
)
def test_a_stream_that_just_ends_is_an_error(events: list[dict[str, Any]]) -> None:
    """No final status, no result."""
    decision = feed(decode(where="http://x"), *events).end_hop()

    assert isinstance(decision, Raise)
    assert isinstance(decision.error, ModelReplyError)
    assert "http://x: the stream ended in the middle of the reply" in str(decision.error)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_stream_that_says_that_it_is_done_while_it_is_not(status: str) -> None:
    """The word of the sentinel is not enough."""
    state = feed(decode(), created(status=status))
    state.hop.done = True

    assert isinstance(state.end_hop(), Raise)


def test_streams_that_just_end_again_and_again_are_an_error() -> None:
    """They have a reason of their own, and a cause."""
    state = feed(decode(), created(), start(), delta("A"), update("ck"))
    decision: object = None
    for _ in range(5):
        decision = state.end_hop()

    assert "truncated" == interrupted(decision).reason
    assert isinstance(decision, Raise)
    assert isinstance(decision.cause, ModelReplyError)


@pytest.mark.parametrize("error", [DROP, GARBAGE, REFUSED])
def test_nothing_that_breaks_after_the_end_matters(error: ModelError) -> None:
    """Neither after the last hop's nor after one that goes on."""
    assert Done() == feed(decode(), created(), completed()).end_hop(error)
    assert NextHop("t") == feed(decode(), created(), completed("requires_continuation", "t")).end_hop(error)


def test_an_error_event_after_the_end_does_not_matter() -> None:
    """The interaction is there."""
    assert Done() == feed(decode(), created(), completed(), {"event_type": "error"}).end_hop(REFUSED)


@pytest.mark.parametrize("error", [REFUSED, None])
def test_an_error_event_interrupts_and_keeps_the_token(error: ModelError | None) -> None:
    """It is not tried again: the server has spoken."""
    state = feed(decode(), created(), start(), delta("A"), update("ck"), {"event_type": "error", "error": {}})
    decision = interrupted(state.end_hop(error))

    assert ("server_error", "ck") == (decision.reason, decision.token)


def test_checkpoints_in_a_circle_end_it() -> None:
    """A drop behind a token that was presented before is no progress."""
    state = to_hop_2()
    feed(state, update("t2"))
    state.end_hop(DROP)
    feed(state, update("t1"))

    assert "no_progress" == interrupted(state.end_hop(DROP)).reason


def test_reconnects_that_get_further_count_as_hops() -> None:
    """A server that drops behind each checkpoint is bounded, too, and the drop is the cause."""
    state = feed(decode(policy=Policy(max_hops=1)), created(), update("ck1"))
    state.end_hop(DROP)
    feed(state, update("ck2"))
    decision = state.end_hop(DROP)

    assert "hop_limit" == interrupted(decision).reason
    assert isinstance(decision, Raise)
    assert DROP is decision.cause
