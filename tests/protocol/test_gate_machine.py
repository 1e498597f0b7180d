"""The table of requests, of both kinds, under any sequence of openings, decisions, ends, expiries and late answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from protocol.approval import ApprovalResponse
from protocol.errors import InvalidDecision
from protocol.events import ApprovalRequired, ContinuationRequired
from protocol.gate import ContinuationResponse
from protocol.requests import (
    APPROVAL_TRANSITIONS,
    CONTINUATION_TRANSITIONS,
    Ended,
    Request,
    RequestTable,
    Resolution,
    Response,
    resolution_of,
)

from .questions import approval_question, question

KEEP = 3
MAX_GRANT = 2
gate_responses = st.builds(
    ContinuationResponse,
    st.sampled_from(("approve", "decline", "timeout")),
    discard_tool_calls=st.sampled_from([False, True, ["a"], ["z"]]),
    grant=st.none() | st.integers(1, 3),
)
approval_responses = st.one_of(
    st.builds(ApprovalResponse, st.sampled_from(("approve", "deny", "timeout"))),
    st.builds(ApprovalResponse, st.just("approve"), arguments=st.sampled_from([{}, {"a": 2}, {"a": "no number"}])),
)
responses: st.SearchStrategy[Response] = gate_responses | approval_responses


def takes(arguments: Mapping[str, Any]) -> None:
    """The tool's own check."""
    if not isinstance(arguments.get("a", 0), int):
        raise InvalidDecision("a must be a number")


@attrs.define
class Known:
    """What the model knows of a request."""

    request: Request
    resolution: Resolution | None = None
    heard: list[Resolution] = attrs.field(factory=list)

    def suits(self, response: Response) -> bool:
        """Whether a provider may answer so."""
        if isinstance(response, ContinuationResponse):
            stranger = response.decision == "approve" and response.discard_tool_calls == ["z"]
            return isinstance(self.request, ContinuationRequired) and not stranger
        return isinstance(self.request, ApprovalRequired) and response.arguments != {"a": "no number"}

    @property
    def state(self) -> str:
        return "pending" if self.resolution is None else self.resolution.outcome

    @property
    def transitions(self) -> dict[str, frozenset[str]]:
        return CONTINUATION_TRANSITIONS if isinstance(self.request, ContinuationRequired) else APPROVAL_TRANSITIONS


class GateMachine(RuleBasedStateMachine):
    requests: Bundle[str] = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.held: list[tuple[Resolution, Callable[[], None]]] = []
        self.table = RequestTable(clock=lambda: self.now, commit=self._commit, keep=KEEP)
        self.known: dict[str, Known] = {}
        self.closed: list[str] = []
        self.durable = True

    def _commit(self, resolution: Resolution, release: Callable[[], None]) -> None:
        self.held.append((resolution, release))
        if self.durable:
            self.flush()

    @rule(target=requests, on_timeout=st.sampled_from(["decline", "approve"]))
    def ask_whether_to_go_on(self, on_timeout: str) -> str:
        return self._open(question(f"q{len(self.known)}", "a", "b", on_timeout=on_timeout, max_grant=MAX_GRANT))

    @rule(target=requests)
    def ask_for_an_approval(self) -> str:
        return self._open(approval_question(f"q{len(self.known)}"))

    def _open(self, request: Request) -> str:
        known = self.known[request.request] = Known(request)
        self.table.open(request, self.now + 10, known.heard.append, check_arguments=takes)
        return request.request

    @rule(name=requests, response=responses, by=st.sampled_from(["me", None]))
    def decide(self, name: str, response: Response, by: str | None) -> None:
        known = self.known[name]
        if known.resolution is None and (response.decision == "timeout" or not known.suits(response)):
            with pytest.raises(InvalidDecision):
                self.table.decide(name, response, by)
            return
        reply = self.table.decide(name, response, by)
        if known.resolution is None:
            if isinstance(response, ContinuationResponse) and response.grant is not None:
                response = attrs.evolve(response, grant=min(response.grant, MAX_GRANT))
            assert reply.status == "accepted"
            assert reply.resolution == resolution_of(known.request, response, by)
            self._close(name, reply.resolution)
        elif name in self.closed[-KEEP:]:
            assert reply.status == "already_resolved"
            assert reply.resolution == known.resolution
        else:
            assert (reply.status, reply.resolution) == ("not_found", None)

    @rule(name=requests, outcome=st.sampled_from(get_args(Ended)))
    def end(self, name: str, outcome: Ended) -> None:
        resolution = self.table.end(name, outcome)

        assert (resolution is None) == (self.known[name].resolution is not None)
        if resolution is not None:
            assert (resolution.outcome, resolution.by) == (outcome, None)
            self._close(name, resolution)

    @rule(name=requests)
    def expire(self, name: str) -> None:
        known = self.known[name]
        was_open = known.resolution is None
        gate = isinstance(known.request, ContinuationRequired)
        expiry = ContinuationResponse("timeout") if gate else ApprovalResponse("timeout")

        assert was_open == self.table.expire(name)
        if was_open:
            self._close(name, resolution_of(known.request, expiry, None))

    @rule(name=requests, response=responses)
    def a_provider_answers(self, name: str, response: Response) -> None:
        known = self.known[name]
        try:
            resolution = resolution_of(known.request, response, "provider")
            was_open = known.resolution is None
            closed = self.table.close(resolution)
        except InvalidDecision:
            assert not known.suits(response)
            return

        assert was_open == closed
        if was_open:
            assert known.suits(response)
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
            release()

    @invariant()
    def each_is_heard_of_once_when_it_is_durable(self) -> None:
        waiting = {resolution.request for resolution, _ in self.held}
        for name, known in self.known.items():
            expected = [] if known.resolution is None or name in waiting else [known.resolution]
            assert expected == known.heard

    @invariant()
    def open_ones_are_pending(self) -> None:
        pending = self.table.pending()

        assert [known.request for known in self.known.values() if known.resolution is None] == [r for r, _ in pending]
        assert all(left is not None and 0 <= left <= 10 + 1e-9 for _, left in pending)

    @invariant()
    def the_last_closed_ones_are_remembered(self) -> None:
        for name, known in self.known.items():
            kept = known.resolution if name in self.closed[-KEEP:] else None
            assert kept == self.table.resolution(name)

    def _close(self, name: str, resolution: Resolution | None) -> None:
        known = self.known[name]

        assert resolution is not None
        assert (resolution.request, resolution.run) == (name, known.request.run)
        assert resolution.outcome in known.transitions[known.state]
        known.resolution = resolution
        self.closed.append(name)


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=200, stateful_step_count=40)
