"""The known servers: which one is meant, what its requests look like, and whose key goes where."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from actors.models.openai import OpenAIChat
from actors.models.openai._chat_request import encode_request
from actors.models.servers import COMPATIBLE, SERVERS, Server, server_at, server_named
from protocol.errors import SpecError
from protocol.model import CONTINUE_TEXT, ModelRequest, Profile, Resume, ToolDefinition
from protocol.turns import AssistantMessage, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage

TOOL = ToolDefinition("t", "Does it.", {"type": "object"})
HELLO = UserMessage("Hello?")
CUT = Resume((TextPart("It is"),), "exact_prefix")
pytestmark = pytest.mark.usefixtures("no_keys")

KEYS = {name for server in SERVERS.values() for name in server.key_variables}


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no address in the environment."""
    for name in (*KEYS, "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def body(server: str | Server, request: ModelRequest | None = None, **settings: Any) -> dict[str, Any]:
    known = SERVERS[server] if isinstance(server, str) else server
    encoded = encode_request(request or ModelRequest(messages=[HELLO]), model="m", server=known, **settings)
    sent: dict[str, Any] = json.loads(encoded)
    return sent


def headers_of(model: OpenAIChat) -> dict[str, str]:
    """What the model's client sends with each request."""
    return model._client._headers


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://API.OpenAI.com/v1", "openai"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://mine.services.ai.azure.com", "azure"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.deepseek.com/beta", "deepseek"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://ollama.com/v1", "ollama"),
    ],
)
def test_a_server_is_known_by_its_host(base_url: str, name: str) -> None:
    """Whatever the path, and in whatever letters."""
    assert SERVERS[name] is server_at(base_url)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:11434/v1",
        "http://localhost:8000/v1",
        "https://api.openai.com.example.com/v1",
        "https://notopenrouter.ai/v1",
        "https://openai.azure.com.example.com",
        "http://[::1",
        "",
    ],
)
def test_nothing_is_supposed_of_another_address(base_url: str) -> None:
    """A port proves nothing, and a host that looks alike is another."""
    assert COMPATIBLE is server_at(base_url)
    assert Profile() == COMPATIBLE.profile


def test_a_server_is_chosen_by_name_or_given() -> None:
    """A name brings the address; an object may be one's own; a wrong name is told from the right one."""
    named = OpenAIChat("deepseek-chat", server="deepseek", api_key="k")
    own = OpenAIChat("m", server=attrs.evolve(SERVERS["vllm"], name="ours", base_url="http://10.0.0.1/v1"))
    with pytest.raises(
        SpecError, match=r"there is no server 'ollma' \(did you mean ollama\?\); there are: openai, azure"
    ):
        server_named("ollma")

    assert "<OpenAIChat 'deepseek-chat' at https://api.deepseek.com/chat/completions>" == repr(named)
    assert ("deepseek:deepseek-chat", True) == (named.name, named.profile.echoes_reasoning)
    assert ("ours:m", "<OpenAIChat 'm' at http://10.0.0.1/v1/chat/completions>") == (own.name, repr(own))


def test_a_profile_given_stands_in_for_the_servers() -> None:
    """Each fact of the table can be overridden."""
    given = Profile(continues_text="none", takes_temperature=False)
    model = OpenAIChat("m", server="vllm", profile=given)

    assert attrs.evolve(given, reports_sending=True) == model.profile


@pytest.mark.parametrize(
    ("model", "takes"),
    [("o3-mini", False), ("o1", False), ("gpt-5", False), ("gpt-5-mini", False), ("gpt-5-chat-latest", True)]
    + [("gpt-4o", True), ("gpt-x", True), ("omni", True)],
)
def test_models_that_refuse_a_temperature_are_sent_none(model: str, takes: bool) -> None:
    """By the name, at OpenAI itself."""
    chat = OpenAIChat(model, api_key="k")
    request = ModelRequest(messages=[HELLO], temperature=0.5)

    assert takes == chat.profile.takes_temperature
    assert takes == ("temperature" in json.loads(chat._encode(request)))
    assert OpenAIChat(model, base_url="http://a.b").profile.takes_temperature


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/", "https://r.openai.azure.com/openai/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://r.openai.azure.com/?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/deployments/my%2Fgpt/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://r.openai.azure.com/openai/deployments/other?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/deployments/other/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_azure_addresses(base_url: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resource is enough; with a version it is the deployment's; a whole address stays. The key has its own header."""
    model = OpenAIChat("my/gpt", base_url=base_url, api_key="k")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", base_url)
    by_variable = OpenAIChat("my/gpt", server="azure", api_key="k")

    assert [address] * 2 == [model._client.endpoint.url, by_variable._client.endpoint.url]
    assert ("azure:my/gpt", "k") == (model.name, headers_of(model)["api-key"])
    assert "authorization" not in headers_of(model)


