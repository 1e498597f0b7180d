"""Real servers, one each for the whole session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers import _aimock
from tests.peers._aimock import AimockServer
from tests.peers._llama import LlamaServer, serve
from tests.peers._scripted_gguf import write_model


@pytest.fixture(scope="session")
def llama_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted model's file."""
    path = tmp_path_factory.mktemp("llama") / "scripted.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="session")
def llama_server(llama_model: Path) -> Iterator[LlamaServer]:
    """A llama.cpp server with two slots of 4096 tokens each."""
    with serve(llama_model) as server:
        yield server


@pytest.fixture(scope="session")
def llama_server_with_key(llama_model: Path) -> Iterator[LlamaServer]:
    """The same with one slot, that takes the key `sk-of-the-peer` alone."""
    with serve(llama_model, slots=1, context_tokens=2048, api_key="sk-of-the-peer") as server:
        yield server


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AimockServer]:
    """Aimock with the tests' own answers."""
    with _aimock.serve(tmp_path_factory.mktemp("aimock"), _aimock.ANSWERS) as server:
        yield server
