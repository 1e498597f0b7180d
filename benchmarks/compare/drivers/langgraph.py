"""langgraph: its prebuilt agent, one graph per script for all runs, without a checkpointer."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

from benchmarks.harness.work import DELTAS, add, tool_calls_of

from ._asyncio import AsyncioDriver

_ADD = tool(add)
_ARGUMENTS = {"a": 1, "b": 2}


class _Fake(BaseChatModel):
    iterations: int
    width: int

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> Any:
        asked = (len(messages) - 1) // (self.width + 1)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        if asked == self.iterations:
            said = AIMessage(content=messages[-1].content, usage_metadata=usage)
        else:
            calls = [
                {"name": call["name"], "args": _ARGUMENTS, "id": call["id"]}
                for call in tool_calls_of(asked, self.width)
            ]
            said = AIMessage(content="", usage_metadata=usage, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(self, messages: list[Any], *_: Any, **__: Any) -> Any:
        return self._generate(messages)


@cache
def _graph(iterations: int, width: int) -> Any:
    return create_react_agent(_Fake(iterations=iterations, width=width), [_ADD])


def _config(iterations: int) -> dict[str, int]:
    return {"recursion_limit": 2 * iterations + 10}


class Driver(AsyncioDriver):
    async def run(self, iterations: int, width: int) -> str:
        state = await _graph(iterations, width).ainvoke({"messages": [("user", "go")]}, _config(iterations))
        return str(state["messages"][-1].content)

    async def connect(self, base_url: str) -> None:
        model = ChatOpenAI(model="m", base_url=base_url, api_key="none", streaming=True)
        self._served = create_react_agent(model, [_ADD])

    async def stream(self, turns: int) -> tuple[str, int]:
        pieces = self._served.astream({"messages": [("user", "go")]}, _config(turns), stream_mode="messages")
        heard = [said.content async for said, _ in pieces if said.type == "AIMessageChunk" and said.content]
        return "".join(heard[-DELTAS:]), len(heard)
