"""pydantic-ai: one agent for all runs, its own `FunctionModel`, no limit of requests.

Usage is given, so that the fake does not count the words of the whole conversation in each turn.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage, UsageLimits

from benchmarks.harness.work import add, tool_calls_of

from ._asyncio import AsyncioDriver

_USAGE = RequestUsage(input_tokens=10, output_tokens=5)
_UNLIMITED = UsageLimits(request_limit=None)


def _fake(iterations: int, width: int) -> Any:
    asked = 0

    async def reply(messages: list[Any], _: Any) -> Any:
        nonlocal asked
        if asked == iterations:
            return ModelResponse(parts=[TextPart(str(messages[-1].parts[-1].content))], usage=_USAGE)
        calls = tool_calls_of(asked, width)
        asked += 1
        parts = [ToolCallPart(call["name"], call["arguments"], tool_call_id=call["id"]) for call in calls]
        return ModelResponse(parts=parts, usage=_USAGE)

    return FunctionModel(reply, model_name="fake")


class Driver(AsyncioDriver):
    def __init__(self) -> None:
        self._agent = Agent(tools=[add])

    async def run(self, iterations: int, width: int) -> str:
        result = await self._agent.run("go", model=_fake(iterations, width), usage_limits=_UNLIMITED)
        return str(result.output)

    async def connect(self, base_url: str) -> None:
        self._model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=base_url, api_key="none"))

    async def stream(self, turns: int) -> tuple[str, int]:
        heard = 0

        async def listen(_: Any, events: Any) -> None:
            nonlocal heard
            async for event in events:
                if event.event_kind == "part_start":
                    heard += event.part.part_kind == "text"
                elif event.event_kind == "part_delta":
                    heard += event.delta.part_delta_kind == "text"

        result = await self._agent.run("go", model=self._model, usage_limits=_UNLIMITED, event_stream_handler=listen)
        return str(result.output), heard
