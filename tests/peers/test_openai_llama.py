"""The Chat Completions model against the real llama.cpp server."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import trio

from actors.models.openai import OpenAIChat
from protocol.errors import ContextOverflow, ModelAuthError, ModelUnreachable
from protocol.model import CallDelta, ModelEvent, ModelRequest, RequestSent, TextDelta, ToolDefinition
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.peers._llama import LlamaServer, serve
from tests.peers._scripted_gguf import CALLS, FINISH, SPEAK, text_of

pytestmark = pytest.mark.peer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = tuple([ToolDefinition(name, f"Calls {name}.", PATH) for name, _ in CALLS])
HELLO = UserMessage("What is in here?")


@contextmanager
def upper_bound() -> Generator[None]:
    with trio.fail_after(30):
        yield


def model_at(server: LlamaServer, **settings: Any) -> OpenAIChat:
    return OpenAIChat("scripted", base_url=server.base_url, **{"api_key": "", **settings})


async def test_plain_text(llama_server: LlamaServer) -> None:
    """Text is streamed, characters that a token cuts in two are whole, and usage is reported."""
    model = model_at(llama_server)
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], system="Be exact."), events.append)
        await model.aclose()
    deltas = [event.text for event in events if isinstance(event, TextDelta)]

    assert "Hello! I am a naïve café in 日本 of the real server…" == text_of(SPEAK)
    assert (text_of(SPEAK), "stop", "complete") == (turn.text, turn.finish, turn.end)
    assert (text_of(SPEAK), True) == ("".join(deltas), len(deltas) > 3)
    assert [RequestSent()] == [event for event in events if isinstance(event, RequestSent)]
    assert turn.usage.complete
    assert turn.usage.input_tokens > 10
    assert len(SPEAK) + 1 == turn.usage.output_tokens


async def test_tool_calls_to_the_final_answer(llama_server: LlamaServer) -> None:
    """Two calls, one after the other, with streamed arguments; their results lead to the answer."""
    model = model_at(llama_server)
    messages: list[Message] = [HELLO]
    with upper_bound():
        for name, arguments in CALLS:
            events: list[ModelEvent] = []
            turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), events.append)
            [call] = turn.calls
            pieces = [event for event in events if isinstance(event, CallDelta)]

            assert ("tool_calls", name) == (turn.finish, call.name)
            assert arguments == httpx.Response(200, content=call.arguments).json()
            assert call.id
            assert [name] == [piece.name for piece in pieces if piece.name]
            assert (call.arguments, True) == ("".join(piece.arguments for piece in pieces), len(pieces) > 2)
            messages += [AssistantMessage(turn.parts), ToolMessage((ToolResult(call.id, name, "ok", "A café."),))]
        turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), events.append)
        await model.aclose()

    assert (text_of(FINISH), "stop", ()) == (turn.text, turn.finish, turn.calls)


async def test_an_answer_without_tools_after_calls(llama_server: LlamaServer) -> None:
    """A final call takes the definitions away: the server accepts the calls in the history all the same."""
    model = model_at(llama_server)
    parts = (TextPart("Let me look."), ToolCall("a", "read_text", '{"path":"x"}'))
    messages: list[Message] = [HELLO, AssistantMessage(parts), ToolMessage((ToolResult("a", "read_text", "ok", "1"),))]
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=messages, tail="Answer now."), lambda _: None)
        await model.aclose()

    assert (text_of(FINISH), ()) == (turn.text, turn.calls)


async def test_tools_kept_but_off_are_no_calls_here(llama_server: LlamaServer) -> None:
    """Why tools do not stay visible by default: the server parses no call, but the model still writes one."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, tool_choice="none"), lambda _: None)
        await model.aclose()

    assert ((), True) == (turn.calls, turn.text.startswith('<tool_call>{"name": "read_text"'))
    assert not model.profile.keeps_tools_when_off


