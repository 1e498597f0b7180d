"""What follows a request of a decode, case by case."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from protocol.decode import Done, NextHop, Policy, Raise
from protocol.errors import (
    ModelTimeout,
)
from tests.protocol.decode.playing import (
    BODY,
    DROP,
    decode,
    feed,
    interrupted,
    to_hop_2,
)
from tests.protocol.decode.speech import completed, created, delta, said, start, update, usage


@pytest.mark.parametrize("status", ["completed", "requires_action", "incomplete", "failed", "budget_exceeded", "new"])
def test_any_other_end_is_the_end(status: str) -> None:
    """A token beside it does not matter."""
    assert Done() == feed(decode(), created(), completed(status, "t")).end_hop()


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_nothing_goes_on(token: str | None) -> None:
    """The result says that the provider would have."""
    state = feed(decode(), created(), completed("requires_continuation", token))

    assert Done() == state.end_hop()
    assert "requires_continuation" == (state.merged() or {})["status"]


def test_the_next_hop_presents_the_token_and_its_owner() -> None:
    """And the one after that the next ones."""
    state = to_hop_2()
    second = state.request_body()
    feed(state, created("i2"), start(), delta("B"), completed("requires_continuation", "t2", "i2"))
    decision = state.end_hop()

    assert {"model": "m", "continuation_token": "t1", "previous_interaction_id": "i1"} == second
    assert NextHop("t2") == decision
    assert {"model": "m", "continuation_token": "t2", "previous_interaction_id": "i2"} == state.request_body()


def test_a_token_in_the_middle_belongs_to_the_hop_that_issued_it() -> None:
    """A drop right behind it resumes there."""
    state = feed(to_hop_2(), created("i2"), start(), delta("B"), update("ck", id="i2"))
    decision = state.end_hop(DROP)

    assert NextHop("ck", reconnects=0) == decision
    assert ("ck", "i2") == (
        state.request_body()["continuation_token"],
        state.request_body()["previous_interaction_id"],
    )
    assert said("A", "B") == (state.merged() or {})["steps"]


@pytest.mark.parametrize(
    ("events", "done"),
    [
        ([created(), start(), delta("A"), update(status="completed")], False),
        ([created(), start(), delta("A"), update(status="failed")], False),
        ([created(), update(status="new_word")], True),
        ([created(), completed(status="in_progress")], False),
        ([completed(id=None)], False),
    ],
)
def test_a_final_status_is_an_end(events: list[dict[str, Any]], done: bool) -> None:
    """So is one that is not known, if the stream itself says that nothing follows."""
    state = feed(decode(), *events)
    state.hop.done = done

    assert Done() == state.end_hop()


def test_a_token_that_was_presented_before_ends_it() -> None:
    """The provider cannot get further; the result still says that it would go on."""
    state = to_hop_2()
    feed(state, created("i2"), start(), delta("B"), completed("requires_continuation", "t1", "i2"))

    assert Done(repeated_token=True) == state.end_hop()
    assert ("requires_continuation", "t1") == (
        (state.merged() or {})["status"],
        (state.merged() or {})["continuation_token"],
    )


def test_tokens_in_a_circle_end_it() -> None:
    """All that were presented count, not only the last."""
    state = to_hop_2()
    feed(state, created("i2"), start(), delta("B"), completed("requires_continuation", "t2", "i2"))
    state.end_hop()
    feed(state, created("i3"), start(), delta("C"), completed("requires_continuation", "t1", "i3"))

    assert Done(repeated_token=True) == state.end_hop()
    assert "ABC" == (state.merged() or {})["output_text"]


def test_the_end_voids_the_checkpoints_before_it() -> None:
    """A token that `interaction.completed` does not name is none."""
    state = feed(decode(), created(), update("ck"), completed("requires_continuation"))

    assert Done() == state.end_hop()


def test_output_behind_the_last_token_is_not_asked_for_again() -> None:
    """A final status without a token of its own does not bring back an older one."""
    state = feed(decode(), created(), update("ck"), start(), delta("A"), update(status="requires_continuation"))

    assert Done() == state.end_hop()


def test_hops_are_counted_and_bounded() -> None:
    """A bound is an interruption: all there is stands in it, and it can go on."""
    state = to_hop_2(policy=Policy(max_hops=2))
    for number in (2, 3):
        feed(
            state,
            created(f"i{number}"),
            start(),
            delta("x"),
            completed("requires_continuation", f"t{number}", f"i{number}", usage=usage(1, 2)),
        )
        decision = state.end_hop()

    error = interrupted(decision)

    assert ("hop_limit", "t3", "i3", 3) == (error.reason, error.token, error.interaction_id, error.hops)
    assert "2 continuations are spent (max_hops)" in str(error)
    assert "Axx" == (error.interaction or {})["output_text"]
    assert 4 == (error.usage or {})["total_output_tokens"]


def test_output_tokens_are_bounded() -> None:
    """Thoughts count."""
    state = decode(policy=Policy(max_output_tokens=10))
    feed(state, created(), completed("requires_continuation", "t1", usage=usage(1, 4, total_thought_tokens=5)))
    decision = state.end_hop()
    feed(state, created("i2"), completed("requires_continuation", "t2", "i2", usage=usage(1, 1)))

    assert NextHop("t1") == decision
    assert "token_limit" == interrupted(state.end_hop()).reason


def test_hops_without_output_are_bounded() -> None:
    """Two in a row are enough; thoughts that are only counted are output, a repeated input is none."""
    state = decode()
    barren = {"steps": [{"type": "user_input"}]}
    decisions = []
    hops: list[dict[str, Any]] = [barren, {"usage": usage(1, 0, total_thought_tokens=3)}, {}, barren]
    for number, more in enumerate(hops):
        feed(state, completed("requires_continuation", f"t{number}", f"i{number}", **more))
        decisions.append(state.end_hop())

    assert all(isinstance(decision, NextHop) for decision in decisions[:3])
    assert "no_progress" == interrupted(decisions[3]).reason


def test_a_hop_that_broke_off_is_not_one_without_output() -> None:
    """It may have had no time for any."""
    state = feed(decode(), created(), update("ck"))
    state.end_hop(DROP)
    feed(state, completed("requires_continuation", "t1"))

    assert NextHop("t1") == state.end_hop()


def test_the_end_of_the_calls_time_interrupts() -> None:
    """In the middle of a hop and between two; but not what is whole."""
    late = ModelTimeout("took too long")
    middle = feed(to_hop_2(), created("i2"))
    between = feed(decode(), created(), completed("requires_continuation", "t1"))
    whole = feed(decode(), created(), completed())

    assert "deadline" == interrupted(middle.end_hop(late, reason="deadline")).reason
    assert ("deadline", "t1") == (
        (error := interrupted(between.end_hop(late, reason="deadline"))).reason,
        error.token,
    )
    assert Done() == whole.end_hop(late, reason="deadline")
    assert Raise(late) == feed(decode(), created(), delta("A")).end_hop(late, reason="deadline")


def test_where_it_is_switched_off_there_is_one_request() -> None:
    """Its body is the caller's, its token is not used, its errors are plain."""
    body = {**BODY, "continuation_token": "mine"}
    state = decode(body=body, enabled=False)

    assert body == state.request_body()
    assert Done() == feed(state, created(), completed("requires_continuation", "t")).end_hop()
    assert Raise(DROP) == feed(decode(enabled=False), created(), update("ck")).end_hop(DROP)


