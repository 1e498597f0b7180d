"""Responses replies that are no turn: lost, failed, cancelled, unfinished, or no JSON at all."""

from __future__ import annotations

import json

import pytest

from actors.models.openai._responses_reply import ResponsesReply
from actors.models.wire._sse import EventStreamDecoder
from protocol.errors import ContextOverflow, ModelError, ModelRateLimited, ModelReplyError, ModelServerError
from protocol.turns import TextPart, ToolCall, Turn
from tests.actors.models._responses_cases import (
    COUNTED,
    HERE,
    HI,
    USAGE,
    added,
    arguments,
    called,
    ended,
    feed,
    message,
    sent,
)
from tests.actors.models._wire import event

ADDRESS = "http://127.0.0.1:8080/v1/responses"


@pytest.mark.parametrize("end", ["", "data: [DONE]\n\n", sent("response.in_progress", response={"id": "r1"})])
def test_a_stream_without_a_terminal_event_is_lost(end: str) -> None:
    """SSE-12: what came is kept as partial, and never passes for an answer; a sentinel of others is no end."""
    item = called("a", "t")
    reader, _ = feed(*HI[:6], added(item, 1), arguments('{"n":', index=1), added(called("b", "", number="2"), 2), end)
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the stream ended in the middle") as caught:
        reader.finish()

    assert caught.value.retryable
    assert Turn((TextPart("Hello"), ToolCall("a", "t", '{"n":')), end="lost", response="r1") == reader.lost()


FAILED = {"code": "server_error", "message": "The model broke"}


@pytest.mark.parametrize(
    ("data", "kind", "status", "retryable", "said"),
    [
        (sent("error", code="server_error", message="oh no", param=None), ModelServerError, 500, True, "oh no"),
        (sent("error", code="rate_limit_exceeded", message="slow"), ModelRateLimited, 429, True, "slow"),
        (sent("error", code=None, message="oh no"), ModelServerError, 500, False, "oh no"),
        (sent("error"), ModelServerError, 500, False, "does not say which"),
        ('data: {"type":"error","x":"\\ud83d"}\n\n', ModelServerError, 500, False, '{"x":"\ufffd"}'),
        (sent("error", error={"type": "overloaded_error", "message": "busy"}), ModelServerError, 529, True, "busy"),
        ('event: error\ndata: {"message":"oh no"}\n\n', ModelServerError, 500, False, "oh no"),
        (event({"error": {"code": 502, "message": "provider down"}}), ModelServerError, 502, True, "provider down"),
        (event([{"error": {"code": 503, "message": "listed"}}]), ModelServerError, 503, True, "listed"),
        (ended(status="failed", error=FAILED), ModelServerError, 500, True, "The model broke"),
        (ended(status="failed", error={"code": "invalid_prompt", "message": "no"}), ModelServerError, 500, False, "invalid_prompt"),
        (ended(status="failed", error={"code": "context_length_exceeded", "message": "too long"}), ContextOverflow, 500, False, "too long"),
        (ended(status="failed", error=None), ModelServerError, 500, True, "'failed'"),
        (ended(status="cancelled"), ModelServerError, 500, False, "'cancelled'"),
        (sent("response.completed", response={"status": "failed", "error": FAILED}), ModelServerError, 500, True, "The model broke"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_that_error(
    data: str, kind: type[ModelServerError], status: int, retryable: bool, said: str
) -> None:
    """SSE-10, HTP-15: classified like an HTTP status, with the server's own words."""
    with pytest.raises(kind) as caught:
        feed(*HI[:5], data)

    assert (kind, status, retryable) == (type(caught.value), caught.value.status, caught.value.retryable)
    assert said in str(caught.value)
    assert ADDRESS in str(caught.value)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_reply_leaves_its_text_and_usage(status: str) -> None:
    """What was paid for is counted, what was said is kept."""
    end = ended(message("Hello"), status=status, usage=USAGE)
    reader = ResponsesReply(HERE)
    [made] = EventStreamDecoder().feed(end.encode())
    with pytest.raises(ModelServerError):
        reader.feed(made)

    assert not reader.ended
    assert Turn((TextPart("Hello"),), usage=COUNTED, end="lost", response="r1") == reader.lost()

    reader = ResponsesReply(HERE)
    with pytest.raises(ModelServerError):
        reader.feed_body(json.dumps({"status": status, "output": [message("Hello")], "error": None}).encode())

    assert "Hello" == reader.lost().text


@pytest.mark.parametrize("data", ["{malformed", "3", "[" * 100_000])
def test_what_is_no_json_object_is_an_error_that_shows_it(data: str) -> None:
    """The error names the address and the beginning of what came."""
    with pytest.raises(ModelReplyError, match=rf"{ADDRESS}: the reply is no JSON object: [{{3\[]") as caught:
        feed(f"data: {data}\n\n")

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"object":"list"}', "holds no output"),
        (b"[]", "is no JSON object"),
        (b"{", "is no JSON object"),
        (b'{"status":"queued","output":[]}', "is not finished: its status is 'queued'"),
        (b'{"status":"in_progress"}', "is not finished: its status is 'in_progress'"),
    ],
)
def test_a_whole_body_that_is_no_finished_response_is_an_error(body: bytes, said: str) -> None:
    """A JSON body that is no response, or not yet one, is not an empty answer."""
    with pytest.raises(ModelReplyError, match=f"{ADDRESS}: the reply {said}"):
        ResponsesReply(HERE).feed_body(body)


def test_errors_show_no_secret() -> None:
    """A server that echoes the key does not bring it into an error."""
    with pytest.raises(ModelError) as caught:
        feed(sent("error", message="bad key sk-very-secret\x1b[31m"))

    assert "bad key *** [31m" in str(caught.value)