async def test_a_cut_by_the_callers_limit(llama_server: LlamaServer) -> None:
    """`max_tokens` cuts the text: finish reason `length`, and the usage is exactly the limit."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=3), lambda _: None)
        await model.aclose()

    assert ("length", "length", 3) == (turn.finish, turn.raw_finish, turn.usage.output_tokens)
    assert text_of(SPEAK).startswith(turn.text)


async def test_a_prompt_that_is_read_from_the_cache(llama_server: LlamaServer) -> None:
    """Cached input is not counted as uncached."""
    model = model_at(llama_server)
    request = ModelRequest(messages=[UserMessage("cache " * 30)])
    with upper_bound():
        first = (await model.turn(request, lambda _: None)).usage
        second = (await model.turn(request, lambda _: None)).usage
        await model.aclose()

    assert first.input_tokens == second.input_tokens
    assert second.cache_read_tokens == second.input_tokens - (second.uncached_input_tokens or 0)
    assert (second.cache_read_tokens or 0) > 100


async def test_a_request_longer_than_the_context(llama_server: LlamaServer) -> None:
    """The refusal has its own class, and the server's words."""
    model = model_at(llama_server)
    with upper_bound(), pytest.raises(ContextOverflow, match="exceeds the available context size") as caught:
        await model.turn(ModelRequest(messages=[UserMessage("x" * 10_000)]), lambda _: None)
    await model.aclose()

    assert (400, False) == (caught.value.status, caught.value.retryable)


@pytest.mark.parametrize("key", ["", "sk-wrong-key"])
async def test_a_wrong_key(key: str, llama_server_with_key: LlamaServer) -> None:
    """The server's words, what to do, and not the key."""
    model = model_at(llama_server_with_key, api_key=key)
    with (
        upper_bound(),
        pytest.raises(ModelAuthError, match="401 .*Invalid API Key.*pass the key of 127.0.0.1") as caught,
    ):
        await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)
    await model.aclose()

    assert "sk-wrong-key" not in str(caught.value)


async def test_the_right_key(llama_server_with_key: LlamaServer) -> None:
    """With it the server answers."""
    model = model_at(llama_server_with_key, api_key="sk-of-the-peer")
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)
        await model.aclose()

    assert text_of(SPEAK) == turn.text


async def test_a_server_that_is_down(llama_model: Any) -> None:
    """Once it has ended, nothing is sent and the address is named."""
    with serve(llama_model, slots=1) as server:
        pass
    events: list[ModelEvent] = []
    with upper_bound(), pytest.raises(ModelUnreachable, match=f"cannot connect to {server.base_url}/chat/completions"):
        await model_at(server, retries=0).turn(ModelRequest(messages=[HELLO]), events.append)

    assert [] == events


async def test_a_cancelled_call_frees_its_slot(llama_server: LlamaServer) -> None:
    """A cancel in the middle of a long stream stops the server's work, and the model can be used on."""
    model = model_at(llama_server, extra_body={"ignore_eos": True})
    arrived = trio.Event()
    used = []

    def emit(event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            arrived.set()

    async with httpx.AsyncClient(trust_env=False) as client:

        async def look() -> None:
            slots = (await client.get(f"{llama_server.url}/slots")).json()
            used.append(sum(slot["is_processing"] for slot in slots))

        with upper_bound():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(model.turn, ModelRequest(messages=[HELLO]), emit)
                await arrived.wait()
                await look()
                nursery.cancel_scope.cancel("enough")
            for _ in range(500):
                await look()
                if not used[-1]:
                    break
                await trio.sleep(0.01)
            turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=4), lambda _: None)
            await model.aclose()

    assert (1, 0) == (used[0], used[-1])
    assert 0 == model.statistics().calls
    assert text_of(SPEAK).startswith(turn.text)


async def test_more_calls_than_slots(llama_server: LlamaServer) -> None:
    """Calls at the same time share the model's connections, and all are answered."""
    model = model_at(llama_server, max_connections=3)
    texts = []

    async def call() -> None:
        texts.append((await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)).text)

    with upper_bound():
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(call)
        await model.aclose()

    assert [text_of(SPEAK)] * 8 == texts