def test_a_background_stream_may_end_while_the_work_goes_on() -> None:
    """If it says that it ends; cut off it is an error."""
    state = feed(decode(body={**BODY, "background": True}, enabled=False), created())
    state.hop.done = True

    assert Done() == state.end_hop()
    assert isinstance(feed(decode(enabled=False), created()).end_hop(), Raise)


@pytest.mark.parametrize(("body", "first"), [({**BODY, "store": False}, created()), (BODY, created(store=False))])
def test_where_nothing_is_stored_nobody_owns_the_token(body: dict[str, Any], first: dict[str, Any]) -> None:
    """By the request or by the reply: then the input has to be given again."""
    state = feed(decode(body=body), first, start(), delta("A"), update("ck"), delta("B"))
    error = interrupted(state.end_hop(DROP))

    assert error.interaction_id is None
    assert {"continuation_token": "ck"} == error.resume_kwargs()
    assert ("i1",) == error.continuation_ids


def test_usage_is_told_by_hop_and_in_all() -> None:
    """A number that nobody knows stands in its hop alone; a hop that broke off counts."""
    state = feed(decode(), created(), update("ck", usage=usage(10, 3, level=2)))
    state.end_hop(DROP)
    feed(state, created("i2"), completed(id="i2", usage=usage(4, 5, level=3)))

    assert (usage(10, 3, level=2), usage(4, 5, level=3)) == state.usage_by_hop
    assert {**usage(14, 8), "initial_input_tokens": 10} == state.usage_total
    assert 1 == state.hops


def test_an_interruption_can_be_written_down() -> None:
    """As JSON and as a pickle."""
    state = feed(decode(), created(), start(), delta("A"), update("ck", usage=usage(1, 2)), delta("B"))
    error = interrupted(state.end_hop(DROP))

    assert "AB" == json.loads(json.dumps(error.as_dict()))["interaction"]["output_text"]
    assert error.as_dict() == pickle.loads(pickle.dumps(error)).as_dict()


def test_nothing_has_come_yet() -> None:
    """Then there is nothing to tell."""
    state = decode()

    assert state.merged() is None
    assert state.usage_total is None
    assert ((), 0, None, None) == (state.continuation_ids, state.hops, state.token, state.owner)
