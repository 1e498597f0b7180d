"""The table of requests under any sequence of openings, decisions, ends, expiries and late answers."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from protocol.errors import InvalidDecision
from protocol.events import ContinuationOutcome, ContinuationResolved
from protocol.gate import ContinuationResponse
from protocol.requests import RequestTable, resolution_of

from .questions import question

KEEP = 3
ENDS: tuple[ContinuationOutcome, ...] = ("cancelled", "failed", "agent_ended")
responses = st.builds(
    ContinuationResponse,
    st.sampled_from(("approve", "decline", "timeout")),
    discard_tool_calls=st.sampled_from([False, True, ["a"], ["z"]]),
    grant=st.none() | st.integers(1, 3),
)


@attrs.define
class Known:
    """What the model knows of a request."""

    resolution: ContinuationResolved | None = None
    heard: list[ContinuationResolved] = attrs.field(factory=list)


class GateMachine(RuleBasedStateMachine):
    requests: Bundle[str] = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.held: list[tuple[ContinuationResolved, object]] = []
        self.table = RequestTable(clock=lambda: self.now, commit=self._commit, keep=KEEP)
        self.known: dict[str, Known] = {}
        self.closed: list[str] = []
        self.durable = True

    def _commit(self, resolution: ContinuationResolved, release: object) -> None:
        self.held.append((resolution, release))
        if self.durable:
            self.flush()

    @rule(target=requests)
    def open(self) -> str:
        name = f"q{len(self.known)}"
        known = self.known[name] = Known()
        self.table.open(question(name, "a", "b"), self.now + 10, known.heard.append)
        return name

    @rule(name=requests, response=responses, by=st.sampled_from(["me", None]))
    def decide(self, name: str, response: ContinuationResponse, by: str | None) -> None:
        known = self.known[name]
        names_a_stranger = response.decision == "approve" and response.discard_tool_calls == ["z"]
        if known.resolution is None and (response.decision == "timeout" or names_a_stranger):
            with pytest.raises(InvalidDecision):
                self.table.decide(name, response, by)
            return
        reply = self.table.decide(name, response, by)
        if known.resolution is None:
            assert reply.status == "accepted"
            assert reply.resolution == resolution_of(question(name, "a", "b"), response, by)
            self._close(name, reply.resolution)
        elif name in self.closed[-KEEP:]:
            assert reply.status == "already_resolved"
            assert reply.resolution == known.resolution
        else:
            assert (reply.status, reply.resolution) == ("not_found", None)

    @rule(name=requests, outcome=st.sampled_from(ENDS))
    def end(self, name: str, outcome: ContinuationOutcome) -> None:
        resolution = self.table.end(name, outcome)

        assert (resolution is None) == (self.known[name].resolution is not None)
        if resolution is not None:
            assert (resolution.outcome, resolution.by) == (outcome, None)
            self._close(name, resolution)

    @rule(name=requests)
    def expire(self, name: str) -> None:
        was_open = self.known[name].resolution is None

        assert was_open == self.table.expire(name)
        if was_open:
            self._close(name, ContinuationResolved(run="r1", request=name, outcome="timed_out", by=None))

    @rule(name=requests)
    def close_with_a_providers_answer(self, name: str) -> None:
        resolution = resolution_of(question(name), ContinuationResponse("timeout"), "provider")
        was_open = self.known[name].resolution is None

        assert was_open == self.table.close(resolution)
        if was_open:
            self._close(name, resolution)

    @rule(seconds=st.integers(0, 20))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(durable=st.booleans())
    def let_the_disk(self, durable: bool) -> None:
        self.durable = durable
        if durable:
            self.flush()

    def flush(self) -> None:
        held, self.held = self.held, []
        for _, release in held:
            release()  # type: ignore[operator]

    @invariant()
    def each_is_heard_of_once_when_it_is_durable(self) -> None:
        waiting = {resolution.request for resolution, _ in self.held}
        for name, known in self.known.items():
            expected = [] if known.resolution is None or name in waiting else [known.resolution]
            assert expected == known.heard

    @invariant()
    def open_ones_are_pending(self) -> None:
        pending = self.table.pending()

        assert [n for n, known in self.known.items() if known.resolution is None] == [r.request for r, _ in pending]
        assert all(left is not None and 0 <= left <= 10 + 1e-9 for _, left in pending)

    @invariant()
    def the_last_closed_ones_are_remembered(self) -> None:
        for name, known in self.known.items():
            kept = known.resolution if name in self.closed[-KEEP:] else None
            assert kept == self.table.resolution(name)

    def _close(self, name: str, resolution: ContinuationResolved | None) -> None:
        assert self.known[name].resolution is None
        self.known[name].resolution = resolution
        self.closed.append(name)


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=150, stateful_step_count=40)
