"""Servers that speak Chat Completions: where each is, which key it takes, what it can do and how it deviates.

A table of facts, from the servers' own documentation and public reports. What is not known of a server stands at the
careful value: tools are taken away when they are off, a cut text is continued by asking for it, reasoning is not sent
back, nothing is sent that the format does not have.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

import attrs

from protocol.errors import SpecError
from protocol.model import Profile

from .wire import Vendor

__all__ = ("COMPATIBLE", "SERVERS", "MaxTokensField", "Server", "server_at", "server_named")

MaxTokensField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
"""What a server calls the cap on output tokens."""

_CONTINUE = MappingProxyType({"continue_final_message": True, "add_generation_prompt": False})
_PREFIX = MappingProxyType({"prefix": True})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _as_given(base_url: str, _model: str) -> str:
    return base_url


@attrs.frozen(kw_only=True)
class Server:
    """What is known of one kind of server. `attrs.evolve()` makes one of your own from another."""

    name: str
    """The word it is named by: `OpenAIChat(..., server="ollama")`, `--model ollama:NAME`."""
    title: str
    """Its name as people write it."""
    base_url: str = ""
    """Where it is by default; `""`: nowhere in general."""
    base_url_variable: str = ""
    """The environment variable that says where it is, where that differs for everybody."""
    hosts: tuple[str, ...] = ()
    """Hosts that are its own: they need a key. One that begins with a dot stands for all hosts below it."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key. It is sent to `hosts` alone, by TLS."""
    key_header: str = "authorization"
    """The header of the key: `authorization` as a bearer token, any other as it is."""
    profile: Profile = attrs.field(factory=Profile)
    """What its models can do, as far as that is known."""
    max_tokens_field: MaxTokensField = "max_tokens"
    """What it calls the cap on output tokens."""
    fixed_temperature: str = ""
    """A pattern of the names of models that refuse a temperature."""
    prefix_body: Mapping[str, Any] = _CONTINUE
    """Fields of a request whose last message, the model's own, is to go on (strategy `exact_prefix`)."""
    prefix_message: Mapping[str, Any] = _NOTHING
    """Fields of that message itself."""
    prefix_path: str = ""
    """Such a request is understood only below this path; elsewhere a cut text is continued by `user_turn`."""
    echoes_prefix: bool = False
    """Its reply repeats that message before it goes on: the repetition is taken away."""
    continues_in_reasoning: bool = False
    """What follows that message may come as reasoning, because its parser has not seen the reasoning end. It is read
    as text: only a turn with visible text is continued so, and behind that there is no more reasoning."""
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    """The field of a message that holds shown reasoning, where a reply has not said otherwise."""
    needs_reasoning: bool = False
    """A turn with tool calls must have that field, be it empty."""
    strict: bool = False
    """It refuses fields that it does not know, `stream_options` and those that other servers add among them."""
    short_call_ids: bool = False
    """Ids of calls must be nine letters and digits."""
    user_after_tool: bool = True
    """A user message may follow tool results; else a short assistant message is put between."""
    address: Callable[[str, str], str] = attrs.field(default=_as_given, eq=False, repr=False)
    """Completes a base URL for a model."""

    @property
    def vendor(self) -> Vendor:
        """Who answers there, as far as the connection goes."""
        return Vendor(hosts=self.hosts, key_variables=self.key_variables, key_header=self.key_header)

    def profile_of(self, model: str, base_url: str) -> Profile:
        """What a model of it can do at an address."""
        profile = self.profile
        if self.fixed_temperature and re.match(self.fixed_temperature, model):
            profile = attrs.evolve(profile, takes_temperature=False)
        if self.prefix_path and not urlsplit(base_url).path.startswith(self.prefix_path):
            profile = attrs.evolve(profile, continues_text="user_turn")
        return profile


def _azure_address(base_url: str, model: str) -> str:
    """The address of a resource alone is completed: with `?api-version=` to that of a deployment, else to the v1 API."""
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        return base_url  # it is refused where addresses are checked
    if parts.path.rstrip("/") not in {"", "/openai"}:
        return base_url
    path = f"/openai/deployments/{quote(model, safe='')}" if "api-version=" in parts.query else "/openai/v1"
    return urlunsplit(parts._replace(path=path))


_OF_OPENAI = Profile(keeps_tools_when_off=True)
_EXACT = Profile(continues_text="exact_prefix")

