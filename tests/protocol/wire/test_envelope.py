"""The envelope: one frame is one command or one fault, and every answer is one object."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.wire import (
    METHODS,
    Asked,
    Fault,
    WireError,
    WireLimits,
    error_reply,
    notification,
    read_frame,
    refusal_reply,
    result_reply,
    strict_loads,
)
from protocol.wire.commands import AgentAttach, ContinuationDecide, Position
from protocol.wire.replies import Decided, Nothing

DECISION = {"request": "q", "decision": "approve", "digest": "d", "idem": "i"}


def frame(method: Any = "ping", params: Any = None, **others: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **others})


class TestRead:
    def test_a_command(self) -> None:
        """Its id, its params as they fit the schema, and as they came."""
        params = {"agent": "a", "from": {"epoch": "e", "seq": 7}, "unknown": [1]}
        asked = read_frame(frame("agent.attach", params, id="x"))

        assert isinstance(asked, Asked)
        assert ("x", "agent.attach") == (asked.id, asked.method)
        assert AgentAttach(agent="a", from_=Position(epoch="e", seq=7)) == asked.params
        assert params == asked.raw

    def test_without_params_or_version(self) -> None:
        """Both may be left out."""
        asked = read_frame('{"id":0,"method":"ping"}')

        assert isinstance(asked, Asked)
        assert (0, {}) == (asked.id, asked.raw)

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("{", (None, -32700, None)),
            ("[]", (None, -32600, None)),
            ("7", (None, -32600, None)),
            (frame(id=None), (None, -32600, None)),
            (frame(id=2**53 + 1), (None, -32600, None)),
            (frame(id=-(2**53) - 1), (None, -32600, None)),
            (frame(id=1.0), (None, -32600, None)),
            (frame(id=False), (None, -32600, None)),
            (frame(id=[]), (None, -32600, None)),
            (frame(id=""), (None, -32600, None)),
            (frame(id="x" * 65), (None, -32600, None)),
            (frame(jsonrpc="1.0"), (1, -32600, None)),
            (frame(jsonrpc=2.0), (1, -32600, None)),
            (frame(method=None), (1, -32600, None)),
            (frame("nothing"), (1, -32601, "nothing")),
            (frame("agent.attach"), (1, -32602, "agent.attach")),
            (frame("ping", [1]), (1, -32602, "ping")),
            ('{"id":1,"method":"ping","params":null}', (1, -32602, "ping")),
        ],
    )  # fmt: skip
    def test_a_fault(self, text: str, fault: tuple[Any, int, str | None]) -> None:
        """The id where there is a good one, the code, and what it would have been."""
        found = read_frame(text)

        assert isinstance(found, Fault)
        assert fault == (found.id, found.code, found.method)
        assert found.message

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            ({"request": None}, "request"),
            ({"digest": 7}, "digest"),
            ({"idem": "a\n"}, "idem"),
            ({"idem": "\u00e4"}, "idem"),
            ({"grant": 0.999}, "grant"),
            ({"grant": True}, "grant"),
            ({"discard_tool_calls": {}}, "discard_tool_calls"),
        ],
    )
    def test_the_place_of_a_fault(self, change: dict[str, Any], place: str) -> None:
        """It says which parameter does not fit."""
        fault = read_frame(frame("continuation.decide", {**DECISION, **change}))

        assert isinstance(fault, Fault)
        assert -32602 == fault.code
        assert place in fault.message

    def test_a_missing_parameter(self) -> None:
        """It is named."""
        for name in DECISION:
            fault = read_frame(frame("continuation.decide", {k: v for k, v in DECISION.items() if k != name}))

            assert isinstance(fault, Fault)
            assert name in fault.message

    def test_grants_are_numbers(self) -> None:
        """Whole or not: what a limit takes is no business of the schema."""
        asked = read_frame(frame("continuation.decide", {**DECISION, "grant": 2}))

        assert isinstance(asked, Asked)
        assert isinstance(asked.params, ContinuationDecide)
        assert 2 == asked.params.grant

    def test_depth_is_a_limit(self) -> None:
        """It can be set."""
        text = frame("tools.submit", {"run": "r", "results": {"a": [[[]]]}})

        assert isinstance(read_frame(text), Asked)
        assert isinstance(read_frame(text, WireLimits(depth=4)), Fault)

    @settings(deadline=None, max_examples=200)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        ),
        st.sampled_from([*METHODS, "x"]),
    )
    def test_it_never_raises(self, params: Any, method: str) -> None:
        """Whatever the params are."""
        found = read_frame(json.dumps({"id": 1, "method": method, "params": params}))

        assert 1 == found.id


class TestAnswers:
    def test_a_result(self) -> None:
        """One object, without what says nothing."""
        assert {"jsonrpc": "2.0", "id": "a", "result": {}} == json.loads(result_reply("a", Nothing()))
        assert {"status": "accepted", "request": "q"} == json.loads(
            result_reply(1, Decided(status="accepted", request="q"))
        )["result"]

    def test_errors(self) -> None:
        """Framing has JSON-RPC's codes; all else has one, and a word."""
        fault = json.loads(error_reply(Fault(None, -32700, "no JSON")))
        refusal = json.loads(refusal_reply(7, WireError("busy", "later", retryable=True, retry_after_ms=5)))

        assert {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}} == fault
        assert (7, -32010, "later") == (refusal["id"], refusal["error"]["code"], refusal["error"]["message"])
        assert {"code": "busy", "retryable": True, "retry_after_ms": 5} == refusal["error"]["data"]

    def test_not_retryable_is_said(self) -> None:
        """A client need not guess."""
        assert {"code": "not_found", "retryable": False} == WireError("not_found", "x").data

    def test_a_notification(self) -> None:
        """It has no id."""
        assert {"jsonrpc": "2.0", "method": "heartbeat", "params": {"heads": {}}} == json.loads(
            notification("heartbeat", {"heads": {}})
        )

    def test_what_is_sent_is_strict(self) -> None:
        """Whatever a message of ours quotes."""
        data = refusal_reply("a", WireError("not_found", "there is no \ud800", seq=None))

        assert "not_found" == strict_loads(data)["error"]["data"]["code"]
