"""What can be set about the connection of any model, and what follows from it: address, headers, client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import attrs

from protocol.errors import SpecError

from ._call_stages import Deadlines
from ._endpoint import Endpoint, check_headers
from ._http import HttpClient

if TYPE_CHECKING:
    from ._http import Transport

__all__ = ("ConnectionOptions", "Vendor", "connect")


class ConnectionOptions(TypedDict, total=False):
    """Keyword arguments that every model over HTTP takes. Nothing is connected before the first call."""

    headers: Mapping[str, str]
    """More headers; they win over the model's own."""
    connect_timeout_seconds: float
    """For a connection, name look-up and TLS included. Default 10."""
    first_byte_timeout_seconds: float
    """From the request to the first byte of the reply. Default 120."""
    idle_timeout_seconds: float
    """For the next byte of a reply; keep-alive comments count. Default 60."""
    max_connections: int
    """Calls at the same time; the rest wait. Default 32."""
    transport: Transport
    """In place of the network, for tests and special set-ups."""


@attrs.frozen(kw_only=True)
class Vendor:
    """Who answers at an address, as far as the connection goes."""

    hosts: Sequence[str]
    """Its own hosts: they need a key."""
    key_variables: Sequence[str]
    """Environment variables that may hold the key; the first that is set is taken."""
    key_header: str = "authorization"
    """The header that carries the key: `authorization` as a bearer token, any other as it is."""
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Headers that each request of the format carries."""


def connect(
    vendor: Vendor, base_url: str, path: str, api_key: str | None, options: ConnectionOptions
) -> tuple[HttpClient, bool]:
    """Make the client for an address, and say whether the vendor itself answers there.

    Raises `SpecError` if a setting cannot be right, or the vendor's key is missing.
    """
    given = options.get("headers", {})
    max_connections = options.get("max_connections", 32)
    if max_connections < 1:
        raise SpecError(f"max_connections must be at least 1; it is {max_connections}")
    deadlines = Deadlines(
        connect_seconds=options.get("connect_timeout_seconds", 10.0),
        first_byte_seconds=options.get("first_byte_timeout_seconds", 120.0),
        idle_seconds=options.get("idle_timeout_seconds", 60.0),
    )
    key = (api_key if api_key is not None else _key_in_environment(vendor)).strip()
    variables = " or ".join(vendor.key_variables)
    endpoint = Endpoint.of(
        base_url,
        path,
        secrets=[key, *_secrets_in(given)],
        key_hint=f"set api_key, or the environment variable {variables}",
    )
    own = endpoint.host in vendor.hosts
    headers = dict(vendor.headers)
    if key:
        headers[vendor.key_header] = f"Bearer {key}" if vendor.key_header == "authorization" else key
    elif endpoint.basic:
        headers["authorization"] = endpoint.basic
    check_headers(headers, field="api_key")
    check_headers(given, field="headers")
    headers.update({name.lower(): value for name, value in given.items()})
    if own and vendor.key_header not in headers and "authorization" not in headers:
        raise SpecError(f"{endpoint.host} needs a key: pass api_key, or set the environment variable {variables}")
    client = HttpClient(
        endpoint, headers, deadlines=deadlines, max_connections=max_connections, transport=options.get("transport")
    )
    return client, own


def _key_in_environment(vendor: Vendor) -> str:
    return next((key for name in vendor.key_variables if (key := os.environ.get(name, "").strip())), "")


def _secrets_in(headers: Mapping[str, str]) -> list[str]:
    """The values, and what stands behind a scheme such as `Bearer`."""
    return [secret for value in headers.values() for secret in (value.strip(), value.rpartition(" ")[2])]
