"""The Responses model against the real llama.cpp server."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from actors import AgentSpec, files, open_runtime
from actors.models.openai import OpenAIResponses
from protocol.errors import ContextOverflow, ModelAuthError, ModelRefused, ModelUnreachable
from protocol.model import CallDelta, ModelEvent, ModelRequest, Profile, RequestSent, Resume, TextDelta, ToolDefinition
from protocol.normalise import normalise
from protocol.outcome import outcome_of
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.peers._llama import LlamaServer, serve
from tests.peers._scripted_gguf import _SPEAK, _TEMPLATE, CALLS, FINISH, SPEAK, Words, _Script, text_of

pytestmark = pytest.mark.peer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = tuple([ToolDefinition(name, f"Calls {name}.", PATH) for name, _ in CALLS])
HELLO = UserMessage("What is in here?")
SPLIT: Words = (b"\xe6\x97", b"\xa5\xe6\x9c", b"\xac it", " is")
"""Characters of which the first token holds a part alone."""


@contextmanager
def upper_bound() -> Generator[None]:
    with trio.fail_after(30):
        yield


def model_at(server: LlamaServer, **settings: Any) -> OpenAIResponses:
    return OpenAIResponses("scripted", base_url=server.base_url, **{"api_key": "", **settings})


def unheard(_event: ModelEvent) -> None:
    pass


async def test_plain_text(llama_server: LlamaServer) -> None:
    """Text is streamed, characters that a token cuts in two are whole, and usage is reported."""
    model = model_at(llama_server)
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], system="Be exact."), events.append)
        await model.aclose()
    deltas = [event.text for event in events if isinstance(event, TextDelta)]

    assert (text_of(SPEAK), "stop", "complete") == (turn.text, turn.finish, turn.end)
    assert (text_of(SPEAK), True) == ("".join(deltas), len(deltas) > 3)
    assert [RequestSent()] == [event for event in events if isinstance(event, RequestSent)]
    assert turn.usage.complete
    assert turn.usage.input_tokens > 10
    assert len(SPEAK) + 1 == turn.usage.output_tokens


@pytest.fixture(scope="module")
def split_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server whose model begins in the middle of a character."""
    path = tmp_path_factory.mktemp("llama") / "split.gguf"
    script = _Script()
    script.chain(_SPEAK, SPLIT)
    script.write(path, _TEMPLATE.replace("CALLS", str(len(CALLS))))
    with serve(path, slots=1) as server:
        yield server


async def test_a_first_token_that_is_no_whole_character(split_server: LlamaServer) -> None:
    """The server holds it back, and the text begins with the whole character."""
    model = model_at(split_server)
    events: list[ModelEvent] = []
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO]), events.append)
        await model.aclose()

    assert (text_of(SPLIT), text_of(SPLIT)) == (
        turn.text,
        "".join([event.text for event in events if isinstance(event, TextDelta)]),
    )


async def test_a_reply_that_is_not_streamed(llama_server: LlamaServer) -> None:
    """A whole body comes to the same turn."""
    model = model_at(llama_server, extra_body={"stream": False})
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO]), unheard)
        await model.aclose()

    assert (text_of(SPEAK), "stop", True) == (turn.text, turn.finish, turn.usage.complete)


async def test_tool_calls_to_the_final_answer(llama_server: LlamaServer) -> None:
    """Two calls, one after the other, with streamed arguments; their results lead to the answer."""
    model = model_at(llama_server)
    messages: list[Message] = [HELLO]
    with upper_bound():
        for name, values in CALLS:
            events: list[ModelEvent] = []
            turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), events.append)
            [call] = turn.calls
            pieces = [event for event in events if isinstance(event, CallDelta)]

            assert ("tool_calls", name) == (turn.finish, call.name)
            assert values == httpx.Response(200, content=call.arguments).json()
            assert [name] == [piece.name for piece in pieces if piece.name]
            assert (call.arguments, True) == ("".join(piece.arguments for piece in pieces), len(pieces) > 2)
            messages += [AssistantMessage(turn.parts), ToolMessage((ToolResult(call.id, name, "ok", "A café."),))]
        turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), events.append)
        await model.aclose()

    assert (text_of(FINISH), "stop", ()) == (turn.text, turn.finish, turn.calls)


async def test_the_server_takes_its_own_items_back(llama_server: LlamaServer) -> None:
    """A text goes back as the item that it came as, and a second time without its id."""
    model = model_at(llama_server)
    with upper_bound():
        first = await model.turn(ModelRequest(messages=[HELLO]), unheard)
        said = AssistantMessage(first.parts)
        turn = await model.turn(ModelRequest(messages=[HELLO, said, HELLO, said, HELLO]), unheard)
        await model.aclose()

    assert text_of(SPEAK) == turn.text
    assert turn.usage.input_tokens > 3 * first.usage.input_tokens


async def test_an_answer_without_tools_after_calls(llama_server: LlamaServer) -> None:
    """A final call takes the definitions away: the server accepts the calls in the history all the same."""
    model = model_at(llama_server)
    parts = (TextPart("Let me look."), ToolCall("a", "read_text", '{"path":"x"}'))
    messages: list[Message] = [HELLO, AssistantMessage(parts), ToolMessage((ToolResult("a", "read_text", "ok", "1"),))]
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=messages, tail="Answer now."), unheard)
        await model.aclose()

    assert (text_of(FINISH), ()) == (turn.text, turn.calls)


