"""Tools that run at the provider: sent as they are given, beside those of the program, by every format that has them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.models import Anthropic, Gemini, GeminiInteractions, OpenAIResponses
from actors.models.gemini._interactions_request import request_body
from protocol.errors import SpecError
from protocol.model import ModelRequest, ToolChoice, ToolDefinition
from protocol.turns import UserMessage

SEARCH = {"web_search": {"deep": True}}
OWN = ToolDefinition("t", "Does it.", {"type": "object"})
KINDS = [Anthropic, Gemini, GeminiInteractions, OpenAIResponses]


def tools_sent(kind: Any, tools: tuple[ToolDefinition, ...] = (), choice: ToolChoice = "auto") -> list[Any]:
    """The tools of a request, as the format writes them."""
    request = ModelRequest(messages=[UserMessage("go")], tools=tools, tool_choice=choice)
    if kind is GeminiInteractions:
        found: list[Any] = request_body(request, model="m", server_tools=[SEARCH]).get("tools", [])
        return found
    body: dict[str, Any] = msgspec.json.decode(kind("m", api_key="key-of-it", server_tools=[SEARCH])._encode(request))
    return list(body.get("tools", []))


@pytest.mark.parametrize("kind", KINDS)
def test_they_stand_before_the_programs_own(kind: Any) -> None:
    """Both are offered; without tools of the program the provider's are offered alone."""
    both = tools_sent(kind, (OWN,))

    assert (SEARCH, 2) == (both[0], len(both))
    assert [SEARCH] == tools_sent(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_off_is_off(kind: Any) -> None:
    """A final call without definitions offers nothing, not even what runs elsewhere."""
    assert [] == tools_sent(kind, choice="none")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_list_of_objects_is_refused(kind: Any) -> None:
    """At once, not with the first call."""
    with pytest.raises(SpecError, match="server_tools must be a list of JSON objects"):
        kind("m", api_key="key-of-it", server_tools=["web_search"])
