"""Whether a request is sent again, and when: the pure part."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.wire import Endpoint, fault_in, refusal
from actors.models.wire._refusals import refusal_of_status
from actors.models.wire._retry import asked_seconds, retry_wait
from protocol.errors import ModelError

HERE = Endpoint.of("http://example.com/v1", "/chat/completions")
DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


def wait(error: ModelError, **given: Any) -> float | None:
    return retry_wait(error, **{"failures": 1, "retries": 2, "left_seconds": 100.0, "draw": 0.0, **given})


def test_the_wait_doubles_up_to_a_most() -> None:
    """Half a second, then twice as long each time, and never above eight."""
    error = ModelError("x", retryable=True)

    assert [0.5, 1, 2, 4, 8, 8, 8] == [wait(error, failures=failures, retries=9) for failures in range(1, 8)]
    assert 8 == wait(error, failures=5000, retries=9000)


def test_chance_shortens_the_wait_by_a_quarter_at_most() -> None:
    """Callers that failed together do not come back together."""
    error = ModelError("x", retryable=True)

    assert [0.5, 0.4375, 0.375] == [wait(error, draw=draw) for draw in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(("failures", "retries", "expected"), [(1, 0, None), (1, 1, 0.5), (2, 1, None), (2, 2, 1.0)])
def test_there_are_no_more_retries_than_allowed(failures: int, retries: int, expected: float | None) -> None:
    """None at all where 0 are."""
    assert expected == wait(ModelError("x", retryable=True), failures=failures, retries=retries)


def test_what_would_fail_again_is_not_repeated() -> None:
    """Not even where the server says how long to wait."""
    assert wait(ModelError("x", retryable=False, retry_after_seconds=1)) is None


@pytest.mark.parametrize(("asked", "left", "expected"), [(3, 4, 3), (4, 4, None), (60, 4, None), (0, 4, 0)])
def test_the_servers_wait_is_obeyed_within_the_call(asked: float, left: float, expected: float | None) -> None:
    """Without chance, without a most of its own; but a wait that the call does not outlast is not begun."""
    error = ModelError("x", retryable=True, retry_after_seconds=asked)

    assert expected == wait(error, left_seconds=left, draw=1.0)


def test_a_wait_of_ours_ends_within_the_call() -> None:
    """A wait that ends with the call would be for nothing."""
    assert wait(ModelError("x", retryable=True), left_seconds=0.5) is None
    assert 0.5 == wait(ModelError("x", retryable=True), left_seconds=0.51)


@given(
    st.integers(1, 10_000),
    st.integers(0, 10_000),
    st.floats(0, 1e9),
    st.floats(0, 1),
    st.none() | st.floats(0, 1e9),
    st.booleans(),
)
def test_any_wait_is_within_its_bounds(
    failures: int, retries: int, left: float, draw: float, asked: float | None, retryable: bool
) -> None:
    """Never negative, never beyond the call, never more often than allowed, and what the server asked for if it did."""
    error = ModelError("x", retryable=retryable, retry_after_seconds=asked)
    seconds = retry_wait(error, failures=failures, retries=retries, left_seconds=left, draw=draw)

    assert seconds is None or (retryable and failures <= retries and 0 <= seconds < left)
    assert seconds is None or seconds == asked or (asked is None and 0.375 <= seconds <= 8)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": DATE}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 09:28:30 +0200", "date": DATE}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30", "date": DATE}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT", "date": DATE}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:29:00 GMT", "date": "yesterday"}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:29:00 GMT"}, 30),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
    ],
)
def test_how_long_a_server_asks_to_be_left_alone(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, milliseconds or a date, which is read against the server's own clock; nonsense says nothing."""
    now = datetime(2015, 10, 21, 7, 28, 30, tzinfo=UTC)

    assert expected == asked_seconds(headers, now=now)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_header_is_too_odd(text: str, date: str) -> None:
    """Whatever a server sends is a wait or none."""
    seconds = asked_seconds({"retry-after": text, "retry-after-ms": date, "date": date})

    assert seconds is None or (0 <= seconds < math.inf)


def delayed(delay: Any) -> dict[str, Any]:
    """Google's way to say it."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": details}}


@pytest.mark.parametrize(
    ("delay", "expected"),
    [("34s", 34), ("0.5s", 0.5), ("34", None), ("-1s", None), (34, None), (None, None), ("9" * 400 + "s", None)],
)
def test_an_error_may_say_when_to_come_back(delay: Any, expected: float | None) -> None:
    """The details of an error hold a wait, in an error status and in a reply alike."""
    fault = fault_in(delayed(delay))
    assert fault is not None
    refused = refusal_of_status(HERE, 429, json.dumps(delayed(delay)).encode())

    assert [expected, expected] == [refused.retry_after_seconds, refusal(HERE, fault).retry_after_seconds]


def test_a_header_wins_over_the_body() -> None:
    """It is what the server at the door says."""
    refused = refusal_of_status(HERE, 429, json.dumps(delayed("34s")).encode(), {"retry-after": "2"})

    assert 2 == refused.retry_after_seconds


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (429, "false", False),
        (500, " FALSE ", False),
        (400, "true", True),
        (400, "maybe", False),
        (503, "", True),
    ],
)
def test_a_server_may_say_whether_to_come_back(status: int, said: str, expected: bool) -> None:
    """`x-should-retry` has the last word; another value says nothing."""
    assert expected == refusal_of_status(HERE, status, b"", {"x-should-retry": said}).retryable
