"""Clients that make model calls over HTTP: ours, and what the same takes with httpx alone."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import httpx

from actors.models.openai import OpenAIChat
from protocol.model import ModelEvent, ModelRequest, ToolDefinition
from protocol.turns import UserMessage

from .work import REPLY_TEXT

__all__ = ("CLIENTS", "FLOOR", "Client")

Client: TypeAlias = Callable[[str, int], AbstractAsyncContextManager[Callable[[], Awaitable[None]]]]
"""Opens a client for an address and so many connections, and gives a function that makes one call."""

FLOOR = "floor: httpx, lines, json"

_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
_REQUEST = ModelRequest(
    messages=[UserMessage("What is 1 and 2?")], tools=[ToolDefinition("add", "Add two numbers.", _SCHEMA)]
)
_TOOL = {"type": "function", "function": {"name": "add", "description": "Add two numbers.", "parameters": _SCHEMA}}
_BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is 1 and 2?"}],
    "stream": True,
    "tools": [_TOOL],
}
_ARGUMENTS = '{"a": 1, "b": 2}'


def _limits(connections: int) -> httpx.Limits:
    return httpx.Limits(max_connections=connections, max_keepalive_connections=connections)


@asynccontextmanager
async def _bytes(base_url: str, connections: int) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Reads the stream, and looks at nothing."""
    async with httpx.AsyncClient(timeout=None, limits=_limits(connections), trust_env=False) as client:

        async def call() -> None:
            size = 0
            async with client.stream("POST", f"{base_url}/chat/completions", json=_BODY) as response:
                async for chunk in response.aiter_raw():
                    size += len(chunk)
            assert size > len(REPLY_TEXT)

        yield call


@asynccontextmanager
async def _lines(base_url: str, connections: int) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Reads what a program without a library would: lines, JSON, text and arguments."""
    async with httpx.AsyncClient(timeout=None, limits=_limits(connections), trust_env=False) as client:

        async def call() -> None:
            texts: list[str] = []
            arguments: list[str] = []
            async with client.stream("POST", f"{base_url}/chat/completions", json=_BODY) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        delta: dict[str, Any] = json.loads(line[6:])["choices"][0]["delta"]
                        texts.append(delta.get("content") or "")
                        arguments += [one["function"]["arguments"] for one in delta.get("tool_calls", [])]
            assert ("".join(texts), "".join(arguments)) == (REPLY_TEXT, _ARGUMENTS)

        yield call


@asynccontextmanager
async def _ours(base_url: str, connections: int) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Onward's model, with its deltas reported."""
    model = OpenAIChat("m", base_url=base_url, api_key="", max_connections=connections)
    heard = 0

    def emit(event: ModelEvent) -> None:
        nonlocal heard
        heard += 1

    async def call() -> None:
        turn = await model.turn(_REQUEST, emit)
        assert (turn.text, [one.arguments for one in turn.calls]) == (REPLY_TEXT, [_ARGUMENTS])

    try:
        yield call
    finally:
        await model.aclose()


CLIENTS: dict[str, Client] = {"floor: httpx, bytes": _bytes, FLOOR: _lines, "ours": _ours}
