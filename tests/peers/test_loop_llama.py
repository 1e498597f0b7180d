"""The whole loop, with real tools, against the real llama.cpp server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import trio

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, files, open_runtime, remote
from actors.models.openai import OpenAIChat
from protocol.errors import RunCancelledError
from protocol.events import ContentDelta, Event, LimitReached, ToolFinished
from protocol.turns import AssistantMessage, UserMessage
from tests.peers._llama import LlamaServer
from tests.peers._scripted_gguf import FINISH, SPEAK, text_of
from tests.support.oracle import check_events

pytestmark = pytest.mark.peer


def model_at(server: LlamaServer, **extra: object) -> OpenAIChat:
    return OpenAIChat("scripted", base_url=server.base_url, api_key="", extra_body=extra)


def folder(root: Path) -> Path:
    (root / "README.md").write_text("# A café\n")
    (root / "src" / "naïve").mkdir(parents=True)
    (root / "src" / "naïve" / "one.py").write_text("x = 1\n")
    return root


async def test_tool_rounds_to_the_limit_the_gate_and_the_answer(llama_server: LlamaServer, tmp_path: Path) -> None:
    """Five calls under a window of two: asked twice, approved once with steering, and it comes to its answer."""
    asked: list[tuple[int | None, int]] = []

    def decide(request: ContinuationRequest) -> ContinuationResponse:
        asked.append((request.max_iterations, request.total_iterations))
        return ContinuationResponse("approve", message="go on" if len(asked) == 1 else None)

    events: list[Event] = []
    numbered: list[tuple[int, Event]] = []
    with trio.fail_after(60):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(
                AgentSpec(
                    model=model_at(llama_server, chat_template_kwargs={"max_calls": 5}),
                    tools=files(folder(tmp_path)),
                    max_tool_iterations=2,
                    max_llm_calls=10,
                    continuation=decide,
                )
            )
            async with agent.run("What is in here?") as run:
                reader = run.events()
                async for event in reader:
                    assert isinstance(event, Event)
                    events.append(event)
                    numbered.append((reader.seq, event))
                result = await run.result()
    results = [(event.name, event.status) for event in events if isinstance(event, ToolFinished)]
    check_events(numbered)
    users = [message.text for message in result.messages if isinstance(message, UserMessage)]

    assert [(2, 2), (2, 4)] == asked
    assert [("read_text", "ok"), ("list_dir", "ok")] * 2 + [("read_text", "ok")] == results
    assert ["What is in here?", "go on"] == users
    assert (text_of(FINISH), True, None) == (result.text, result.answered, result.limit)
    assert (6, 5) == (result.counters.llm_calls, result.counters.tool_iterations)
    assert result.usage.complete
    assert result.usage.total_tokens > 100
    assert 2 == sum(isinstance(event, LimitReached) for event in events)


async def test_nobody_decides_and_the_server_answers_without_tools(llama_server: LlamaServer, tmp_path: Path) -> None:
    """The gate's time runs out: the pending call is answered, and the final call goes through without tools."""
    with trio.fail_after(60):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(
                AgentSpec(
                    model=model_at(llama_server),
                    tools=files(folder(tmp_path)),
                    max_tool_iterations=1,
                    continuation=remote(timeout_seconds=0.05),
                )
            )
            async with agent.run("What is in here?") as run:
                result = await run.result()

    assert (text_of(FINISH), True, "model", "max_iterations") == (
        result.text,
        result.answered,
        result.finalized,
        result.finish_reason,
    )


async def test_a_cancelled_run_frees_the_servers_slot(llama_server: LlamaServer) -> None:
    """A cancel in the middle of the stream ends the server's work; what was shown is kept, and the agent goes on."""
    used: list[int] = []
    async with httpx.AsyncClient(trust_env=False) as client:

        async def look() -> None:
            slots = (await client.get(f"{llama_server.url}/slots")).json()
            used.append(sum(slot["is_processing"] for slot in slots))

        with trio.fail_after(60):
            async with open_runtime() as runtime:
                endless = await runtime.spawn(AgentSpec(model=model_at(llama_server, ignore_eos=True)))
                async with endless.run("Say hello.") as run:
                    async for event in run:
                        if isinstance(event, ContentDelta):
                            await look()
                            run.cancel("heard enough")
                            break
                    with pytest.raises(RunCancelledError) as caught:
                        await run.result()
                while used[-1]:
                    await trio.sleep(0.01)
                    await look()
    last = caught.value.partial.messages[-1]

    assert 1 == used[0]
    assert isinstance(last, AssistantMessage)
    assert last.partial
    assert text_of(SPEAK).startswith(caught.value.partial.text[:5])
