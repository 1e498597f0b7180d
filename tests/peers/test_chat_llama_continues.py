"""What is written down of llama.cpp's server, against the real one: how it continues a text, and how it lists models."""

from __future__ import annotations

import httpx
import pytest
import trio

from actors.cli._survey import find_local
from actors.models.named import KINDS
from actors.models.openai import list_models
from actors.models.openai._chat_request import encode_request
from actors.models.servers import SERVERS
from protocol.model import ModelRequest, Resume
from protocol.turns import TextPart, UserMessage
from tests.peers._llama import LlamaServer

pytestmark = pytest.mark.peer

REQUEST = ModelRequest(messages=[UserMessage("Why?")], resume=Resume((TextPart("Because it"),), "exact_prefix"))


@pytest.mark.parametrize("fields", [{}, {"continue_final_message": None, "add_generation_prompt": None}])
async def test_a_cut_text_stays_open(fields: dict[str, None], llama_server: LlamaServer) -> None:
    """The prompt ends with the text itself, by the two fields and by the server's own rule without them."""
    body = encode_request(REQUEST, model="m", server=SERVERS["llama.cpp"], extra_body=fields)
    with trio.fail_after(30):
        async with httpx.AsyncClient(trust_env=False) as client:
            prompt = (await client.post(f"{llama_server.url}/apply-template", content=body)).json()["prompt"]

    assert prompt.endswith("Because it")


async def test_models_are_listed(llama_server: LlamaServer) -> None:
    """The list names the server itself, wherever it listens; the command says where that is."""
    with trio.fail_after(30):
        (listed,) = await list_models(llama_server.base_url)
        found = await find_local(KINDS["vllm"], base_url=llama_server.base_url)
    (model,) = found.models

    assert "llamacpp" == listed.owner
    assert ("llama.cpp", "running", listed.name, 0) == (found.kind, found.state, model.name, found.more)
    assert f"onward run PROMPT --model llama.cpp:{listed.name} --base-url {llama_server.base_url}" == model.command
