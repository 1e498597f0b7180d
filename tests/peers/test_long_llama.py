"""Conversations longer than the context window of a real server: 4096 tokens, about as many bytes with this model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from actors import Agent, AgentSpec, RunResult, files, open_runtime, summarise, trim
from protocol.errors import ContextOverflow, RunFailedError
from protocol.events import ContextCompacted, Event, RunEvent
from protocol.turns import AssistantMessage, Message, TextPart, ToolMessage, UserMessage
from tests.peers._llama import LlamaServer
from tests.peers._scripted_gguf import FINISH, SPEAK, text_of

from .test_loop_llama import model_at

pytestmark = pytest.mark.peer
WORDS = "long words " * 90
"""About a thousand tokens."""


async def talk(agent: Agent, prompt: str) -> tuple[RunResult, list[ContextCompacted]]:
    told: list[ContextCompacted] = []
    async with agent.run(prompt) as run:
        async for event in run:
            assert isinstance(event, (Event, RunEvent))
            if isinstance(event, ContextCompacted):
                told.append(event)
        return await run.result(), told


async def conversation(
    server: LlamaServer, runs: int, **options: Any
) -> tuple[list[RunResult], list[ContextCompacted]]:
    """So many runs of one agent, each a thousand tokens long."""
    results: list[RunResult] = []
    told: list[ContextCompacted] = []
    with trio.fail_after(120):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(AgentSpec(model=model_at(server), **options))
            for number in range(runs):
                result, compacted = await talk(agent, f"{number}: {WORDS}")
                results.append(result)
                told += compacted
    return results, told


async def test_without_a_hook_it_ends_there(llama_server: LlamaServer) -> None:
    """What the hook is for: the fourth message is refused."""
    with pytest.raises(RunFailedError) as caught:
        await conversation(llama_server, 5)

    assert isinstance(caught.value.__cause__, ContextOverflow)


async def test_it_goes_on_after_each_refusal(llama_server: LlamaServer) -> None:
    """Nothing is known of the window: the server's refusals are enough."""
    results, told = await conversation(llama_server, 9, compact=trim())

    assert [text_of(SPEAK)] * 9 == [result.text for result in results]
    assert told
    assert all(event.refused and event.tokens_after < event.tokens_before for event in told)
    assert max(len(result.messages) for result in results) < 9
    assert 9 + len(told) == sum(result.counters.llm_calls for result in results)


async def test_with_a_threshold_nothing_is_refused(llama_server: LlamaServer) -> None:
    """What the server counts is learnt, so that the threshold holds although the estimate alone is four times too small."""
    results, told = await conversation(llama_server, 9, compact=trim(), compact_at_tokens=2500)

    assert [text_of(SPEAK)] * 9 == [result.text for result in results]
    assert told
    assert not any(event.refused for event in told)
    assert [1] * 9 == [result.counters.llm_calls for result in results]
    assert max(result.context_tokens or 0 for result in results) < 4096


async def test_a_summary_by_the_server_itself(llama_server: LlamaServer) -> None:
    """The same server makes it, within the run's usage."""
    results, told = await conversation(
        llama_server, 6, compact=summarise(summary_max_tokens=100), compact_at_tokens=2500
    )
    first = results[-1].messages[0]

    assert isinstance(first, UserMessage)
    assert first.text.startswith("[Summary of the earlier conversation")
    assert first.text.endswith(text_of(SPEAK))
    assert all(event.summary_chars for event in told)
    assert [1 + any(event.run == result.run for event in told) for result in results] == [
        result.counters.llm_calls for result in results
    ]


async def test_a_long_run_of_tools(llama_server: LlamaServer, tmp_path: Path) -> None:
    """In one run: results of tools fill the window again and again, and it comes to its answer."""
    (tmp_path / "README.md").write_text("a line of text\n" * 60)
    (tmp_path / "src" / "naïve").mkdir(parents=True)
    for number in range(40):
        (tmp_path / "src" / "naïve" / f"a_file_{number}").write_text("")
    earlier: list[Message] = [UserMessage(WORDS), AssistantMessage((TextPart("Well."),))]
    with trio.fail_after(120):
        async with open_runtime() as runtime:
            # Its template asks for calls until it sees so many results: two fit beside the task, then old ones go.
            agent = await runtime.spawn(
                AgentSpec(
                    model=model_at(llama_server, chat_template_kwargs={"max_calls": 3}),
                    tools=files(tmp_path),
                    compact=trim(),
                    max_steps=12,
                ),
                messages=earlier,
            )
            result, told = await talk(agent, "What is in here?")
    results = [m for m in result.messages if isinstance(m, ToolMessage)]

    assert told
    assert result.answered or result.counters.steps == 12
    assert text_of(FINISH) == result.text or results
    assert UserMessage("What is in here?") in result.messages
