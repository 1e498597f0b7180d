"""agno: an agent per run, without a database and without telemetry."""

from __future__ import annotations

from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.openai import OpenAIChat
from agno.models.response import ModelResponse

from benchmarks.harness.work import DELTAS, add, tool_calls_of

from ._asyncio import AsyncioDriver


class _Fake(Model):
    def __init__(self, iterations: int, width: int) -> None:
        super().__init__(id="fake")
        self._iterations = iterations
        self._width = width
        self._asked = 0

    async def ainvoke(self, messages: list[Any], **_: Any) -> Any:
        if self._asked == self._iterations:
            return ModelResponse(role="assistant", content=messages[-1].content)
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in tool_calls_of(self._asked, self._width)
        ]
        self._asked += 1
        return ModelResponse(role="assistant", tool_calls=calls)

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke


class Driver(AsyncioDriver):
    async def run(self, iterations: int, width: int) -> str:
        agent = Agent(model=_Fake(iterations, width), tools=[add], telemetry=False)
        return str((await agent.arun("go")).content)

    async def connect(self, base_url: str) -> None:
        self._model = OpenAIChat(id="m", base_url=base_url, api_key="none")

    async def stream(self, turns: int) -> tuple[str, int]:
        agent = Agent(model=self._model, tools=[add], telemetry=False)
        events = agent.arun("go", stream=True)
        heard = [event.content async for event in events if event.event == "RunContent" and event.content]
        return "".join(heard[-DELTAS:]), len(heard)
