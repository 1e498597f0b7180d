"""The real models of the wire formats, with the settings of a case, and what is stored before it begins."""

from __future__ import annotations

from typing import Any

import actors.models
from actors import Price, Prices
from protocol.model import Model
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.actors.models._wire import Network

from ..program import Case

MAKERS = {
    "openai-chat": "OpenAIChat",
    "openai-responses": "OpenAIResponses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
}
ADDRESS = "http://127.0.0.1:8080/v1"


def wire_of(told: Case) -> str:
    """The wire format that the case is played on; where none is told of, any will do."""
    wire: str = told.get("wire", "openai-chat")
    return wire.partition("->")[0]


def model_of(told: Case, network: Network, wire: str | None = None) -> Model:
    """A model of the case's wire format, or of another one, in a network in memory."""
    config = told.get("config", {})
    options: dict[str, Any] = {"retries": config.get("retries", 2)}
    if "delivery" in config:
        options["delivery"] = config["delivery"]
    if "stream_idle_timeout_s" in config:
        options["idle_timeout_seconds"] = config["stream_idle_timeout_s"]
    made: Model = getattr(actors.models, MAKERS[wire or wire_of(told)])(
        "m", base_url=ADDRESS, api_key="sk-secret", transport=network.transport(), **options
    )
    if "max_calls_per_turn" in config:
        assert config["max_calls_per_turn"] == made.profile.max_calls_per_turn
    return made


def prices_of(told: Case, model: Model) -> dict[str, Any]:
    """The option that says what the model costs, if the case does."""
    if "prices_per_mtok" not in told:
        return {}
    cost = told["prices_per_mtok"]
    price = Price(input=cost["in"], output=cost["out"], cache_read=cost["cache_read"], cache_write=cost["cache_write"])
    return {"prices": Prices({model.name: price})}


def stored_before(told: Case) -> list[Message]:
    """The conversation that the agent of a case begins with."""
    if "stored_turn" in told:
        called = ToolCall("c1", "t", "{}")
        return [UserMessage("q"), AssistantMessage((called,)), *_stored_turn(told["stored_turn"])]
    if "on_context_overflow" in told.get("hooks", {}):
        return [UserMessage("an earlier question"), AssistantMessage((TextPart("an earlier answer"),))]
    return [_message(message) for message in told.get("stored_history", [])[:-1]]


def _stored_turn(turn: Case) -> list[Message]:
    """Results and text that shared one turn are two messages: results have a place of their own."""
    texts = [part["text"] for part in turn["parts"] if "result" not in part]
    results = [ToolResult(part["result"], "t", "ok", part["text"]) for part in turn["parts"] if "result" in part]
    return [*map(UserMessage, texts), ToolMessage(tuple(results))]


def _message(told: Case) -> Message:
    match told["role"]:
        case "user":
            return UserMessage(told["text"])
        case "tool_result":
            return ToolMessage((ToolResult(told["call_id"], "t", "ok", told["text"]),))
        case other:
            raise AssertionError(f"no message is known for the role {other}")