def test_a_server_without_an_address_wants_one() -> None:
    """The error names the setting and the variable."""
    with pytest.raises(
        SpecError, match="Azure OpenAI has no address of its own: pass base_url, or set .* AZURE_OPENAI_E"
    ):
        OpenAIChat("gpt", server="azure", api_key="k")
    with pytest.raises(SpecError, match="base_url must be an http or https address"):
        OpenAIChat("gpt", server="azure", api_key="k", base_url="https://[x")


@pytest.mark.parametrize("name", [name for name, server in SERVERS.items() if server.key_variables])
def test_a_key_of_the_environment_goes_to_its_own_hosts_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever chooses an address does not get the key, be the server named or the host alike; a given key goes along."""
    server = SERVERS[name]
    monkeypatch.setenv(server.key_variables[0], "sk-of-the-environment\n")
    host = f"mine{server.hosts[0]}" if server.hosts[0].startswith(".") else server.hosts[0]
    at_home = OpenAIChat("m", server=name, base_url=f"https://{host}/v1")
    abroad = [
        OpenAIChat("m", server=name, base_url=f"https://{address}/v1")
        for address in ("example.com", f"{host}.example.com", f"x-{host}".replace("mine.", ""), "127.0.0.1:8080")
    ]
    given = OpenAIChat("m", server=name, base_url="https://example.com/v1", api_key="sk-given")
    expected = "sk-of-the-environment" if server.key_header == "api-key" else "Bearer sk-of-the-environment"

    assert expected == headers_of(at_home)[server.key_header]
    assert [] == [repr(model) for model in abroad if "sk-of" in str(headers_of(model))]
    assert "sk-given" in headers_of(given)[server.key_header]


def test_a_key_of_the_environment_goes_by_tls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong scheme does not show it to the network; the error says why it is missing."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with pytest.raises(
        SpecError, match="needs a key: pass api_key, or set .* OPENAI_API_KEY; that one is sent to https"
    ):
        OpenAIChat("m", base_url="http://api.openai.com/v1")


def test_a_key_that_is_not_sent_is_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server wants a key and one is set for another, the hint says that it was kept back, and not what it is."""
    without = OpenAIChat("m", base_url="http://127.0.0.1:8080/v1")._client.endpoint.key_hint
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    beside = OpenAIChat("m", base_url="http://127.0.0.1:8080/v1")._client.endpoint.key_hint

    assert "pass the key of 127.0.0.1 as api_key (--api-key-env)" == without
    assert f"{without} (OPENAI_API_KEY is set, and not sent to 127.0.0.1: it is not the key of that host)" == beside


CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}
LAST = {"role": "assistant", "content": "It is"}


@pytest.mark.parametrize(
    ("server", "fields", "last"),
    [
        ("vllm", CONTINUED, LAST),
        ("llama.cpp", CONTINUED, LAST),
        ("tgi", {"continue_final_message": True}, LAST),
        ("deepseek", {}, {**LAST, "prefix": True}),
        ("mistral", {}, {**LAST, "prefix": True}),
        (COMPATIBLE, CONTINUED, LAST),
    ],
)
def test_exact_continuation(server: str | Server, fields: dict[str, Any], last: dict[str, Any]) -> None:
    """The turn so far stands last, behind the tail, with the words by which the server goes on; else they are not sent."""
    request = ModelRequest(messages=[HELLO], tail="Now.", resume=CUT)
    sent, plain = body(server, request), body(server)

    assert last == sent["messages"][-1]
    assert ["user", "user", "assistant"] == [message["role"] for message in sent["messages"]]
    assert fields == {key: value for key, value in sent.items() if key not in plain}
    assert [] == [message for message in sent["messages"][:-1] if "prefix" in message]


