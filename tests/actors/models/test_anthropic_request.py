"""Messages requests: what goes on the wire."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from actors.models.anthropic._messages_request import OWNED, encode_request
from actors.models.wire import check_extra_body, check_server_tools
from protocol.errors import SpecError
from protocol.model import ForceTool, ModelRequest, Profile, ToolChoice, ToolDefinition
from protocol.turns import AssistantMessage, ToolCall, UserMessage

SEARCH = ToolDefinition("search", "Search it.", {"type": "object", "properties": {"q": {"type": "string"}}})
WEB = {"type": "web_search_20250305", "name": "web_search"}
USERS = [UserMessage("Hello?")]


def body(request: ModelRequest | None = None, *, profile: Profile | None = None, **settings: Any) -> dict[str, Any]:
    encoded = encode_request(
        request or ModelRequest(messages=USERS),
        model="m",
        profile=profile or Profile(default_max_tokens=100),
        **settings,
    )
    sent = json.loads(encoded.decode())
    assert isinstance(sent, dict)
    return sent


def test_the_least_request() -> None:
    """Only what was asked for is sent, and the cap that the format demands."""
    expected = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
        "stream": True,
    }

    assert expected == body()


def test_settings_are_sent_only_if_set() -> None:
    """The request's cap wins over the profile's, 0 is a temperature, and blank system text is none."""
    sent = body(ModelRequest(messages=USERS, system="Be exact.", temperature=0.0, max_tokens=7))

    assert ("Be exact.", 0.0, 7) == (sent["system"], sent["temperature"], sent["max_tokens"])
    assert body() == body(ModelRequest(messages=USERS, system=" \n"))


def test_a_model_that_takes_no_temperature_gets_none() -> None:
    """It would refuse the request."""
    profile = Profile(default_max_tokens=100, takes_temperature=False)

    assert body() == body(ModelRequest(messages=USERS, temperature=0.5), profile=profile)


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        ("auto", None, None),
        ("auto", True, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", None, {"type": "none"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        (ForceTool("search"), None, {"type": "tool", "name": "search"}),
        (ForceTool("search"), False, {"type": "tool", "name": "search", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choices(choice: ToolChoice, parallel: bool | None, sent: object) -> None:
    """Each choice has its form on the wire; `auto` is the server's default and not sent."""
    profile = Profile(default_max_tokens=100, parallel_calls=parallel)

    assert sent == body(ModelRequest(messages=USERS, tools=[SEARCH], tool_choice=choice), profile=profile).get(
        "tool_choice"
    )


@pytest.mark.parametrize("choice", ["auto", "none", "required", ForceTool("search")])
def test_no_word_of_tools_without_definitions(choice: ToolChoice) -> None:
    """Servers refuse a tool choice where there is no tool."""
    profile = Profile(default_max_tokens=100, parallel_calls=False)

    assert body() == body(ModelRequest(messages=USERS, tool_choice=choice), profile=profile)


@pytest.mark.parametrize(
    ("tools", "choice", "names", "sent"),
    [
        ([], "auto", ["web_search"], None),
        ([], "required", ["web_search"], None),
        ([], "none", None, None),
        ([SEARCH], "auto", ["web_search", "search"], None),
        ([SEARCH], "none", ["web_search", "search"], {"type": "none"}),
    ],
)
def test_tools_of_the_provider(tools: list[ToolDefinition], choice: ToolChoice, names: Any, sent: object) -> None:
    """They are sent as they are, before ours, and are off when ours are."""
    made = body(ModelRequest(messages=USERS, tools=tools, tool_choice=choice), server_tools=[WEB])

    assert names == ([tool["name"] for tool in made["tools"]] if "tools" in made else None)
    assert sent == made.get("tool_choice")


def test_a_definition_has_its_schema() -> None:
    """Schemas in read-only views, as agents hold them, are JSON objects on the wire; no empty description is sent."""
    parameters = MappingProxyType({"type": "object", "properties": MappingProxyType({"q": {"enum": ("a", "b")}})})
    request = ModelRequest(messages=USERS, tools=[ToolDefinition("t", "", parameters), SEARCH])
    schema = {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}}

    assert [
        {"name": "t", "input_schema": schema},
        {"name": "search", "description": "Search it.", "input_schema": dict(SEARCH.parameters)},
    ] == body(request)["tools"]


def test_options_are_merged_last() -> None:
    """They win over the request's own settings and over `extra_body`; `None` removes a field."""
    request = ModelRequest(
        messages=USERS, temperature=1.0, provider_options={"top_k": 2, "thinking": {"type": "adaptive"}, "temperature": None}
    )  # fmt: skip
    sent = body(request, extra_body={"top_k": 1, "top_p": 0.5, "stream": None})

    assert {**body(), "top_k": 2, "top_p": 0.5, "thinking": {"type": "adaptive"}} == {**sent, "stream": True}
    assert "stream" not in sent


@pytest.mark.parametrize("name", ["messages", "stream", "model", "system", "tools", "tool_choice"])
def test_what_a_request_says_itself_cannot_be_an_option(name: str) -> None:
    """Conversation, streaming and tools are never overridden: an option could turn tools on in a final call."""
    with pytest.raises(SpecError, match=f"provider_options must not set {name}"):
        body(ModelRequest(messages=USERS, provider_options={name: None}))


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"messages": []}, "must not set messages"),
        ({"tools": [], "system": "x"}, "must not set system, tools"),
        ({"x": object()}, "must be a JSON object"),
    ],
)
def test_extra_fields_that_cannot_be_are_refused_at_once(extra: dict[str, Any], said: str) -> None:
    """What the request says itself cannot be set beside it; what is no JSON is found before the first call."""
    with pytest.raises(SpecError, match=f"extra_body {said}"):
        check_extra_body(extra, OWNED)


@pytest.mark.parametrize("tools", [WEB, ["web_search"], [{"x": object()}], 3])
def test_tools_of_the_provider_that_cannot_be_are_refused_at_once(tools: Any) -> None:
    """A single definition is no list of them."""
    with pytest.raises(SpecError, match="server_tools must be a list of JSON objects"):
        check_server_tools(tools)


def test_what_is_given_is_copied() -> None:
    """Later changes of the caller's do not reach the model."""
    inner: list[int] = [1]
    copies = check_extra_body({"x": inner}, OWNED), check_server_tools([{"x": inner}])
    inner.append(2)

    assert ({"x": [1]}, [{"x": [1]}]) == copies


def test_the_body_is_strict_json_in_utf8() -> None:
    """Lone surrogates and NaN, in whatever place, do not reach the server."""
    request = ModelRequest(
        messages=[UserMessage("a\ud800b é"), AssistantMessage((ToolCall("a", "t", '{"n":"\udc00"}'),))],
        tools=[ToolDefinition("t\udfff", "x", MappingProxyType({"default": float("nan")}))],
    )
    encoded = encode_request(request, model="m", profile=Profile(default_max_tokens=1))
    sent = json.loads(encoded.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))

    assert "a\ufffdb é" == sent["messages"][0]["content"][0]["text"]
    assert {"n": "\ufffd"} == sent["messages"][1]["content"][0]["input"]
    assert {"name": "t\ufffd", "description": "x", "input_schema": {"default": None}} == sent["tools"][0]