async def test_tools_kept_but_off_are_no_calls_here(llama_server: LlamaServer) -> None:
    """Why tools do not stay visible by default: the server parses no call, but the model still writes one."""
    model = model_at(llama_server)
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, tool_choice="none"), unheard)
        await model.aclose()

    assert ((), True) == (turn.calls, turn.text.startswith('<tool_call>{"name": "read_text"'))
    assert not model.profile.keeps_tools_when_off


async def test_a_limit_in_the_loop(llama_server: LlamaServer, tmp_path: Path) -> None:
    """A whole run with real tools: at its limit the final call goes through without tools."""
    (tmp_path / "README.md").write_text("# A café\n")
    with upper_bound():
        async with open_runtime() as runtime:
            spec = AgentSpec(
                model=model_at(llama_server),
                tools=files(tmp_path),
                max_tool_iterations=1,
                tool_iteration_limit_finalization="",
            )
            agent = await runtime.spawn(spec)
            async with agent.run("What is in here?") as run:
                result = await run.result()

    assert (text_of(FINISH), "model", 2) == (result.text, result.finalized, result.counters.llm_calls)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_cut_by_the_callers_limit(streamed: bool, llama_server: LlamaServer) -> None:
    """The server calls it completed; that the cap is used up tells."""
    model = model_at(llama_server, extra_body={"stream": streamed})
    with upper_bound():
        turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=3), unheard)
        await model.aclose()

    assert ("length", "completed", 3) == (turn.finish, turn.raw_finish, turn.usage.output_tokens)
    assert text_of(SPEAK).startswith(turn.text)
    assert "truncated" == outcome_of(turn, 3).kind


async def test_no_cut_call_is_run_at_any_limit(llama_server: LlamaServer) -> None:
    """Wherever the cap falls, a call is either whole or cut."""
    model = model_at(llama_server)
    whole = []
    with upper_bound():
        for cap in range(1, 24):
            turn = await model.turn(ModelRequest(messages=[HELLO], tools=TOOLS, max_tokens=cap), unheard)
            turn, arguments = normalise(turn, knows_call=lambda _: False, max_calls=9)
            outcome = outcome_of(turn, cap)
            whole.append(not outcome.cut)

            assert outcome.cut or [CALLS[0][1]] == [*arguments.values()]
        await model.aclose()

    assert [False, True] == [whole[0], whole[-1]]


async def test_a_turn_that_goes_on_as_a_prefix(llama_server: LlamaServer) -> None:
    """The server goes on with the last message, and what it repeats of it at the end is not reported."""
    model = model_at(llama_server, profile=Profile(continues_text="exact_prefix"))
    events: list[ModelEvent] = []
    request = ModelRequest(messages=[HELLO], resume=Resume((TextPart(_SPEAK),), "exact_prefix"))
    with upper_bound():
        turn = await model.turn(request, events.append)
        await model.aclose()
    deltas = [event.text for event in events if isinstance(event, TextDelta)]

    assert (text_of(SPEAK), text_of(SPEAK)) == (turn.text, "".join(deltas))


async def test_a_prompt_that_is_read_from_the_cache(llama_server: LlamaServer) -> None:
    """Cached input is not counted as uncached."""
    model = model_at(llama_server)
    request = ModelRequest(messages=[UserMessage("cache " * 30)])
    with upper_bound():
        first = (await model.turn(request, unheard)).usage
        second = (await model.turn(request, unheard)).usage
        await model.aclose()

    assert first.input_tokens == second.input_tokens
    assert second.cache_read_tokens == second.input_tokens - (second.uncached_input_tokens or 0)
    assert (second.cache_read_tokens or 0) > 100


async def test_a_request_longer_than_the_context(llama_server: LlamaServer) -> None:
    """The refusal has its own class, and the server's words."""
    model = model_at(llama_server)
    with upper_bound(), pytest.raises(ContextOverflow, match="exceeds the available context size") as caught:
        await model.turn(ModelRequest(messages=[UserMessage("x" * 10_000)]), unheard)
    await model.aclose()

    assert (400, False) == (caught.value.status, caught.value.retryable)


async def test_a_request_that_is_refused(llama_server: LlamaServer) -> None:
    """The server says what it does not take."""
    model = model_at(llama_server, extra_body={"temperature": "hot"})
    with upper_bound(), pytest.raises(ModelRefused, match="temperature.*must be number") as caught:
        await model.turn(ModelRequest(messages=[HELLO]), unheard)
    await model.aclose()

    assert (400, False) == (caught.value.status, caught.value.retryable)


@pytest.mark.parametrize("key", ["", "sk-wrong-key"])
async def test_a_wrong_key(key: str, llama_server_with_key: LlamaServer) -> None:
    """The server's words, what to do, and not the key."""
    model = model_at(llama_server_with_key, api_key=key)
    with upper_bound(), pytest.raises(ModelAuthError, match="401 .*Invalid API Key.*api_key") as caught:
        await model.turn(ModelRequest(messages=[HELLO]), unheard)
    await model.aclose()

    assert "sk-wrong-key" not in str(caught.value)


async def test_a_server_that_is_down(llama_model: Path) -> None:
    """Once it has ended, nothing is sent and the address is named."""
    with serve(llama_model, slots=1) as server:
        pass
    with upper_bound(), pytest.raises(ModelUnreachable, match=f"cannot connect to {server.base_url}/responses"):
        await model_at(server).turn(ModelRequest(messages=[HELLO]), unheard)


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
            turn = await model.turn(ModelRequest(messages=[HELLO], max_tokens=4), unheard)
            await model.aclose()

    assert (1, 0) == (used[0], used[-1])
    assert 0 == model.statistics().calls
    assert text_of(SPEAK).startswith(turn.text)
