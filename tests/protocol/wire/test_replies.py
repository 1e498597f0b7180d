"""What the server says: every reply, notification and error fits the schema, with nothing left out that is promised."""

from __future__ import annotations

import json
from typing import Any, get_args

import attrs
import pytest

from protocol.codec import encode
from protocol.events import ApprovalOutcome, ContinuationOutcome
from protocol.wire import METHODS, WireError, WireLimits, error_reply, notification, refusal_reply, result_reply
from protocol.wire.envelope import Fault
from protocol.wire.errors import ClosedRequest, ErrorData
from protocol.wire.notifications import NOTIFICATIONS, Events, Heartbeat, Notice
from protocol.wire.replies import Attached, Decided, OpenPause, Reply, Spawned, Started, Steered
from protocol.wire.words import ERRORS

from .checks import faults, fits
from .samples import EVENTS, OPEN, REPLIES


def value_of(reply: Any) -> Any:
    return json.loads(encode(reply))


def test_every_reply_has_a_sample() -> None:
    """What a command may be answered with is all there, and nothing else."""
    known = {kind for method in METHODS.values() for kind in method.results}

    assert known == {type(reply) for _, reply in REPLIES}
    for method, reply in REPLIES:
        assert type(reply) in METHODS[method].results


@pytest.mark.parametrize(("method", "reply"), REPLIES, ids=lambda value: getattr(type(value), "__name__", None))
def test_every_reply_fits(method: str, reply: Reply) -> None:
    """With all its fields, as the result of its command, in a frame alone and among others."""
    value = value_of(reply)
    message = json.loads(result_reply(1, reply))

    assert set(reply.__struct_fields__) == set(value)
    assert [] == faults(value, "Results", "properties", method)
    assert [] == faults(message, "ServerFrame")
    assert [] == faults([message, message], "ServerFrame")


@pytest.mark.parametrize(
    ("reply", "written"),
    [
        (Spawned(agent="a", name="n"), {"agent", "name"}),
        (Started(run="r", seq=0), {"run", "seq"}),
        (Steered(), set()),
        (Decided(status="accepted", request="q"), {"status", "request"}),
        (
            Attached(epoch="e", head=0, oldest=1, recovered=True, open_requests=()),
            {"epoch", "head", "oldest", "recovered", "open_requests"},
        ),
    ],
    ids=lambda value: getattr(type(value), "__name__", None),
)
def test_what_is_left_out(reply: Reply, written: set[str]) -> None:
    """A default takes no room; the open requests are there even where there are none."""
    assert written == set(value_of(reply))


@pytest.mark.parametrize("request_", OPEN, ids=lambda request: type(request).__name__)
def test_an_open_request_says_where_and_how_long(request_: Any) -> None:
    """Each has its kind, request, agent, run, path and the seconds left, whatever they are."""
    bare = type(request_)(
        **{name: getattr(request_, name) for name in request_.__struct_fields__}
        | {"agent_path": (), "expires_in_seconds": None}
    )
    value = value_of(bare)

    assert {"kind", "request", "agent", "run", "agent_path", "expires_in_seconds"} <= set(value)
    assert ([], None) == (value["agent_path"], value["expires_in_seconds"])
    assert [] == faults(value, "OpenRequest")
    assert "type" not in value


def test_a_pause_never_expires() -> None:
    """What waits for its caller waits for ever."""
    assert OPEN[2].expires_in_seconds is None
    assert isinstance(OPEN[2], OpenPause)


def test_hello_tells_every_limit() -> None:
    """With the values that the server goes by, not only those that are unusual."""
    assert {field.name for field in attrs.fields(WireLimits)} == set(value_of(WireLimits()))
    assert not fits({}, "WireLimits")


@pytest.mark.parametrize(
    "params",
    [
        Events(agent="a", epoch="e", seq=1, events=EVENTS),
        Heartbeat(heads={}),
        Heartbeat(heads={"a": 3}),
        Notice(code="slow", text="You are slow."),
    ],
    ids=lambda params: type(params).__name__,
)
def test_every_notification_fits(params: Any) -> None:
    """Each under its method."""
    (method,) = [name for name, kind in NOTIFICATIONS.items() if kind is type(params)]

    assert [] == faults(json.loads(notification(method, params)), "ServerFrame")


def test_every_framing_error_fits() -> None:
    """The five codes of JSON-RPC, with an id or without; another one is no error of this protocol."""
    for code in (-32700, -32600, -32601, -32602, -32603):
        for id in (None, 1, "one"):
            assert [] == faults(json.loads(error_reply(Fault(id, code, "wrong"))), "ServerFrame")
    assert not fits(json.loads(error_reply(Fault(1, -32000, "wrong"))), "ServerFrame")


@pytest.mark.parametrize("word", ERRORS)
def test_every_refusal_fits(word: Any) -> None:
    """The one application code, a word of the contract, and whether to try again."""
    message = json.loads(refusal_reply(1, WireError(word, "no", retryable=True, retry_after_ms=50)))
    other = json.loads(refusal_reply(1, WireError("whatever", "no")))  # type: ignore[arg-type]

    assert [] == faults(message, "ServerFrame")
    assert {"code": word, "retryable": True, "retry_after_ms": 50} == message["error"]["data"]
    assert not fits(other, "ServerFrame")


def test_an_error_says_how_a_request_was_closed() -> None:
    """`resolution` has the event's own words, all of them, and its number."""
    for outcome in {*get_args(ContinuationOutcome), *get_args(ApprovalOutcome)}:
        closed = ClosedRequest(outcome=outcome, by=None, seq=3)
        value = value_of(ErrorData(code="already_resolved", retryable=False, resolution=closed))

        assert [] == faults(value, "ErrorData")
    assert not fits({"outcome": "maybe", "by": None, "seq": 3}, "ClosedRequest")
