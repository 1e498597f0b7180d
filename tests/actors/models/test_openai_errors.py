"""Error statuses: the class, whether a second try may help, and what the error tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.wire._endpoint import Endpoint
from actors.models.wire._refusals import refusal_of_status
from protocol.errors import ContextOverflow, ModelAuthError, ModelRateLimited, ModelRefused, ModelServerError

HERE = Endpoint.of(
    "http://user:pass-word@example.com/v1?key=query-secret",
    "/chat/completions",
    secrets=["sk-very-secret"],
    key_hint="set the key",
)
TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
AVAILABLE = "the request exceeds the available context size. try increasing the context size or enable context shift"


def refused(status: int, body: Any) -> ModelRefused:
    return refusal_of_status(HERE, status, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, {"error": {"message": "bad field", "type": "invalid_request_error"}}, ModelRefused, False),
        (400, b"", ModelRefused, False),
        (401, {"error": {"message": "Invalid API Key", "code": 401}}, ModelAuthError, False),
        (403, {"error": {"message": "not for you"}}, ModelAuthError, False),
        (404, {"error": {"message": "no such model", "code": "model_not_found"}}, ModelRefused, False),
        (408, b"", ModelRefused, True),
        (409, b"", ModelRefused, True),
        (413, b"<html>Too large</html>", ModelRefused, False),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, ModelRefused, False),
        (429, {"error": {"message": "slow down"}}, ModelRateLimited, True),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, ModelRateLimited, False),
        (429, {"error": {"message": "Request too large: the context length does not matter"}}, ModelRateLimited, True),
        (500, {"error": "broken"}, ModelServerError, True),
        (502, b"<html><h1>Bad Gateway</h1></html>", ModelServerError, True),
        (503, b"", ModelServerError, True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelServerError, True),
        (599, b"\xff\xfe", ModelServerError, True),
        (400, {"error": {"code": "context_length_exceeded", "message": "too long"}}, ContextOverflow, False),
        (400, {"error": {"type": "exceed_context_size_error", "message": "x", "n_ctx": 512}}, ContextOverflow, False),
        (500, {"error": {"type": "exceed_context_size_error", "message": "x", "code": 500}}, ContextOverflow, False),
        (400, {"object": "error", "message": TOO_LONG, "code": 400}, ContextOverflow, False),
        (400, {"error": AVAILABLE}, ContextOverflow, False),
        (413, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}, ContextOverflow, False),
        (400, [{"error": {"code": 400, "message": "listed", "status": "INVALID_ARGUMENT"}}], ModelRefused, False),
        (400, {"error": {"message": "max_tokens is too large: this model supports 4096"}}, ModelRefused, False),
    ],
)  # fmt: skip
def test_a_status_is_its_error(status: int, body: Any, kind: type[ModelRefused], retryable: bool) -> None:
    """HTP-01, HTP-03, HTP-08, HTP-09: one table says what each status, and each body, is."""
    error = refused(status, body)

    assert (kind, status, retryable) == (type(error), error.status, error.retryable)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": "Invalid API Key"}}, "answered 401 (Unauthorized): Invalid API Key; set the key"),
        (400, {"error": {"message": "bad", "type": "odd_type"}}, "answered 400 (Bad Request): bad (odd_type)"),
        (500, {"error": {"reason": "no message"}}, 'answered 500 (Internal Server Error): {"reason":"no message"}'),
        (400, {"error": ["a"]}, 'answered 400 (Bad Request): ["a"]'),
        (400, {"message": "plain"}, "answered 400 (Bad Request): plain"),
        (422, {"detail": [{"msg": "required"}]}, 'answered 422 (Unprocessable Entity): [{"msg":"required"}]'),
        (404, b"404 page not found", "answered 404 (Not Found): 404 page not found; is the address right?"),
        (404, b"<!DOCTYPE html><html>x</html>", "answered 404 (Not Found); is the address right?"),
        (529, b"", "answered 529"),
        (400, b"a\x00b\r\n\x1b[1mc\xe2\x80\xa8d", "answered 400 (Bad Request): a b [1mc d"),
    ],
)
def test_the_servers_own_words_are_told(status: int, body: Any, said: str) -> None:
    """Whatever the shape: on one line, without control characters, with what to look at."""
    assert f"http://example.com/v1/chat/completions {said}" == str(refused(status, body))


def test_no_secret_is_told() -> None:
    """Neither the key nor the address's password or query, even if the server echoes them."""
    error = refused(400, {"error": {"message": "key sk-very-secret, password pass-word"}})

    assert "key ***, password ***" in str(error)
    assert "query-secret" not in str(error)
    assert "secret" not in repr(HERE)
    assert "pass-word" not in repr(HERE)


def test_a_long_text_is_cut() -> None:
    """An error stays readable."""
    assert len(str(refused(500, {"error": {"message": "x" * 60_000}}))) < 700
