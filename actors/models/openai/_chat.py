"""Chat Completions: the models of OpenAI, and of every server that speaks its format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from protocol.errors import SpecError
from protocol.model import ModelRequest, Profile

from ..servers import SERVERS, MaxTokensField, Server, server_at, server_named
from ..wire import ConnectionOptions, HttpModel, check_extra_body, connect
from ._chat_reply import ChatReply
from ._chat_request import OWNED, encode_request

__all__ = ("OpenAIChat",)


class OpenAIChat(HttpModel):
    """A model behind the Chat Completions format: OpenAI's own, or that of a compatible server.

    `OpenAIChat("gpt-x")` asks OpenAI, `OpenAIChat("deepseek-chat", server="deepseek")` one of the known servers, which
    `actors.models.servers` lists, and `OpenAIChat("any", base_url="http://127.0.0.1:8080/v1")` a server of your own.
    Any number of calls may run at the same time, `max_connections` of them over the network; the rest wait.
    """

    def __init__(
        self,
        model: str,
        *,
        server: str | Server | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        max_tokens_field: MaxTokensField | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            server: Which kind of server it is. By default the known one whose host `base_url` names; of another one
                nothing is supposed.
            base_url: Where the server's `/chat/completions` is, without that ending; by default where that kind is.
                No proxy is used for this machine.
            api_key: Sent to that address, whatever it is. By default the server's own environment variable, whose key
                is sent to the server's own hosts alone.
            profile: What the server is known to do, in place of what is written down of it.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            max_tokens_field: The name of the output cap, in place of the server's.
            connection: Headers, timeouts and the like: see `ConnectionOptions`.

        Raises:
            SpecError: A setting cannot be right, the server is unknown, has no address, or its key is missing.
        """
        known = _chosen(server, base_url)
        address = known.address(_default_address(known) if base_url is None else base_url, model)
        client, _ = connect(known.vendor, address, "/chat/completions", api_key, connection)
        super().__init__(known.name, model, client=client, profile=profile or known.profile_of(model, address))
        self._server = known
        self._extra_body = check_extra_body(extra_body or {}, OWNED)
        self._max_tokens_field: MaxTokensField | None = max_tokens_field

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(
            request,
            model=self._model,
            server=self._server,
            profile=self._profile,
            max_tokens_field=self._max_tokens_field,
            extra_body=self._extra_body,
        )

    def _reader(self, request: ModelRequest, /) -> ChatReply:
        return ChatReply(
            self._client.endpoint,
            server=self._server,
            echoes_reasoning=self._profile.echoes_reasoning,
            resume=request.resume,
        )


def _chosen(server: str | Server | None, base_url: str | None) -> Server:
    if isinstance(server, str):
        return server_named(server)
    if server is not None:
        return server
    return SERVERS["openai"] if base_url is None else server_at(base_url)


def _default_address(server: Server) -> str:
    address = server.base_url or os.environ.get(server.base_url_variable, "").strip()
    if not address:
        variable = f", or set the environment variable {server.base_url_variable}" if server.base_url_variable else ""
        raise SpecError(f"{server.title} has no address of its own: pass base_url{variable}")
    return address
