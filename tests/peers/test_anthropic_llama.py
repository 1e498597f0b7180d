"""The Messages model against the real llama.cpp server."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from actors import AgentSpec, files, open_runtime
from actors.models import Anthropic
from protocol.errors import ContextOverflow, ModelAuthError, ModelRefused
from protocol.model import CallDelta, ForceTool, ModelEvent, ModelRequest, RequestSent, TextDelta, ToolDefinition
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.peers._llama import LlamaServer, serve
from tests.peers._scripted_gguf import CALLS, FINISH, SPEAK, text_of, write_model

pytestmark = pytest.mark.peer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = tuple([ToolDefinition(name, f"Calls {name}.", PATH) for name, _ in CALLS])
HELLO = UserMessage("What is in here?")
HALF_FIRST = (b"\xe6\x97", b"\xa5 is", " a", " day")
"""The first token is the beginning of a character."""


@contextmanager
def upper_bound() -> Generator[None]:
    with trio.fail_after(30):
        yield


def model_at(server: LlamaServer, **settings: Any) -> Anthropic:
    return Anthropic("scripted", base_url=server.url, **{"api_key": "", **settings})


@pytest.fixture(scope="module")
def half_first_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server whose every text begins with half a character."""
    path = tmp_path_factory.mktemp("llama") / "half.gguf"
    write_model(path, HALF_FIRST)
    with serve(path, slots=1, context_tokens=2048) as server:
        yield server


@pytest.fixture(scope="module")
def endless_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server that speaks until its context is full: no option of this format makes it."""
    path = tmp_path_factory.mktemp("llama") / "endless.gguf"
    write_model(path, endless=True)
    with serve(path, slots=1, context_tokens=16384) as server:
        yield server


async def test_plain_text(llama_server: LlamaServer) -> None:
    """Text is streamed, characters that a token cuts in two are whole, and usage is reported."""
    model = model_at(llama_server)
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], system="Be exact."), events.append)
        await model.aclose()
    deltas = [event.text for event in events if isinstance(event, TextDelta)]

    assert (text_of(SPEAK), "stop", "end_turn", "complete") == (turn.text, turn.finish, turn.raw_finish, turn.end)
    assert (text_of(SPEAK), True) == ("".join(deltas), len(deltas) > 3)
    assert [RequestSent()] == [event for event in events if isinstance(event, RequestSent)]
    assert turn.usage.complete
    assert turn.usage.input_tokens > 10
    assert len(SPEAK) + 1 == turn.usage.output_tokens


async def test_a_reply_that_is_not_streamed(llama_server: LlamaServer) -> None:
    """The whole body comes to the same turn."""
    model = model_at(llama_server, extra_body={"stream": False})
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS), events.append)
        await model.aclose()
    name, arguments = CALLS[0]
    [call] = turn.calls

    assert (name, arguments, "tool_calls") == (call.name, json.loads(call.arguments), turn.finish)
    assert turn.usage.complete


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

            assert ("tool_calls", "tool_use", name) == (turn.finish, turn.raw_finish, call.name)
            assert arguments == json.loads(call.arguments)
            assert call.id
            assert [name] == [piece.name for piece in pieces if piece.name]
            assert (call.arguments, True) == ("".join(piece.arguments for piece in pieces), len(pieces) > 2)
            messages += [AssistantMessage(turn.parts), ToolMessage((ToolResult(call.id, name, "ok", "A café."),))]
        messages.append(UserMessage("And?"))
        turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), events.append)
        await model.aclose()

    assert (text_of(FINISH), "stop", ()) == (turn.text, turn.finish, turn.calls)


async def test_results_of_every_kind(llama_server: LlamaServer) -> None:
    """Empty results, errors and ids that the format does not allow are taken."""
    model = model_at(llama_server)
    calls = (ToolCall("functions.t:0", "read_text", '{"path":"x"}'), ToolCall("b", "no.such", "{}"))
    results = (ToolResult("functions.t:0", "read_text", "ok", ""), ToolResult("b", "no.such", "error", "Unknown."))
    messages: list[Message] = [HELLO, AssistantMessage((TextPart("Let me look."), *calls)), ToolMessage(results)]
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), lambda _: None)
        await model.aclose()

    assert text_of(FINISH) == turn.text


@pytest.mark.parametrize("choice", ["required", ForceTool("read_text")])
async def test_a_choice_that_forces_a_tool(choice: Any, llama_server: LlamaServer) -> None:
    """The server knows the format's words for it."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, tool_choice=choice), lambda _: None)
        await model.aclose()

    assert ["read_text"] == [call.name for call in turn.calls]


