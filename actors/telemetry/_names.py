"""The words of the conventions: attributes, metrics with their buckets, and providers.

They are in development there, and change; so they stand here, and no version of a package decides what is written.
"""

from __future__ import annotations

from types import MappingProxyType

from protocol.usage import Usage

__all__ = (
    "AGENT_BUCKETS",
    "AGENT_ID",
    "AGENT_NAME",
    "ARGUMENTS",
    "CALL_BUCKETS",
    "CALL_ID",
    "CONVERSATION",
    "ERROR",
    "FINISH",
    "INPUT_MESSAGES",
    "MAX_TOKENS",
    "MODEL",
    "OPERATION",
    "OUTPUT_MESSAGES",
    "PROVIDER",
    "RESPONSE",
    "RESULT",
    "SYSTEM",
    "TEMPERATURE",
    "TOKEN_BUCKETS",
    "TOKEN_TYPE",
    "TOOL_NAME",
    "TOOL_TYPE",
    "provider_and_model",
    "usage_attributes",
)

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
TEMPERATURE = "gen_ai.request.temperature"
MAX_TOKENS = "gen_ai.request.max_tokens"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
FINISH = "gen_ai.response.finish_reasons"
RESPONSE = "gen_ai.response.id"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL_ID = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM = "gen_ai.system_instructions"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  the type of a token is no secret
ERROR = "error.type"

TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
CALL_BUCKETS = tuple(0.01 * 2**power for power in range(14))
AGENT_BUCKETS = tuple(0.1 * 2**power for power in range(13))

_PROVIDERS = MappingProxyType({
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
})
"""Those that the conventions call by another name than the house does."""


def provider_and_model(name: str) -> tuple[str, str]:
    """Whose model it is, and what they call it. One of no vendor is the house's own."""
    vendor, colon, model = name.partition(":")
    return (_PROVIDERS.get(vendor, vendor), model) if colon else ("onward", name)


def usage_attributes(usage: Usage) -> dict[str, int]:
    """What is known of what was used."""
    knows_input = (usage.uncached_input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) != (None, None, None)
    found = {
        "gen_ai.usage.input_tokens": usage.input_tokens if knows_input else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: tokens for name, tokens in found.items() if tokens is not None}
