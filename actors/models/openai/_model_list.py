"""Which models a server has: the list behind `GET /models`, which costs nothing."""

from __future__ import annotations

from typing import Unpack

import attrs

from protocol.errors import ModelReplyError

from ..wire import ConnectionOptions, Vendor, connect, items, mapping, parse, string

__all__ = ("ListedModel", "list_models")


@attrs.frozen
class ListedModel:
    """A model that a server has. Both texts are the server's: they may hold anything."""

    name: str
    owner: str
    """Whom the server calls its owner: some name themselves here."""


async def list_models(
    base_url: str, *, api_key: str = "", **connection: Unpack[ConnectionOptions]
) -> tuple[ListedModel, ...]:
    """The models of the server at `base_url`, in its order. No key is sent but the given one.

    Raises `ModelError`: `ModelUnreachable` if nothing listens there, `ModelAuthError` if a key is wanted,
    `ModelReplyError` if the answer is no such list.
    """
    client, _ = connect(Vendor(hosts=(), key_variables=()), base_url, "/models", api_key, connection)
    try:
        async with client.request("GET", "/models") as reply:
            body = await reply.read()
    finally:
        await client.aclose()
    try:
        listed = mapping(parse(body)).get("data")
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        raise ModelReplyError(f"{client.endpoint.address} answered with no list of models")
    entries = [mapping(entry) for entry in items(listed)]
    return tuple([
        ListedModel(string(entry.get("id")), string(entry.get("owned_by")))
        for entry in entries
        if string(entry.get("id"))
    ])