def test_asking_to_go_on() -> None:
    """`user_turn` sends the turn so far and the question behind it, and none of those words."""
    sent = body("vllm", ModelRequest(messages=[HELLO], resume=Resume(CUT.parts, "user_turn")))

    assert [LAST, {"role": "user", "content": CONTINUE_TEXT}] == sent["messages"][-2:]
    assert not CONTINUED.keys() & sent.keys()


def test_nothing_to_go_on_from_sends_no_such_words() -> None:
    """A server refuses them where the last message is not the model's."""
    sent = body("vllm", ModelRequest(messages=[HELLO], resume=Resume((TextPart(" "),), "exact_prefix")))

    assert ["user"] == [message["role"] for message in sent["messages"]]
    assert not CONTINUED.keys() & sent.keys()


def test_deepseek_continues_exactly_at_its_beta_address() -> None:
    """Elsewhere the field is not understood, and the text is asked for."""
    kinds = [
        OpenAIChat("m", server="deepseek", base_url=base_url, api_key="k").profile.continues_text
        for base_url in (None, "https://api.deepseek.com/v1", "https://api.deepseek.com/beta")
    ]

    assert ["user_turn", "user_turn", "exact_prefix"] == kinds


def test_what_a_strict_server_refuses_is_not_sent() -> None:
    """Mistral: no `stream_options`, ids of nine letters and digits, alike in call and result, no user behind a tool."""
    request = ModelRequest(
        messages=[
            HELLO,
            AssistantMessage((ToolCall("call_long-id", "t", "{}"), ToolCall("abcDEF123", "t", "{}"))),
            ToolMessage((ToolResult("call_long-id", "t", "ok", "1"), ToolResult("abcDEF123", "t", "ok", "2"))),
        ],
        tail="Answer now.",
        max_tokens=9,
    )
    sent = body("mistral", request)
    _, turn, first, second, between, tail = sent["messages"]
    ids = [call["id"] for call in turn["tool_calls"]]

    assert {"model", "messages", "stream", "max_tokens"} == sent.keys()
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert (True, True, "abcDEF123") == (ids[0].isalnum(), len(ids[0]) == 9, ids[1])
    assert ({"role": "assistant", "content": "OK."}, "Answer now.") == (between, tail["content"])
    assert "call_long-id" == body("openai", request)["messages"][2]["tool_call_id"]
    assert ["tool", "user"] == [message["role"] for message in body("openai", request)["messages"][-2:]]


@pytest.mark.parametrize(
    ("server", "field"),
    [("openai", "max_completion_tokens"), ("azure", "max_completion_tokens"), ("vllm", "max_tokens")],
)
def test_the_cap_has_the_servers_name(server: str, field: str) -> None:
    """And a default of the profile holds where the request names none."""
    capped, default = ModelRequest(messages=[HELLO], max_tokens=7), Profile(default_max_tokens=99)

    assert 7 == body(server, capped)[field]
    assert 7 == body(server, capped, profile=default)[field]
    assert 99 == body(server, profile=default)[field]
    assert field not in body(server)


@pytest.mark.parametrize("parallel", [None, True, False])
def test_several_calls_at_once(parallel: bool | None) -> None:
    """What the profile says is sent where there are tools, and left to the server where it says nothing."""
    profile = Profile(parallel_calls=parallel)
    sent = body("openai", ModelRequest(messages=[HELLO], tools=[TOOL]), profile=profile)

    assert parallel == sent.get("parallel_tool_calls")
    assert "parallel_tool_calls" not in body("openai", profile=profile)
    assert (parallel is not None) == ("parallel_tool_calls" in sent)


def test_the_table_is_whole() -> None:
    """Every server can be used: it has an address or a variable for one; those on this machine need no key."""
    assert [] == [name for name, server in SERVERS.items() if name != server.name or not server.title]
    assert ["azure"] == [name for name, server in SERVERS.items() if not server.base_url and server.base_url_variable]
    for name, server in SERVERS.items():
        if server.base_url.startswith("http://127.0.0.1:"):
            assert name in repr(OpenAIChat("m", server=name).name)
