"""What the same work costs without a framework: the least that a runtime of the same shape could take.

The task is that of `work`: `width` calls, `iterations` times over. Messages are plain dicts. Every floor runs the tools as
often as the subject does, and the count is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import trio

from .work import add, tool_calls_of

__all__ = ("Floor", "bare_loop", "four_thin", "four_thin_tool_tasks", "nursery_loop")

Message: TypeAlias = dict[str, Any]
Said: TypeAlias = tuple[str, Any]
Receive: TypeAlias = trio.MemoryReceiveChannel
Send: TypeAlias = trio.MemorySendChannel
Floor: TypeAlias = Callable[[int, int], Any]
"""An async function of iterations and width."""

CAPACITY = 16


class _Model:
    def __init__(self, iterations: int, width: int) -> None:
        self._left = iterations
        self._width = width

    async def reply(self, messages: list[Message]) -> Message:
        if not self._left:
            return {"role": "assistant", "content": messages[-1]["content"]}
        self._left -= 1
        return {"role": "assistant", "content": None, "tool_calls": tool_calls_of(self._left, self._width)}


async def _run_tool(call: Message) -> str:
    return str(await add(**json.loads(call["arguments"])))


def _result(call: Message, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


async def _run_in_tasks(calls: list[Message]) -> list[str]:
    texts = [""] * len(calls)

    async def run_one(index: int) -> None:
        texts[index] = await _run_tool(calls[index])

    async with trio.open_nursery() as nursery:
        for index in range(len(calls)):
            nursery.start_soon(run_one, index)
    return texts


async def bare_loop(iterations: int, width: int) -> str:
    """The loop as one would write it by hand, tools one after the other, no task but its own."""
    model = _Model(iterations, width)
    messages: list[Message] = [{"role": "user", "content": "go"}]
    while True:
        message = await model.reply(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return str(message["content"])
        messages.extend([_result(call, await _run_tool(call)) for call in calls])


async def nursery_loop(iterations: int, width: int) -> str:
    """The same loop with a nursery per turn, a task per tool call and a checkpoint per model call."""
    model = _Model(iterations, width)
    messages: list[Message] = [{"role": "user", "content": "go"}]
    while True:
        await trio.lowlevel.checkpoint()
        message = await model.reply(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return str(message["content"])
        texts = await _run_in_tasks(calls)
        messages.extend(map(_result, calls, texts))


async def _keep_budget(asks: Receive[None], loop: Send[Said], grants: int) -> None:
    left = grants
    async for _ in asks:
        left -= 1
        await loop.send(("grant", left >= 0))


async def _serve_model(asks: Receive[list[Message]], loop: Send[Said], model: _Model) -> None:
    async for messages in asks:
        await loop.send(("reply", await model.reply(messages)))


async def _serve_tools(asks: Receive[list[Message]], loop: Send[Said], *, tasks: bool) -> None:
    async for calls in asks:
        texts = await _run_in_tasks(calls) if tasks else [await _run_tool(call) for call in calls]
        await loop.send(("results", texts))


async def _drive(
    said: Receive[Said], budget: Send[None], model: Send[list[Message]], tools: Send[list[Message]]
) -> str:
    messages: list[Message] = [{"role": "user", "content": "go"}]
    calls: list[Message] = []
    await budget.send(None)
    async for kind, value in said:
        if kind == "grant":
            assert value
            await model.send(messages)
        elif kind == "reply":
            messages.append(value)
            calls = value.get("tool_calls")
            if not calls:
                return str(value["content"])
            await tools.send(calls)
        else:
            messages.extend(map(_result, calls, value))
            await budget.send(None)
    raise AssertionError("the actors left the loop alone")


async def _four_actors(iterations: int, width: int, *, tool_tasks: bool) -> str:
    to_loop, said = trio.open_memory_channel[Said](CAPACITY)
    budget, at_budget = trio.open_memory_channel[None](CAPACITY)
    model, at_model = trio.open_memory_channel[list[Message]](CAPACITY)
    tools, at_tools = trio.open_memory_channel[list[Message]](CAPACITY)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_budget, at_budget, to_loop, iterations + 1)
        nursery.start_soon(_serve_model, at_model, to_loop, _Model(iterations, width))
        nursery.start_soon(partial(_serve_tools, at_tools, to_loop, tasks=tool_tasks))
        text = await _drive(said, budget, model, tools)
        nursery.cancel_scope.cancel("done")
    return text


four_thin: Floor = partial(_four_actors, tool_tasks=False)
"""Four actors over memory channels, six hops an iteration; the tools run in their actor's own task."""

four_thin_tool_tasks: Floor = partial(_four_actors, tool_tasks=True)
"""The same, with a nursery per batch of calls and a task per call: what most goals are set against."""
