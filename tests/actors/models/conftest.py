"""A network in memory for the models' tests, and servers on sockets of this machine."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Protocol

import pytest
import trio

from actors.models.gemini import GeminiInteractions
from actors.models.openai import OpenAIChat
from tests.actors.models._wire import Network, Server
from tests.support.interactions import InteractionsServer


class MakeModel(Protocol):
    def __call__(self, **settings: Any) -> OpenAIChat: ...


class Meet(Protocol):
    def __call__(self, server: InteractionsServer, **settings: Any) -> GeminiInteractions: ...


class Open(Protocol):
    async def __call__(self, server: Server, *, tls: ssl.SSLContext | None = None) -> int: ...


@pytest.fixture
async def open_server(nursery: trio.Nursery) -> AsyncIterator[Open]:
    """Opens a server and returns its port; the test as a whole has 10 s."""

    async def open_one(server: Server, *, tls: ssl.SSLContext | None = None) -> int:
        serve: Any = trio.serve_tcp if tls is None else partial(trio.serve_ssl_over_tcp, ssl_context=tls)
        [listener] = await nursery.start(partial(serve, server.serve, port=0, host="127.0.0.1"))
        port: int = (listener if tls is None else listener.transport_listener).socket.getsockname()[1]
        return port

    with trio.fail_after(10):
        yield open_one


def model_at(port: int, *, scheme: str = "http", host: str = "127.0.0.1", **settings: Any) -> OpenAIChat:
    """A model that sends a request once."""
    return OpenAIChat("m", base_url=f"{scheme}://{host}:{port}/v1", api_key="sk-x", **{"retries": 0, **settings})


@pytest.fixture
async def network(nursery: trio.Nursery) -> Network:
    return Network(nursery)


@pytest.fixture
async def make_model(network: Network) -> MakeModel:
    """Makes models whose network is `network`, and which send a request once."""

    def make(**settings: Any) -> OpenAIChat:
        settings.setdefault("base_url", "http://127.0.0.1:8080/v1")
        settings.setdefault("api_key", "sk-very-secret")
        settings.setdefault("transport", network.transport())
        settings.setdefault("retries", 0)
        return OpenAIChat("m", **settings)

    return make


@pytest.fixture
async def meet(nursery: trio.Nursery) -> Meet:
    """Makes models that speak to an Interactions server, in memory."""

    def make(server: InteractionsServer, **settings: Any) -> GeminiInteractions:
        settings.setdefault("api_key", "key-very-secret")
        transport = Network(nursery, server).transport()
        return GeminiInteractions("gemini-x", base_url="http://127.0.0.1:80/v1", transport=transport, **settings)

    return make
