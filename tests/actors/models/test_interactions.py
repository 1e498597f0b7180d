"""`Interactions`: its arguments, its addresses, and what can be asked about a stored interaction."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.models.gemini import Interactions
from protocol.errors import ModelRefused, ModelReplyError, ModelTimeout, SpecError
from tests.actors.models._line import ASK, Line, after, line_to, whole
from tests.actors.models._wire import answer
from tests.protocol.decode.speech import said


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"request": {}}, "request: no known field"),
        ({"modle": "x", "inptu": "y"}, "modle, inptu: no known field.*extra_body"),
        ({"stream": True}, "stream is not a field"),
        ({"extra_body": {"stream": True}}, "stream is not a field"),
        ({"labels": {"a": object()}}, "object has no form in JSON"),
    ],
)
async def test_what_is_no_field_is_refused_at_once(line: Line, fields: dict[str, Any], words: str) -> None:
    """The error names it, and says what to do."""
    with pytest.raises(TypeError, match=words):
        await line.client.create(**{**ASK, **fields})
    with pytest.raises(TypeError, match=words):
        line.client.stream(**{**ASK, **fields})

    assert 0 == line.count


async def test_extra_body_is_laid_over_and_takes_away(line: Line) -> None:
    """`None` removes a field; a field that is `None` is not sent."""
    line.answers(whole("i1"))
    await line.client.create(**ASK, store=True, tools=None, extra_body={"future": 1, "store": None})

    assert [{**ASK, "future": 1}] == line.bodies


async def test_an_option_is_never_sent(line: Line) -> None:
    """Nor are the others of the call."""
    line.answers(whole("i1"))
    await line.client.create(**ASK, automatic_continuation=True, timeout_seconds=5)

    assert [ASK] == line.bodies


async def test_what_cannot_be_encoded_is_replaced(line: Line) -> None:
    """Half a character becomes U+FFFD, on the way out and on the way in."""
    line.answers(answer(200, b'{"id": "i1", "status": "completed", "note": "\\ud83d", "steps": []}'))
    merged = await line.client.create(model="m", input="\ud83d")

    assert "\ufffd" == line.bodies[0]["input"]
    assert "\ufffd" == merged["note"]
    assert msgspec.json.encode(merged)


@pytest.mark.parametrize(
    ("base_url", "version", "path"),
    [
        ("http://127.0.0.1:1", None, "/v1beta/interactions"),
        ("http://127.0.0.1:1/v1", None, "/v1/interactions"),
        ("http://127.0.0.1:1/v1beta2/", None, "/v1beta2/interactions"),
        ("http://127.0.0.1:1", "v1", "/v1/interactions"),
        ("http://127.0.0.1:1/v1/projects/p/locations/l", "", "/v1/projects/p/locations/l/interactions"),
        ("http://127.0.0.1:1/v1beta/interactions", "v1beta", "/v1beta/interactions"),
    ],
)
async def test_where_requests_go(nursery: trio.Nursery, base_url: str, version: str | None, path: str) -> None:
    """The version stands in the address or beside it; the key is in its header, and so is the revision."""
    line = line_to(nursery, base_url=base_url, version=version, headers={"x-goog-user-project": "p"})
    line.answers(whole("i1"), answer(200, {"id": "a/b"}))
    await line.client.create(**ASK)
    await line.client.get("a/b")
    first, second = line.network.server.requests

    assert f"POST {path} HTTP/1.1" == first.line
    assert f"GET {path}/a%2Fb HTTP/1.1" == second.line
    assert ("very-secret", "p", "2026-05-20") == (
        first.headers["x-goog-api-key"],
        first.headers["x-goog-user-project"],
        first.headers["api-revision"],
    )


def test_google_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken from the environment, and shown nowhere."""
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(SpecError, match="GEMINI_API_KEY"):
        Interactions()
    monkeypatch.setenv("GOOGLE_API_KEY", "very-secret")

    assert "<Interactions at https://generativelanguage.googleapis.com/v1beta/interactions>" == repr(Interactions())


async def test_a_stored_interaction(line: Line) -> None:
    """It can be looked at, cancelled and deleted; an empty answer is an empty object."""
    line.answers(
        answer(200, {"id": "i1", "status": "in_progress"}),
        answer(200, {"id": "i1", "status": "cancelled"}),
        answer(200),
    )

    assert "in_progress" == (await line.client.get("i1"))["status"]
    assert "cancelled" == (await line.client.cancel("i1"))["status"]
    assert await line.client.delete("i1") is None  # type: ignore[func-returns-value]
    assert [
        "GET /v1beta/interactions/i1 HTTP/1.1",
        "POST /v1beta/interactions/i1/cancel HTTP/1.1",
        "DELETE /v1beta/interactions/i1 HTTP/1.1",
    ] == [request.line for request in line.network.server.requests]


async def test_asking_about_one_is_repeated_and_refused_like_anything(line: Line, autojump_clock: MockClock) -> None:
    """Busy servers are asked again; what is not there is an error; what is no object is one, too."""
    line.answers(answer(503), answer(200, {"id": "i1"}), answer(404, "no"), answer(200, "[]"), answer(200, "{"))

    assert {"id": "i1"} == await line.client.get("i1")
    with pytest.raises(ModelRefused, match="404"):
        await line.client.get("i1")
    for _ in range(2):
        with pytest.raises(ModelReplyError, match="no JSON object"):
            await line.client.get("i1")


async def test_asking_about_one_takes_its_time_and_no_more(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """That of any call."""
    line = line_to(nursery, call_timeout_seconds=5)
    line.answers(after(99, answer(200)))
    with pytest.raises(ModelTimeout, match="GET .* longer than 5 s"):
        await line.client.get("i1")


@pytest.mark.parametrize("wrong", ["", ".", ".."])
async def test_an_id_is_an_id(line: Line, wrong: str) -> None:
    """The address of all interactions is not that of one."""
    with pytest.raises(SpecError, match="interaction_id must be"):
        await line.client.delete(wrong)

    assert 0 == line.count


async def test_a_delivery_is_one_of_two(line: Line) -> None:
    """Anything else is refused at once."""
    delivery: Any = "hold"
    with pytest.raises(SpecError, match="delivery must be"):
        line.client.stream(**ASK, delivery=delivery)


async def test_it_can_be_closed_and_used_again(line: Line) -> None:
    """A later call opens new connections."""
    line.answers(whole("i1", "A"), whole("i2", "B"))
    await line.client.create(**ASK)
    await line.client.aclose()

    assert said("B") == (await line.client.create(**ASK))["steps"]
    assert 2 == line.network.server.connections


async def test_what_a_caller_changes_later_does_not_reach_the_next_hop(
    line: Line, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """The body is the one that was given."""
    config = {"seed": 1}
    line.answers(after(0.1, whole("i1", "A", token="t1")), whole("i2", "B"))

    async def meddle() -> None:
        await trio.sleep(0.05)
        config["seed"] = 2

    nursery.start_soon(meddle)
    await line.client.create(**ASK, generation_config=config)

    assert [1, 1] == [body["generation_config"]["seed"] for body in line.bodies]
