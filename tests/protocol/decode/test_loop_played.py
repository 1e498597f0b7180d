"""The rules of a decode, played against a provider that is simple, honest and badly connected."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from protocol.decode import Decision, Delivery, Done, LoopState, NextHop, Policy, Raise
from protocol.errors import ContinuationInterrupted, ModelError
from tests.protocol.decode.speech import completed, created, delta, start, update

DROP = ModelError("broke")
WORDS = [f"{number} " for number in range(12)]
POLICY = Policy(max_hops=5, max_reconnects=2)


@attrs.frozen
class Luck:
    """What becomes of one request."""

    words: int
    """Output until the hop ends, or breaks off."""
    checkpoints: tuple[bool, ...]
    """Whether a checkpoint follows each of them."""
    breaks: bool
    clean: bool
    """Whether a hop that breaks off seems to end."""


lucks = st.lists(
    st.builds(
        Luck,
        words=st.integers(0, 4),
        checkpoints=st.tuples(*[st.booleans()] * 4),
        breaks=st.booleans(),
        clean=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@attrs.define
class Provider:
    """Says `WORDS`, from the place that a token stands for."""

    places: dict[str, int] = attrs.Factory(dict[str, int])
    owners: dict[str, str] = attrs.Factory(dict[str, str])
    numbers: Any = attrs.Factory(lambda: itertools.count(1))

    def place(self, body: dict[str, Any]) -> int:
        token = body.get("continuation_token")
        if token is None:
            assert "input" in body
            return 0
        assert self.owners[token] == body["previous_interaction_id"]
        assert "input" not in body
        return self.places[token]

    def play(self, body: dict[str, Any], luck: Luck) -> tuple[list[dict[str, Any]], ModelError | None]:
        at = self.place(body)
        me = f"i{next(self.numbers)}"
        events = [created(me), start()]
        for checkpoint in luck.checkpoints[: luck.words]:
            if at == len(WORDS):
                break
            events.append(delta(WORDS[at]))
            at += 1
            if checkpoint:
                events.append(update(self.issue(at, me), id=me))
        if luck.breaks:
            return events, None if luck.clean else DROP
        if at == len(WORDS):
            events.append(completed(id=me))
        else:
            events.append(completed("requires_continuation", self.issue(at, me), me))
        return events, None

    def issue(self, at: int, me: str) -> str:
        token = f"t{next(self.numbers)}"
        self.places[token] = at
        self.owners[token] = me
        return token


@attrs.define
class Played:
    decision: Decision
    state: LoopState
    provider: Provider
    events: list[dict[str, Any]]
    """What a consumer has who follows the rollbacks."""
    requests: int

    @property
    def heard(self) -> str:
        return "".join([event["delta"]["text"] for event in self.events if event["event_type"] == "step.delta"])


def play(luck: list[Luck], delivery: Delivery) -> Played:
    provider = Provider()
    state = LoopState({"model": "m", "input": "hi"}, policy=POLICY, delivery=delivery)
    events: list[dict[str, Any]] = []
    for requests, fate in enumerate(itertools.cycle(luck), 1):
        state.hop.opened = True
        sent, error = provider.play(state.request_body(), fate)
        for event in sent:
            state.observe(event)
        events += sent
        decision = state.end_hop(error)
        if not isinstance(decision, NextHop):
            return Played(decision, state, provider, events, requests)
        if decision.rollback_to is not None:
            del events[decision.rollback_to :]
    raise AssertionError("a cycle has no end")


@given(lucks, st.sampled_from(["strict", "replay"]))
def test_a_decode_says_everything_once_and_in_order(luck: list[Luck], delivery: Delivery) -> None:
    """Done, it is whole. Interrupted, it is a beginning, which the token completes. Events and result agree."""
    played = play(luck, delivery)
    merged = played.state.merged() or {}
    text = merged["output_text"]

    assert played.heard == text
    assert len(played.events) == played.state.events
    match played.decision:
        case Done():
            assert "".join(WORDS) == text
        case Raise(ContinuationInterrupted() as error):
            assert "".join(WORDS).startswith(text)
            assert error.token is not None
            assert error.interaction == merged
            assert text.startswith("".join(WORDS[: played.provider.places[error.token]]))
            assert played.provider.owners[error.token] == error.interaction_id
        case _:
            assert not played.provider.places


@given(lucks, st.sampled_from(["strict", "replay"]))
def test_a_decode_always_ends(luck: list[Luck], delivery: Delivery) -> None:
    """Whatever the connection does, the bounds hold."""
    played = play(luck, delivery)

    assert played.requests <= (POLICY.max_hops + 1) * (POLICY.max_reconnects + 1)


@given(lucks)
def test_replay_fails_only_where_nothing_was_gained_or_a_bound_is_reached(luck: list[Luck]) -> None:
    """Output behind a checkpoint is no reason to give up."""
    played = play(luck, "replay")
    if not isinstance(played.decision, Raise) or not isinstance(played.decision.error, ContinuationInterrupted):
        return
    error = played.decision.error

    assert (
        error.reason in {"hop_limit", "no_progress"}
        or played.state.hop.token == played.state.hop.start_token  # it was tried often enough
    )


names = st.sampled_from(["a", "b", "c"])
statuses = st.sampled_from(["in_progress", "queued", "requires_continuation", "completed", "strange"])
anything = st.one_of(
    st.builds(delta, st.sampled_from(["x", "y"])),
    st.builds(update, st.none() | names, statuses),
    st.builds(completed, statuses, st.none() | names),
    st.builds(created, names),
    st.just({"event_type": "error", "error": {}}),
    st.just({"event_type": "strange"}),
)


@given(st.lists(st.tuples(st.lists(anything, max_size=6), st.sampled_from([None, DROP])), min_size=1, max_size=5))
def test_a_provider_that_lies_cannot_keep_it_going(requests: list[tuple[list[dict[str, Any]], Any]]) -> None:
    """With three tokens to give out, whatever it sends, it is over soon; what it sent can be told at any time."""
    state = LoopState({"model": "m", "input": "hi"}, policy=POLICY, delivery="replay")
    for number, (events, error) in enumerate(itertools.cycle(requests)):
        assert number <= 4 * (POLICY.max_reconnects + 1)
        state.hop.opened = True
        for event in events:
            state.observe(event)
        if not isinstance(state.end_hop(error), NextHop):
            break
        state.merged()
        assert state.events >= 0
