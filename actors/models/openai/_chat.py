"""Chat Completions: the models of OpenAI, and of every server that speaks its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from protocol.model import ModelRequest, Profile

from ..wire import ConnectionOptions, HttpModel, Vendor, connect
from ._chat_reply import ChatReply
from ._chat_request import check_extra_body, encode_request

__all__ = ("OpenAIChat",)

_OPENAI = Vendor(hosts=("api.openai.com",), key_variables=("OPENAI_API_KEY",))


class OpenAIChat(HttpModel):
    """A model behind the Chat Completions format: OpenAI's own, or that of a compatible server.

    `OpenAIChat("gpt-x")` asks OpenAI, `OpenAIChat("any", base_url="http://127.0.0.1:8080/v1")` a server of your own.
    Any number of calls may run at the same time, `max_connections` of them over the network; the rest wait.
    Reasoning that a server shows is reported and returned, and not sent back with the next request.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            base_url: Where the server's `/chat/completions` is, without that ending. No proxy is used for this machine.
            api_key: Sent as a bearer token; by default the environment variable `OPENAI_API_KEY`.
            profile: What the server is known to do. By default, tools that are off stay visible to OpenAI's own models.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            max_tokens_field: The name of the output cap; by default what the server is likely to know.
            connection: Headers, timeouts and the like: see `ConnectionOptions`.

        Raises:
            SpecError: A setting cannot be right, or OpenAI's key is missing.
        """
        client, own = connect(_OPENAI, base_url, "/chat/completions", api_key, connection)
        super().__init__("openai", model, client=client, profile=profile or Profile(keeps_tools_when_off=own))
        self._extra_body = check_extra_body(extra_body or {})
        self._max_tokens_field = max_tokens_field or ("max_completion_tokens" if own else "max_tokens")

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(
            request, model=self._model, max_tokens_field=self._max_tokens_field, extra_body=self._extra_body
        )

    def _reader(self) -> ChatReply:
        return ChatReply(self._client.endpoint)
