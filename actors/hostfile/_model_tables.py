"""The keys of a model, of prices and of budgets: an option more is a line more."""

from __future__ import annotations

from typing import get_args

from protocol.model import TextContinuation

from ._kinds import Either, ListOf, MapOf
from ._table import Key, Table
from ._values import (
    COUNT,
    FILE,
    FLAG,
    JSON_TABLE,
    KEY_FILE,
    KEY_VARIABLE,
    NOT_NEGATIVE,
    NUMBER,
    OBJECT,
    POSITIVE,
    REFERENCE,
    SECONDS,
    TEXT,
    URL,
    choice,
    optional,
)

__all__ = ("BUDGET", "MODEL", "PRICES", "PROFILE")

PROFILE = Table(
    title="Profile",
    what="what a model's server is known to do: a table, such as { context_window = 32768 }",
    keys=(
        Key("context_window", COUNT, "Tokens of input and output together."),
        Key("max_output_tokens", COUNT, "The biggest output cap that the model takes."),
        Key("default_max_tokens", COUNT, "The output cap where a request names none."),
        Key("max_calls_per_turn", COUNT, "Calls beyond it are cut off. Default 128."),
        Key("keeps_tools_when_off", FLAG, "Tool choice `none` is understood, with the tools kept."),
        Key("flatten_without_tools", FLAG, "A request without tools may hold no tool blocks."),
        Key("parallel_calls", FLAG, "Whether a turn may hold several calls."),
        Key("echoes_reasoning", FLAG, "Reasoning is sent back with its turn."),
        Key("takes_temperature", FLAG, "`false`: temperature is not sent."),
        Key("continues_text", choice(*get_args(TextContinuation)), "How a text that was cut is continued."),
    ),
)
"""[models.NAME.profile]"""

MODEL = Table(
    title="Model",
    what='a model: a table, such as { model = "ollama:NAME" }',
    keys=(
        Key("model", TEXT, "`KIND:NAME`, such as `anthropic:NAME` or `ollama:NAME`; or `rules`.", to=""),
        Key("import", OBJECT, "In place of `model`, one of your own: a model, or what makes one.", to=""),
        Key("arguments", JSON_TABLE, "What `import` names makes the model: it is called with these.", to=""),
        Key("base_url", URL, "Where its server is. Default: where that kind is."),
        Key(
            "api_key_env", KEY_VARIABLE, "The environment variable with its key. Default: the kind's own.", to="api_key"
        ),
        Key("api_key_file", KEY_FILE, "A file with its key, which nobody else may read.", to="api_key"),
        Key("headers", MapOf(what="a table of texts", name=TEXT, item=TEXT), "More headers, none of them secret."),
        Key(
            "headers_env",
            MapOf(what="a table of environment variables", name=TEXT, item=KEY_VARIABLE),
            "More headers, whose values environment variables hold.",
            to="",
        ),
        Key("connect_timeout_seconds", SECONDS, "For a connection. Default 10."),
        Key("first_byte_timeout_seconds", SECONDS, "From the request to the first byte. Default 120."),
        Key("idle_timeout_seconds", SECONDS, "For the next byte of a reply. Default 60."),
        Key("hop_timeout_seconds", SECONDS, "For one request and its reply. Default: none but the others."),
        Key("call_timeout_seconds", SECONDS, "For a whole call, with its repetitions. Default 3600."),
        Key("retries", NOT_NEGATIVE, "How often a request that failed is sent again. Default 2."),
        Key("delivery", choice("strict", "replay"), "What becomes of a reply that breaks off. Default `strict`."),
        Key("max_connections", COUNT, "Calls at the same time; the rest wait. Default 32."),
        Key("proxy", URL, "The address of a proxy. Default: what the environment names."),
        Key("verify", FILE, "A file with the certificates that are trusted. Default: the public authorities."),
        Key("extra_body", JSON_TABLE, "Laid over each request's body."),
        Key(
            "server_tools",
            ListOf(what="a list of tables", item=JSON_TABLE),
            "Tools that run at the provider, as it defines them.",
        ),
        Key("version", TEXT, "The version of the provider's API, where it has one."),
        Key("encrypted_reasoning", FLAG, "Of `openai-responses`: whether reasoning is sent back encrypted."),
        Key(
            "max_tokens_field",
            choice("max_tokens", "max_completion_tokens"),
            "Of Chat Completions: what the server calls the output cap.",
        ),
        Key("profile", PROFILE, "What its server is known to do, where that is not known by its kind.", to=""),
    ),
)
"""[models.NAME]"""

_PRICE = Table(
    title="Price",
    what="what a model costs: a table, such as { input = 2.5, output = 10 }",
    keys=(
        Key("input", NUMBER, "US dollars per million tokens of input.", needed=True),
        Key("output", NUMBER, "US dollars per million tokens of output.", needed=True),
        Key("cache_read", NUMBER, "Per million tokens read from the prompt cache. Default: as input."),
        Key("cache_write", NUMBER, "Per million tokens written to the prompt cache. Default: as input."),
    ),
)
PRICES = Either(
    what='the word "genai-prices", or tables such as [prices."openai:NAME"]',
    kinds=(
        choice("genai-prices"),
        MapOf(what="prices by the names of models", name=TEXT, item=_PRICE),
    ),
)
"""prices, or [prices."KIND:NAME"]"""

BUDGET = Table(
    title="Budget",
    what="what several agents draw on together: a table, such as { max_llm_calls = 100 }",
    keys=(
        Key("max_llm_calls", optional(COUNT), "Model calls in all."),
        Key("max_tool_calls", optional(COUNT), "Tool calls in all."),
        Key("max_total_tokens", optional(COUNT), "Tokens in all."),
        Key("max_cost", optional(POSITIVE), "US dollars in all; needs prices."),
        Key("wall_clock_seconds", optional(SECONDS), "Seconds in which at least one run works."),
        Key("parent", REFERENCE, "The budget that this one is a part of.", to=""),
    ),
)
"""[budgets.NAME]"""