async def test_tools_kept_but_off_are_called_here(llama_server: LlamaServer) -> None:
    """Why tools do not stay visible by default: this server does not know the choice `none` in this format."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, tool_choice="none"), lambda _: None)
        await model.aclose()

    assert ["read_text"] == [call.name for call in turn.calls]
    assert not model.profile.keeps_tools_when_off


async def test_a_run_to_its_limit_and_the_answer(llama_server: LlamaServer, tmp_path: Path) -> None:
    """The whole loop: real tools, a limit, and a final call whose history holds no tool blocks."""
    (tmp_path / "README.md").write_text("# A café\n")
    with trio.fail_after(60):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(
                AgentSpec(
                    model=model_at(llama_server),
                    tools=files(tmp_path),
                    max_tool_iterations=1,
                    tool_iteration_limit_finalization="",
                )
            )
            async with agent.run("What is in here?") as run:
                result = await run.result()

    assert (text_of(SPEAK), True, "model") == (result.text, result.answered, result.finalized)
    assert (2, 1) == (result.counters.llm_calls, result.counters.tool_iterations)
    assert result.usage.complete


async def test_a_cut_by_the_callers_limit(llama_server: LlamaServer) -> None:
    """`max_tokens` cuts the text: finish reason `length`, and the usage is exactly the limit."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=3), lambda _: None)
        await model.aclose()

    assert ("length", "max_tokens", 3) == (turn.finish, turn.raw_finish, turn.usage.output_tokens)
    assert text_of(SPEAK).startswith(turn.text)


async def test_a_call_cut_by_the_limit(llama_server: LlamaServer) -> None:
    """What is left of a cut call is no call whose arguments could be taken for whole."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, max_tokens=12), lambda _: None)
        await model.aclose()

    assert ("length", 12) == (turn.finish, turn.usage.output_tokens)
    assert [] == [call for call in turn.calls if call.arguments.endswith("}")]


async def test_a_first_token_that_is_half_a_character(half_first_server: LlamaServer) -> None:
    """The server loses the start of the message: the text is whole all the same, and the unknown input is unknown."""
    model = model_at(half_first_server)
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO]), events.append)
        cut = await model.turn(ModelRequest(messages=[HELLO], max_tokens=1), events.append)
        await model.aclose()

    assert ("日 is a day", "stop") == (turn.text, turn.finish)
    assert turn.text == "".join([event.text for event in events if isinstance(event, TextDelta)])
    assert (5, None, False) == (turn.usage.output_tokens, turn.usage.uncached_input_tokens, turn.usage.complete)
    assert ((), "length") == (cut.parts, cut.finish)


async def test_a_prompt_that_is_read_from_the_cache(llama_server: LlamaServer) -> None:
    """Cached input is not counted as uncached."""
    model = model_at(llama_server)
    request = ModelRequest(messages=[UserMessage("cache " * 30)])
    with upper_bound():
        first = (await model.turn(request, lambda _: None)).usage
        second = (await model.turn(request, lambda _: None)).usage
        await model.aclose()

    assert first.input_tokens == second.input_tokens
    assert (second.cache_read_tokens or 0) > 100


async def test_a_request_longer_than_the_context(llama_server: LlamaServer) -> None:
    """The refusal has its own class, and the server's words."""
    model = model_at(llama_server)
    with upper_bound(), pytest.raises(ContextOverflow, match="exceeds the available context size") as caught:
        await model.turn(ModelRequest(messages=[UserMessage("x" * 10_000)]), lambda _: None)
    await model.aclose()

    assert (400, False) == (caught.value.status, caught.value.retryable)


async def test_a_request_that_is_wrong(llama_server: LlamaServer) -> None:
    """A 400 in the server's words."""
    model = model_at(llama_server, extra_body={"stop_sequences": 3, "temperature": "hot"})
    with upper_bound(), pytest.raises(ModelRefused, match="400") as caught:
        await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)
    await model.aclose()

    assert (400, False) == (caught.value.status, caught.value.retryable)


@pytest.mark.parametrize("key", ["", "sk-wrong-key"])
async def test_a_wrong_key(key: str, llama_server_with_key: LlamaServer) -> None:
    """The server's words, and not the key."""
    model = model_at(llama_server_with_key, api_key=key)
    with upper_bound(), pytest.raises(ModelAuthError, match="401 .*Invalid API Key") as caught:
        await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)
    await model.aclose()

    assert "sk-wrong-key" not in str(caught.value)


async def test_the_right_key(llama_server_with_key: LlamaServer) -> None:
    """With it, as `x-api-key`, the server answers."""
    model = model_at(llama_server_with_key, api_key="sk-of-the-peer")
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO]), lambda _: None)
        await model.aclose()

    assert text_of(SPEAK) == turn.text


async def test_a_cancelled_call_frees_its_slot(endless_server: LlamaServer) -> None:
    """A cancel in the middle of a long stream stops the server's work, and the model can be used on."""
    model = model_at(endless_server)
    arrived = trio.Event()
    used = []

    def emit(event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            arrived.set()

    async with httpx.AsyncClient(trust_env=False) as client:

        async def look() -> None:
            slots = (await client.get(f"{endless_server.url}/slots")).json()
            used.append(sum(slot["is_processing"] for slot in slots))

        with upper_bound():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(model.turn, ModelRequest(messages=[HELLO], max_tokens=100_000), emit)
                await arrived.wait()
                await look()
                nursery.cancel_scope.cancel("enough")
            while used[-1]:
                await trio.sleep(0.01)
                await look()
            turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=4), lambda _: None)
            await model.aclose()

    assert 1 == used[0]
    assert 0 == model.statistics().calls
    assert text_of(SPEAK).startswith(turn.text)
