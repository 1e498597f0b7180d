"""Chat Completions: the models of OpenAI, and of every server that speaks its format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from protocol.errors import SpecError
from protocol.model import ModelEmit, ModelRequest, Profile
from protocol.turns import Turn

from ._chat_reply import ChatReply
from ._chat_request import check_extra_body, encode_request
from ._endpoint import Endpoint, check_headers
from ._http import Deadlines, HttpClient, HttpStatistics
from ._reading import read_turn

if TYPE_CHECKING:
    from ._http import Transport

__all__ = ("OpenAIChat",)

_OPENAI_HOST = "api.openai.com"
_KEY_VARIABLE = "OPENAI_API_KEY"


class OpenAIChat:
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
        headers: Mapping[str, str] | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
        connect_timeout_seconds: float = 10.0,
        first_byte_timeout_seconds: float = 120.0,
        idle_timeout_seconds: float = 60.0,
        max_connections: int = 32,
        transport: Transport | None = None,
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            base_url: Where the server's `/chat/completions` is, without that ending. No proxy is used for this machine.
            api_key: Sent as a bearer token; by default the environment variable `OPENAI_API_KEY`.
            headers: More headers; they win over the model's own.
            profile: What the server is known to do. By default, tools that are off stay visible to OpenAI's own models.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            max_tokens_field: The name of the output cap; by default what the server is likely to know.
            connect_timeout_seconds: For a connection, name look-up and TLS included.
            first_byte_timeout_seconds: From the request to the first byte of the reply.
            idle_timeout_seconds: For the next byte of a reply; keep-alive comments count.
            max_connections: Calls at the same time.
            transport: In place of the network, for tests and special set-ups.

        Raises:
            SpecError: A setting cannot be right, or OpenAI's key is missing.
        """
        if not model or model.isspace():
            raise SpecError("model must be the name of a model on the server; it is empty")
        if max_connections < 1:
            raise SpecError(f"max_connections must be at least 1; it is {max_connections}")
        deadlines = Deadlines(
            connect_seconds=connect_timeout_seconds,
            first_byte_seconds=first_byte_timeout_seconds,
            idle_seconds=idle_timeout_seconds,
        )
        key = (api_key if api_key is not None else os.environ.get(_KEY_VARIABLE, "")).strip()
        endpoint = Endpoint.of(
            base_url,
            "/chat/completions",
            secrets=[key, *_secrets_in(headers or {})],
            key_hint=f"set api_key, or the environment variable {_KEY_VARIABLE}",
        )
        own = endpoint.host == _OPENAI_HOST
        auth = f"Bearer {key}" if key else endpoint.basic
        sent_headers = {"authorization": auth} if auth else {}
        check_headers(sent_headers, field="api_key")
        check_headers(headers or {}, field="headers")
        sent_headers.update({name.lower(): value for name, value in (headers or {}).items()})
        if own and "authorization" not in sent_headers:
            raise SpecError(
                f"{_OPENAI_HOST} needs a key: pass api_key, or set the environment variable {_KEY_VARIABLE}"
            )
        self._model = model
        self._profile = attrs.evolve(profile or Profile(keeps_tools_when_off=own), reports_sending=True)
        self._extra_body = check_extra_body(extra_body or {})
        self._max_tokens_field = max_tokens_field or ("max_completion_tokens" if own else "max_tokens")
        self._client = HttpClient(
            endpoint,
            sent_headers,
            deadlines=deadlines,
            max_connections=max_connections,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"<OpenAIChat {self._model!r} at {self._client.endpoint.address}>"

    @property
    def name(self) -> str:
        """`openai:` and the model's name."""
        return f"openai:{self._model}"

    @property
    def profile(self) -> Profile:
        """What the server is known to do."""
        return self._profile

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Make one call. Nothing is tried again.

        The ids of the calls in the turn are the server's own: they may be empty or repeated; so may their arguments
        be no JSON.

        Raises `ModelUnreachable`, `ModelTimeout`, one of the `ModelRefused` errors, `ModelReplyError` for what is no
        Chat Completions reply, or `ModelError` for a connection that broke; with what had arrived in `partial`.
        """
        body = encode_request(
            request,
            model=self._model,
            max_tokens_field=self._max_tokens_field,
            extra_body=self._extra_body,
        )
        return await read_turn(self._client, body, ChatReply(self._client.endpoint), emit)

    def statistics(self) -> HttpStatistics:
        """The calls under way, and those that wait for a connection."""
        return self._client.statistics()

    async def aclose(self) -> None:
        """Close all connections. A later call opens new ones."""
        await self._client.aclose()


def _secrets_in(headers: Mapping[str, str]) -> list[str]:
    """The values, and what stands behind a scheme such as `Bearer`."""
    return [secret for value in headers.values() for secret in (value.strip(), value.rpartition(" ")[2])]
