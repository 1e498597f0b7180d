"""A network in memory for the models' tests."""

from __future__ import annotations

from typing import Any, Protocol

import pytest
import trio

from actors.models.openai import OpenAIChat
from tests.actors.models._wire import Network


class MakeModel(Protocol):
    def __call__(self, **settings: Any) -> OpenAIChat: ...


@pytest.fixture
async def network(nursery: trio.Nursery) -> Network:
    return Network(nursery)


@pytest.fixture
async def make_model(network: Network) -> MakeModel:
    """Makes models whose network is `network`."""

    def make(**settings: Any) -> OpenAIChat:
        settings.setdefault("base_url", "http://127.0.0.1:8080/v1")
        settings.setdefault("api_key", "sk-very-secret")
        settings.setdefault("transport", network.transport())
        return OpenAIChat("m", **settings)

    return make
