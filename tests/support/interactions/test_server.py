"""The Interactions server keeps its own rules."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import trio

from tests.actors.models._wire import Network, Pause, raw
from tests.support.interactions import (
    Call,
    Checkpoint,
    Cut,
    InteractionsServer,
    Raw,
    Stall,
    Thought,
    hop,
    interactions_server,
    refuse,
    stream_bytes,
)

BODY = {"model": "gemini-x", "input": "Hi"}
TWO = [hop("Once ", Checkpoint("ck1"), "upon ", token="tk1"), hop("a time.")]


async def post(server: InteractionsServer, *bodies: dict[str, Any]) -> list[httpx.Response]:
    async with trio.open_nursery() as nursery:
        transport = Network(nursery, server).transport()
        async with httpx.AsyncClient(transport=transport, base_url="http://x/v1") as client:
            replies = [await client.post("/interactions", json=body) for body in bodies]
        nursery.cancel_scope.cancel("the test is over")
    return replies


def text(reply: httpx.Response) -> str:
    """The visible text of a reply, of either form."""
    if reply.headers["content-type"] == "application/json":
        return "".join(step["content"][0]["text"] for step in reply.json()["steps"])
    data = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(item).get("delta", {}).get("text", "") for item in data)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_token_resumes_where_it_was_issued(*, streamed: bool) -> None:
    """The hops of a decode, in both forms; a checkpoint resumes in the middle of one."""
    server = interactions_server(TWO)
    asked = {"model": "gemini-x", "stream": streamed}
    first, second = await post(
        server,
        {**asked, "input": "Hi"},
        {**asked, "continuation_token": "tk1", "previous_interaction_id": "i1"},
    )

    assert ["Once upon ", "a time."] == [text(first), text(second)]
    if not streamed:
        assert ("i1", "requires_continuation", "tk1", 2) == (
            *[first.json()[name] for name in ("id", "status", "continuation_token")],
            first.json()["usage"]["total_output_tokens"],
        )
        assert ("completed", None) == (second.json()["status"], second.json().get("continuation_token"))
    else:
        [again] = await post(server, {**asked, "continuation_token": "ck1", "previous_interaction_id": "i1"})

        assert ("upon ", 3) == (text(again), len(server.bodies))
        assert first.text.endswith("data: [DONE]\n\n")


TOKEN = {"model": "gemini-x", "continuation_token": "tk1", "previous_interaction_id": "i1"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({**TOKEN, "continuation_token": "tk9"}, "continuation_token is unknown"),
        ({**TOKEN, "previous_interaction_id": "i9"}, "interaction 'i9' is not stored"),
        ({**TOKEN, "previous_interaction_id": "i2"}, "continuation_token does not belong to previous_interaction_id"),
        ({**TOKEN, "input": "Hi"}, "input does not go with a stored interaction that is continued"),
        ({**TOKEN, "generation_config": {"temperature": 1}}, "generation_config differs from the hop before"),
        ({**BODY, "automatic_continuation": True}, "unknown field: automatic_continuation"),
        ({"model": "gemini-x", "continuation_token": "tk1", "store": False}, "input is missing: nothing is stored"),
        ({"model": "gemini-x"}, "input is missing"),
    ],
)
async def test_what_is_refused(body: dict[str, Any], said: str) -> None:
    """A hop that breaks a rule of the format is refused, and told which."""
    refused = (await post(interactions_server(TWO, [hop("x")]), BODY, BODY, body))[-1]

    assert said == refused.json()["error"]["message"]
    assert refused.status_code in {400, 404}


async def test_a_token_may_be_for_once() -> None:
    """With `single_use` a token is refused the second time."""
    replies = await post(interactions_server(TWO, single_use=True), BODY, TOKEN, TOKEN)

    assert [200, 200, 400] == [reply.status_code for reply in replies]


async def test_the_conversation_is_checked() -> None:
    """A call of the server's own comes back with its signature and exactly one result."""
    call = {"type": "function_call", "id": "c1", "name": "f", "arguments": {}, "signature": "s2"}
    result = {"type": "function_result", "call_id": "c1", "result": "4"}
    server = interactions_server([hop(Thought("s1"), Call("c1", "f", signature="s2"))], [hop("4")])
    inputs = [[call, result], [{**call, "signature": "x"}, result], [call], [result], [call, result, result]]
    replies = await post(server, BODY, *[{**BODY, "input": steps} for steps in inputs])

    assert [200, 200, 400, 400, 400, 400] == [reply.status_code for reply in replies]
    assert {**call, "arguments": {}} == replies[0].json()["steps"][1]


async def test_faults_and_older_names(autojump_clock: trio.testing.MockClock) -> None:
    """Faults meet the request that they are meant for: refused, late, cut, closed without a word."""
    server = interactions_server(
        [hop("a", Raw("data: {oops\n\n"), Raw(Pause(7)), terminal=False, done=False)],
        faults={0: refuse(503, retry_after="3"), 1: Stall(5), 2: Cut(at_byte=30, end="close"), 3: raw()},
        older_names=True,
    )
    asked = {**BODY, "stream": True}
    refused, late, cut = await post(server, asked, asked, asked)
    whole = stream_bytes(server, "i2")

    assert (503, "3") == (refused.status_code, refused.headers["retry-after"])
    assert (whole, 12.0) == (late.content, trio.current_time())
    assert stream_bytes(server)[:30] == cut.content
    assert whole.endswith(
        b'data: {oops\n\nevent: content.stop\ndata: {"event_type": "content.stop", "index": 0, "event_id": "e4"}\n\n'
    )
    with pytest.RaisesGroup(httpx.RemoteProtocolError):
        await post(server, asked)


async def test_it_listens_on_a_socket(nursery: trio.Nursery) -> None:
    """The same server on 127.0.0.1."""
    server = interactions_server(TWO)
    address = await nursery.start(server.listen)
    async with httpx.AsyncClient(trust_env=False) as client:
        reply = await client.post(f"{address}/v1/interactions", json=BODY)

    assert ("Once upon ", BODY) == (text(reply), server.bodies[0])
