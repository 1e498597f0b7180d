"""Chat Completions requests: a forced tool, and the provider's own options."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.openai._chat_request import encode_request
from protocol.errors import SpecError
from protocol.model import ForceTool, ModelRequest, ToolChoice, ToolDefinition
from protocol.turns import UserMessage

SEARCH = ToolDefinition("search", "Search it.", {"type": "object", "properties": {}})


def body(settings: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(messages=[UserMessage("Hello?")], **fields)
    encoded = json.loads(encode_request(request, model="m", **(settings or {})).decode())
    assert isinstance(encoded, dict)
    return encoded


FORCED = {"type": "function", "function": {"name": "search"}}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", None), ("none", "none"), ("required", "required"), (ForceTool("search"), FORCED)],
)
def test_tool_choices(choice: ToolChoice, sent: object) -> None:
    """Each choice has its form on the wire; `auto` is the server's default and not sent."""
    assert sent == body(tools=[SEARCH], tool_choice=choice).get("tool_choice")


@pytest.mark.parametrize("choice", ["none", "required", ForceTool("search")])
def test_no_choice_is_sent_without_tools(choice: ToolChoice) -> None:
    """Servers refuse a tool choice where there is no tool."""
    assert not {"tools", "tool_choice"} & set(body(tool_choice=choice))


def test_options_are_merged_last() -> None:
    """They win over the request's own settings and over `extra_body`; the rest of both stays."""
    settings = {"extra_body": {"seed": 1, "top_p": 0.5}}
    sent = body(settings, temperature=1.0, max_tokens=9, provider_options={"seed": 2, "temperature": 0, "user": "Ann"})

    assert (2, 0.5, 0, 9, "Ann") == (sent["seed"], sent["top_p"], sent["temperature"], sent["max_tokens"], sent["user"])
    assert {**body(), "seed": 2, "top_p": 0.5, "temperature": 0, "max_tokens": 9, "user": "Ann"} == sent


def test_none_removes_a_field() -> None:
    """A field that a server does not know can be taken out, the engine's own and those of `extra_body`."""
    sent = body({"extra_body": {"seed": 1}}, max_tokens=9, provider_options={"max_tokens": None, "seed": None})

    assert body() == sent


@pytest.mark.parametrize("name", ["messages", "stream", "model", "tools", "tool_choice"])
@pytest.mark.parametrize("value", [None, False, "auto", []])
def test_what_a_request_says_itself_cannot_be_an_option(name: str, value: object) -> None:
    """Conversation, streaming and tools are never overridden: an option could turn tools on in a final call."""
    with pytest.raises(SpecError, match=f"provider_options must not set {name}"):
        body(provider_options={name: value})


def test_options_do_not_change() -> None:
    """The caller's mapping is read, never written."""
    options = {"seed": 2, "user": None}
    body(provider_options=options)

    assert {"seed": 2, "user": None} == options


@pytest.mark.parametrize("options", [None, {}])
def test_no_options_are_no_fields(options: dict[str, Any] | None) -> None:
    """Nothing is sent for options that there are not."""
    assert body() == body(provider_options=options)
