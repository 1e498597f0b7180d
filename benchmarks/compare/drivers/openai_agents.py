"""openai-agents: one agent for all runs, tracing off."""

from __future__ import annotations

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.harness.work import add, tool_calls_of

from ._asyncio import AsyncioDriver


class _Fake(Model):
    def __init__(self, iterations: int, width: int) -> None:
        self._iterations = iterations
        self._width = width
        self._asked = 0

    async def get_response(self, *_: Any, input: list[Any], **__: Any) -> Any:
        if self._asked == self._iterations:
            text = ResponseOutputText(annotations=[], text=input[-1]["output"], type="output_text")
            said = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
            return _response([said])
        calls = tool_calls_of(self._asked, self._width)
        self._asked += 1
        return _response([
            ResponseFunctionToolCall(
                arguments=call["arguments"], call_id=call["id"], name=call["name"], type="function_call"
            )
            for call in calls
        ])

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def _response(items: list[Any]) -> Any:
    usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
    return ModelResponse(output=items, usage=usage, response_id=None)


class Driver(AsyncioDriver):
    def __init__(self) -> None:
        set_tracing_disabled(True)
        self._agent = Agent(name="a", tools=[function_tool(add)])

    async def run(self, iterations: int, width: int) -> str:
        config = RunConfig(model=_Fake(iterations, width))
        result = await Runner.run(self._agent, "go", max_turns=iterations + 1, run_config=config)
        return str(result.final_output)

    async def connect(self, base_url: str) -> None:
        self._model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=base_url, api_key="none"))

    async def stream(self, turns: int) -> tuple[str, int]:
        config = RunConfig(model=self._model)
        run = Runner.run_streamed(self._agent, "go", max_turns=turns + 1, run_config=config)
        heard = 0
        async for event in run.stream_events():
            if event.type == "raw_response_event":
                heard += event.data.type == "response.output_text.delta"
        return str(run.final_output), heard
