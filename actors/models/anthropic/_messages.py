"""Anthropic Messages: the models of Anthropic, and of every server that speaks its format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import attrs

from protocol.model import ModelRequest, Profile

from ..wire import ConnectionOptions, HttpModel, Vendor, check_extra_body, check_server_tools, connect
from ._messages_reply import MessagesReply
from ._messages_request import OWNED, encode_request

__all__ = ("Anthropic",)

_DEFAULT_MAX_TOKENS = 8192
_VERSION_PATH = re.compile(
    r"^([^?#]*?)/v1/*\s*(?=$|[?#])"
)  # addresses are often given with it, as other formats want it


class Anthropic(HttpModel):
    """A model behind the Messages format: Anthropic's own, or that of a compatible server.

    `Anthropic("claude-x")` asks Anthropic, `Anthropic("any", base_url="http://127.0.0.1:8080")` a server of your own.
    Any number of calls may run at the same time, `max_connections` of them over the network; the rest wait.

    Signed and redacted thinking, and blocks that are Anthropic's alone, are sent back unchanged and in their place.
    Nothing is cached unless you ask: `extra_body={"cache_control": {"type": "ephemeral"}}`; betas are `headers`.
    A turn that ends because the context window is full has the finish `length` and the raw finish
    `model_context_window_exceeded`: there is no room to continue it.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.anthropic.com",
        api_key: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        version: str = "2023-06-01",
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            base_url: Where the server's `/v1/messages` is, with or without that ending or its `/v1`. No proxy is used
                for this machine.
            api_key: Sent as `x-api-key`; by default the environment variable `ANTHROPIC_API_KEY`.
            profile: What the server is known to do. By default, tools that are off stay visible to Anthropic's own
                models, and elsewhere their calls and results are written as text. The format demands an output cap:
                where neither the request nor `default_max_tokens` names one it is 8192, which every Claude since 3.5
                takes; thinking counts towards it.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            server_tools: Definitions of tools that run at the provider, such as web search, sent as they are.
            version: The header `anthropic-version`.
            connection: Headers, timeouts and the like: see `ConnectionOptions`.

        Raises:
            SpecError: A setting cannot be right, or Anthropic's key is missing.
        """
        vendor = Vendor(
            hosts=("api.anthropic.com",),
            key_variables=("ANTHROPIC_API_KEY",),
            key_header="x-api-key",
            headers={"anthropic-version": version},
        )
        client, own = connect(vendor, _VERSION_PATH.sub(r"\1", base_url), "/v1/messages", api_key, connection)
        profile = profile or Profile(keeps_tools_when_off=own, flatten_without_tools=True)
        if profile.default_max_tokens is None:
            profile = attrs.evolve(profile, default_max_tokens=_DEFAULT_MAX_TOKENS)
        super().__init__("anthropic", model, client=client, profile=profile)
        self._extra_body = check_extra_body(extra_body or {}, OWNED)
        self._server_tools = check_server_tools(server_tools)

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(
            request,
            model=self._model,
            profile=self._profile,
            extra_body=self._extra_body,
            server_tools=self._server_tools,
        )

    def _reader(self, _request: ModelRequest, /) -> MessagesReply:
        return MessagesReply(self._client.endpoint)
