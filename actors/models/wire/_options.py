"""What can be set about the connection of any model, and what follows from it: address, headers, client."""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import attrs

from protocol.errors import SpecError

from ._call_stages import Deadlines
from ._endpoint import Endpoint, check_headers
from ._http import HttpClient
from ._network import NamedProxy, tls_context
from ._policy import CallPolicy, Delivery

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
    """For the next byte of a reply; keep-alive comments count, so a server that sends nothing else is ended by
    `call_timeout_seconds`. Default 60."""
    hop_timeout_seconds: float
    """For one request, from the connection to the end of its reply. Default: none but the others."""
    call_timeout_seconds: float
    """For the whole call: all requests, replies and waits, that for one of the `max_connections` too. Default 3600:
    models that think for half an hour are known, and a call that never ends helps nobody."""
    retries: int
    """How often a request that failed is sent again: after a status 408, 409, 425, 429 or 5xx, where no connection came
    to stand, where it broke or was silent for too long, as long as nothing of the reply has been reported. What the
    server asks for is obeyed: how long to wait, unless that is more than the call has left, and whether to come back.
    Else the wait doubles from 0.5 s to 8 s. Default 2."""
    delivery: Delivery
    """What becomes of a reply that breaks off after some of it has been reported. `strict` (default): the call fails,
    with what there is in `partial`. `replay`: what was reported is undone (`Undone`), and the request sent again."""
    proxy: str
    """The address of a proxy, with user and password where it wants them. Default: what the environment names, which
    is never used for this machine."""
    verify: str | os.PathLike[str] | ssl.SSLContext
    """Whose certificates are trusted: the path of a file or folder of certificates, or a context of your own. Default:
    the public authorities, or those in `SSL_CERT_FILE` or `SSL_CERT_DIR`."""
    max_connections: int
    """Calls at the same time; the rest wait. Default 32."""
    transport: Transport
    """In place of the network, for tests and special set-ups."""


@attrs.frozen(kw_only=True)
class Vendor:
    """Who answers at an address, as far as the connection goes."""

    hosts: Sequence[str]
    """Its own hosts, which need a key; one that begins with a dot stands for all hosts below it."""
    key_variables: Sequence[str]
    """Environment variables that may hold the key, for those hosts alone; the first that is set is taken."""
    key_header: str = "authorization"
    """The header that carries the key: `authorization` as a bearer token, any other as it is."""
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Headers that each request of the format carries."""

    def owns(self, host: str) -> bool:
        """Whether a host is its own."""
        return any(host.endswith(own) if own.startswith(".") else host == own for own in self.hosts)


def connect(
    vendor: Vendor, base_url: str, path: str, api_key: str | None, options: ConnectionOptions
) -> tuple[HttpClient, bool]:
    """Make the client for an address, and say whether the vendor itself answers there.

    A key from the environment is sent to the vendor's own hosts alone, and by TLS: an address that somebody else chose
    never gets it. A given key goes where it was given for.

    Raises `SpecError` if a setting cannot be right, or the vendor's key is missing.
    """
    given = options.get("headers", {})
    proxy = NamedProxy.of(options["proxy"]) if "proxy" in options else None
    bare = Endpoint.of(base_url, path)
    own = vendor.owns(bare.host)
    if api_key is None:
        api_key = _key_in_environment(vendor) if own and bare.secure else ""
    key = api_key.strip()
    kept = [os.environ.get(name, "").strip() for name in vendor.key_variables]  # told by no error, sent or not
    endpoint = Endpoint.of(
        base_url,
        path,
        secrets=[key, *kept, *_secrets_in(given), *(proxy.secrets if proxy else ())],
        key_hint=_key_hint(vendor, bare.host, own=own),
        proxy=proxy.address if proxy else "",
    )
    headers = dict(vendor.headers)
    if key:
        headers[vendor.key_header] = f"Bearer {key}" if vendor.key_header == "authorization" else key
    elif endpoint.basic:
        headers["authorization"] = endpoint.basic
    check_headers(headers, field="api_key")
    check_headers(given, field="headers")
    headers.update({name.lower(): value for name, value in given.items()})
    if own and vendor.key_header not in headers and "authorization" not in headers:
        insecure = "" if endpoint.secure else "; that one is sent to https addresses alone"
        variables = " or ".join(vendor.key_variables)
        raise SpecError(
            f"{endpoint.host} needs a key: pass api_key, or set the environment variable {variables}{insecure}"
        )
    return _client(endpoint, headers, proxy, options), own


def _client(
    endpoint: Endpoint, headers: Mapping[str, str], proxy: NamedProxy | None, options: ConnectionOptions
) -> HttpClient:
    max_connections = options.get("max_connections", 32)
    if max_connections < 1:
        raise SpecError(f"max_connections must be at least 1; it is {max_connections}")
    transport = options.get("transport")
    if transport is not None and proxy is not None:
        raise SpecError("transport and proxy exclude each other: a transport is all there is to the network")
    return HttpClient(
        endpoint,
        headers,
        deadlines=Deadlines(
            connect_seconds=options.get("connect_timeout_seconds", 10.0),
            first_byte_seconds=options.get("first_byte_timeout_seconds", 120.0),
            idle_seconds=options.get("idle_timeout_seconds", 60.0),
            hop_seconds=options.get("hop_timeout_seconds", math.inf),
        ),
        policy=CallPolicy(
            retries=options.get("retries", 2),
            delivery=options.get("delivery", "strict"),
            call_seconds=options.get("call_timeout_seconds", 3600.0),
        ),
        max_connections=max_connections,
        transport=transport,
        proxy=proxy.url if proxy else None,
        tls=tls_context(options["verify"]) if "verify" in options else None,
    )


def _key_in_environment(vendor: Vendor) -> str:
    return next((key for name in vendor.key_variables if (key := os.environ.get(name, "").strip())), "")


def _key_hint(vendor: Vendor, host: str, *, own: bool) -> str:
    """What to do about a key that is missing or wrong."""
    variables = " or ".join(vendor.key_variables)
    if own:
        return f"set api_key, or the environment variable {variables}"
    set_ones = [name for name in vendor.key_variables if os.environ.get(name, "").strip()]
    kept = f" ({set_ones[0]} is set, and not sent to {host}: it is not the key of that host)" if set_ones else ""
    return f"pass the key of {host} as api_key (--api-key-env){kept}"


def _secrets_in(headers: Mapping[str, str]) -> list[str]:
    """The values, and what stands behind a scheme such as `Bearer`."""
    return [secret for value in headers.values() for secret in (value.strip(), value.rpartition(" ")[2])]
