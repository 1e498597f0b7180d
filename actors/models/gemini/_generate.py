"""generateContent: the models of the Gemini API, and of every server that speaks its format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import quote

from protocol.model import ModelRequest, Profile

from ..wire import ConnectionOptions, HttpModel, Vendor, check_extra_body, check_server_tools, connect
from ._generate_reply import GenerateReply
from ._generate_request import OWNED, encode_request

__all__ = ("Gemini",)

_GOOGLE = Vendor(
    hosts=("generativelanguage.googleapis.com",),
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_header="x-goog-api-key",
)
_GENERATION = re.compile(r"gemini-(\d+)")
_STRICT_GENERATION = 3  # the first that refuses a call without a thought signature


class Gemini(HttpModel):
    """A model behind the generateContent format: Google's own, or that of a compatible server.

    `Gemini("gemini-x")` asks Google. Any number of calls may run at the same time, `max_connections` of them over the
    network; the rest wait. Thought signatures, and whatever else of a reply this format alone can read, are kept in
    the conversation and sent back as they came, to this format only.

    A decode that the server interrupts for its own limit is not continued: the turn ends with `length`, and its
    `unfinished` holds the token.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://generativelanguage.googleapis.com",
        version: str = "v1beta",
        api_key: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, or its resource such as `tunedModels/x`.
            base_url: Where the server's `/{version}/models` is, without that ending.
            version: The version of the API.
            api_key: Sent as `x-goog-api-key`; by default the environment variable `GEMINI_API_KEY`, then
                `GOOGLE_API_KEY`.
            profile: What the server is known to do. By default, tools that are off stay visible to Google's own models.
            extra_body: Laid over each request's body, `generationConfig` field by field; `None` removes a field.
            server_tools: Definitions of tools that run at the provider, such as `{"googleSearch": {}}`, sent as they are.
            connection: Headers, timeouts and the like: see `ConnectionOptions`.

        Raises:
            SpecError: A setting cannot be right, or Google's key is missing.
        """
        resource = model if "/" in model else f"models/{model}"
        path = "/" + quote(f"{version}/{resource}:streamGenerateContent", safe="/:@", errors="replace")
        place = base_url.strip().rstrip("/").removesuffix(f"/{version}")
        client, own = connect(_GOOGLE, place, f"{path}?alt=sse", api_key, connection)
        super().__init__("gemini", model, client=client, profile=profile or Profile(keeps_tools_when_off=own))
        self._extra_body = check_extra_body(extra_body or {}, OWNED)
        self._server_tools = check_server_tools(server_tools)
        generation = _GENERATION.search(model)
        self._marks_unsigned = generation is not None and int(generation[1]) >= _STRICT_GENERATION

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(
            request,
            profile=self._profile,
            marks_unsigned=self._marks_unsigned,
            extra_body=self._extra_body,
            server_tools=self._server_tools,
        )

    def _reader(self, _request: ModelRequest, /) -> GenerateReply:
        return GenerateReply(self._client.endpoint)
