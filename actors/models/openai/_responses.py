"""Responses: the newer format of OpenAI's models, and of the servers that speak it too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import attrs

from protocol.model import ModelEmit, ModelRequest, Profile
from protocol.normalise import parse_arguments
from protocol.turns import Turn

from ..wire import ConnectionOptions, HttpModel, Vendor, check_extra_body, check_server_tools, connect
from ._responses_reply import ResponsesReply
from ._responses_request import OWNED, encode_request, output_cap

__all__ = ("OpenAIResponses",)

_OPENAI = Vendor(hosts=("api.openai.com",), key_variables=("OPENAI_API_KEY",))
# OpenAI refuses to encrypt what these do not have: "Encrypted content is not supported with this model".
_WITHOUT_REASONING = re.compile(r"(ft:)?(gpt-(3|4)|chatgpt-4|gpt-5[\d.]*-chat)")


class OpenAIResponses(HttpModel):
    """A model behind the Responses format: OpenAI's own, or that of a compatible server.

    `OpenAIResponses("gpt-x")` asks OpenAI, `OpenAIResponses("any", base_url="http://127.0.0.1:8080/v1")` a server of
    your own. Any number of calls may run at the same time, `max_connections` of them over the network; the rest wait.
    The server stores nothing: each request holds the whole conversation. Items of the server's own, such as encrypted
    reasoning, are sent back as they came, in their places; reasoning that is shown in clear only where the profile
    says `echoes_reasoning`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        encrypted_reasoning: bool | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            base_url: Where the server's `/responses` is, without that ending. No proxy is used for this machine.
            api_key: Sent as a bearer token; by default the environment variable `OPENAI_API_KEY`.
            profile: What the server is known to do. By default, tools that are off stay visible to OpenAI's own models.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            encrypted_reasoning: Whether the server is asked to encrypt its reasoning, so that it can be sent back. By
                default OpenAI's own is, unless the model's name is that of one which does not reason.
            server_tools: Definitions of tools that run at the provider, such as web search, sent as they are.
            connection: Headers, timeouts and the like: see `ConnectionOptions`.

        Raises:
            SpecError: A setting cannot be right, or OpenAI's key is missing.
        """
        client, own = connect(_OPENAI, base_url, "/responses", api_key, connection)
        super().__init__("openai", model, client=client, profile=profile or Profile(keeps_tools_when_off=own))
        self._own = own
        self._extra_body = check_extra_body(extra_body or {}, OWNED)
        if encrypted_reasoning is None:
            encrypted_reasoning = own and _WITHOUT_REASONING.match(model) is None
        self._encrypted_reasoning = encrypted_reasoning
        self._server_tools = check_server_tools(server_tools)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Make one call: see `HttpModel.turn`.

        Of OpenAI's own servers `completed` is believed. Others say it too where the output cap cut the reply: what has
        used up the cap counts as cut, unless it is calls that are whole.
        """
        turn = await super().turn(request, emit)
        cap = output_cap(request, self._extra_body) or self._profile.default_max_tokens
        used = turn.usage.output_tokens
        if self._own or cap is None or used is None or used < cap or not _may_be_cut(turn):
            return turn
        return attrs.evolve(turn, finish="length")

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(
            request,
            model=self._model,
            profile=self._profile,
            encrypted_reasoning=self._encrypted_reasoning,
            extra_body=self._extra_body,
            server_tools=self._server_tools,
        )

    def _reader(self, _request: ModelRequest, /) -> ResponsesReply:
        return ResponsesReply(self._client.endpoint)


def _may_be_cut(turn: Turn) -> bool:
    if turn.finish == "tool_calls":
        return any(not call.arguments.strip() or parse_arguments(call.arguments) is None for call in turn.calls)
    return turn.finish == "stop"