COMPATIBLE = Server(name="openai", title="a compatible server", key_variables=("OPENAI_API_KEY",))
"""A server of which nothing is known but its format."""

SERVERS: Mapping[str, Server] = MappingProxyType({
    server.name: server
    for server in (
        Server(
            name="openai",
            title="OpenAI",
            base_url="https://api.openai.com/v1",
            hosts=("api.openai.com",),
            key_variables=("OPENAI_API_KEY",),
            profile=_OF_OPENAI,
            max_tokens_field="max_completion_tokens",
            fixed_temperature=r"o\d|gpt-5(?!.*chat)",
        ),
        Server(
            # Deployments have names of their own, so what their models refuse is not known.
            name="azure",
            title="Azure OpenAI",
            base_url_variable="AZURE_OPENAI_ENDPOINT",
            hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
            key_variables=("AZURE_OPENAI_API_KEY",),
            key_header="api-key",
            profile=_OF_OPENAI,
            max_tokens_field="max_completion_tokens",
            address=_azure_address,
        ),
        Server(
            # A router: what stands behind differs by model. `reasoning_details` come back as they were.
            name="openrouter",
            title="OpenRouter",
            base_url="https://openrouter.ai/api/v1",
            hosts=("openrouter.ai",),
            key_variables=("OPENROUTER_API_KEY",),
            profile=Profile(echoes_reasoning=True),
            reasoning_field="reasoning",
        ),
        Server(
            # api-docs.deepseek.com: thinking_mode (the reasoning of turns with calls is demanded back, on pain of
            # 400), chat_prefix_completion (beta address alone).
            name="deepseek",
            title="DeepSeek",
            base_url="https://api.deepseek.com",
            hosts=("api.deepseek.com",),
            key_variables=("DEEPSEEK_API_KEY",),
            profile=Profile(continues_text="exact_prefix", echoes_reasoning=True),
            prefix_body=_NOTHING,
            prefix_message=_PREFIX,
            prefix_path="/beta",
            needs_reasoning=True,
        ),
        Server(
            # docs.mistral.ai: prefix ("you can remove the prefix" from the reply). Public reports: error 3230 for a
            # user message behind tool results, 422 for unknown fields, 400 for ids of another form.
            name="mistral",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            hosts=("api.mistral.ai",),
            key_variables=("MISTRAL_API_KEY",),
            profile=_EXACT,
            prefix_body=_NOTHING,
            prefix_message=_PREFIX,
            echoes_prefix=True,
            strict=True,
            short_call_ids=True,
            user_after_tool=False,
        ),
        Server(
            # Its documentation: continue_final_message. Its issues 28089 and 38749: the reasoning parser.
            name="vllm",
            title="vLLM",
            base_url="http://127.0.0.1:8000/v1",
            profile=_EXACT,
            continues_in_reasoning=True,
            reasoning_field="reasoning",
        ),
        Server(
            # A last message of the model's goes on by itself, unless the server was started with
            # --no-prefill-assistant; its newer versions know the two fields, which hold in any case.
            name="llama.cpp",
            title="llama.cpp",
            base_url="http://127.0.0.1:8080/v1",
            profile=_EXACT,
        ),
        Server(
            name="ollama",
            title="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            hosts=("ollama.com",),
            key_variables=("OLLAMA_API_KEY",),
            reasoning_field="reasoning",
        ),
        Server(name="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1"),
        Server(
            # Its pull request 2733.
            name="tgi",
            title="Text Generation Inference",
            base_url="http://127.0.0.1:3000/v1",
            profile=_EXACT,
            prefix_body=MappingProxyType({"continue_final_message": True}),
        ),
    )
})
"""The known servers, by name."""


def server_named(name: str) -> Server:
    """The known server of this name. Raises `SpecError`, which lists them."""
    if name not in SERVERS:
        near = difflib.get_close_matches(name, SERVERS, 1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise SpecError(f"there is no server {name!r}{guess}; there are: {', '.join(SERVERS)}")
    return SERVERS[name]


def server_at(base_url: str) -> Server:
    """The known server whose own host this is, else `COMPATIBLE`: a port says nothing of what listens on it."""
    try:
        host = (urlsplit(base_url.strip()).hostname or "").lower()
    except ValueError:
        return COMPATIBLE
    return next((server for server in SERVERS.values() if server.vendor.owns(host)), COMPATIBLE)
