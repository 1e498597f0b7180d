"""Where Interactions are, how one connects there, and what can be asked about one that is stored."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

import trio

from protocol.errors import ModelError, ModelReplyError, ModelTimeout, SpecError

from ..wire import Attempts, ConnectionOptions, HttpClient, Vendor, connect, mapping, parse

__all__ = ("GOOGLE_URL", "ask", "connect_interactions")

GOOGLE_URL = "https://generativelanguage.googleapis.com"
_GOOGLE = Vendor(
    hosts=("generativelanguage.googleapis.com",),
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_header="x-goog-api-key",
    headers={"api-revision": "2026-05-20"},
)
_VERSION = re.compile(r"v\d+\w*")
_FIRST_BYTE_SECONDS = 600.0
"""A whole interaction is told when all of it is there: a hop of tens of thousands of tokens takes minutes."""


def connect_interactions(
    base_url: str, version: str | None, api_key: str | None, options: ConnectionOptions
) -> tuple[HttpClient, bool]:
    """Make the client for an address, and say whether Google itself answers there.

    `version` is the part of the path before `/interactions`; by default `v1beta`, or nothing if `base_url` ends with
    a version. Raises `SpecError` if a setting cannot be right, or Google's key is missing.
    """
    if version is None:
        last = urlsplit(base_url.strip()).path.rstrip("/").rpartition("/")[2]
        version = "" if _VERSION.fullmatch(last) else "v1beta"
    prefix = version.strip("/")
    path = f"/{prefix}/interactions" if prefix else "/interactions"
    settings: ConnectionOptions = {"first_byte_timeout_seconds": _FIRST_BYTE_SECONDS, **options}
    return connect(_GOOGLE, base_url, path, api_key, settings)


async def ask(client: HttpClient, method: str, interaction_id: str, verb: str = "") -> dict[str, Any]:
    """Make a request about one interaction and return the answer; an empty one is `{}`.

    Raises `SpecError` for what is no id, and `ModelError`.
    """
    if not interaction_id or interaction_id in {".", ".."}:
        raise SpecError(f"interaction_id must be the id of an interaction, such as 'v1_abc'; it is {interaction_id!r}")
    place = client.endpoint.address.removeprefix(client.endpoint.base)
    path = f"{place}/{quote(interaction_id, safe='')}{verb}"
    seconds = client.policy.call_seconds
    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
        attempts = Attempts(client.policy, lambda _event: None, deadline=scope.deadline)
        while True:
            try:
                async with client.request(method, path) as reply:
                    return _object(await reply.read(), client)
            except ModelError as error:
                await attempts.again(error)
    raise ModelTimeout(
        f"{method} {client.endpoint.at(path).address} took longer than {seconds:g} s (call_timeout_seconds)",
        retryable=True,
    )


def _object(body: bytes, client: HttpClient) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        value = parse(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        said = client.endpoint.quote(body.decode("utf-8", "replace"), max_chars=200)
        raise ModelReplyError(f"{client.endpoint.address}: the reply is no JSON object: {said}")
    return mapping(value)
