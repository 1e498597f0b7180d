"""Where a model's requests go, and how that is spoken of: addresses without credentials, quotes without secrets."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

import attrs

from protocol.errors import SpecError

__all__ = ("Endpoint", "check_headers")

_MAX_QUOTE_CHARS = 500
_MIN_SECRET_CHARS = 6  # what is shorter is a placeholder such as `none`, and would tear up the words it stands in
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")
_USERINFO = re.compile(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


@attrs.frozen(kw_only=True)
class Endpoint:
    """One address that requests are posted to. Its repr shows no secret."""

    url: str = attrs.field(repr=False)
    """What the client is given: without user and password, with the query."""
    address: str
    """What errors show: no credentials, no query."""
    host: str
    secure: bool
    """Whether it is reached by TLS."""
    basic: str = attrs.field(default="", repr=False)
    """The value of an `Authorization` header, if the address named a user."""
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    key_hint: str = ""
    """What to do about a key that is missing or wrong."""
    base: str = attrs.field(default="", repr=False)
    """The address that was given, without user and password, its own ending and query."""
    query: str = attrs.field(default="", repr=False)
    """The query that was given with it."""
    proxy: str = ""
    """The proxy that was named, as errors show it."""

    @classmethod
    def of(
        cls, base_url: str, path: str, *, secrets: Iterable[str] = (), key_hint: str = "", proxy: str = ""
    ) -> Endpoint:
        """Take an address apart. Raises `SpecError` if it is not an http or https address with a host."""
        base_url = base_url.strip()
        try:
            parts = urlsplit(base_url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            host, port = "", None
            parts = urlsplit("")
        if parts.scheme not in {"http", "https"} or not host or re.search(r"[\s\x00-\x1f]", base_url):
            shown = _USERINFO.sub(r"\1", base_url)
            raise SpecError(
                f"base_url must be an http or https address with a host, such as http://127.0.0.1:8080/v1; it is {shown!r}"
            )
        netloc = f"[{host}]" if ":" in host else host
        if port is not None:
            netloc += f":{port}"
        base = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/").removesuffix(path.partition("?")[0]), "", ""))
        url, address = _placed(base, path, parts.query)
        password = unquote(parts.password or "")
        basic = ""
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{password}"
            basic = "Basic " + base64.b64encode(user.encode()).decode()
        return cls(
            url=url,
            address=address,
            host=host,
            secure=parts.scheme == "https",
            basic=basic,
            secrets=tuple([secret for secret in {*secrets, password, basic[6:]} if len(secret) >= _MIN_SECRET_CHARS]),
            key_hint=key_hint,
            base=base,
            query=parts.query,
            proxy=proxy,
        )

    def at(self, path: str, *, from_root: bool = False) -> Endpoint:
        """Another place of the same server: `path`, query and all, below the address that was given, or from the root.

        A part of it that is not your own, such as an id, must be quoted.
        """
        base = self.base
        if from_root:
            parts = urlsplit(base)
            base = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        url, address = _placed(base, path, self.query)
        return attrs.evolve(self, url=url, address=address)

    @property
    def loopback(self) -> bool:
        """Whether the address is this machine's own, so that no proxy may stand between."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def quote(self, text: str, *, max_chars: int = _MAX_QUOTE_CHARS) -> str:
        """What a server said, fit for an error: on one line, bounded, with none of the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        text = _UNPRINTABLE.sub(" ", text[: max_chars * 4]).strip()
        return text if len(text) <= max_chars else text[:max_chars] + "..."


def _placed(base: str, path: str, query: str) -> tuple[str, str]:
    """The address of a path, with all that is asked of it and without; what both ask is asked once."""
    place, _, own = path.partition("?")
    address = f"{base}/{place.lstrip('/')}"
    asked = "&".join(dict.fromkeys([part for part in (*query.split("&"), *own.split("&")) if part]))
    return f"{address}?{asked}" if asked else address, address


def check_headers(headers: Mapping[str, str], *, field: str) -> None:
    """Raise `SpecError` for what HTTP cannot carry. The value is not shown: it may be a secret."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise SpecError(f"{field}: {name!r} is no name of an HTTP header")
        if not _HEADER_VALUE.fullmatch(value):
            raise SpecError(f"{field}: the value of {name!r} holds characters that an HTTP header cannot carry")
