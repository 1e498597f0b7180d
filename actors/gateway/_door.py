"""The door: what becomes of a request, decided from its head alone. Pure; nothing is sent and nothing is waited for.

The order matters: `Host` before all else (a page that rebinds its name must not even learn what is here), then the path,
the method, the origin, the credential, the role, and last whether it is a WebSocket at all.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Collection
from typing import Literal, TypeAlias

import attrs

from protocol.errors import SpecError
from protocol.wire import SUBPROTOCOL

from ._access import Access, Admission, cookie_name
from ._head import Head
from ._principals import Principal

__all__ = ("Admitted", "Door", "Page", "PageName", "Refused", "Verdict", "is_loopback")

PageName: TypeAlias = Literal["/", "/healthz", "/readyz", "/metrics", "/schema", "/onward.js", "/session"]
_PAGES: dict[str, tuple[PageName, tuple[str, ...]]] = {
    "/": ("/", ("GET", "HEAD")),
    "/healthz": ("/healthz", ("GET", "HEAD")),
    "/readyz": ("/readyz", ("GET", "HEAD")),
    "/metrics": ("/metrics", ("GET", "HEAD")),
    "/schema": ("/schema", ("GET", "HEAD")),
    "/onward.js": ("/onward.js", ("GET", "HEAD")),
    "/session": ("/session", ("POST",)),
}
_NAME = r"[a-z0-9](?:[a-z0-9._-]{0,252})"
_HOST = re.compile(rf"(?:\[(?P<v6>[0-9a-f:.]{{2,45}})\]|(?P<name>{_NAME}))(?::(?P<port>[0-9]{{1,5}}))?")
_ORIGIN = re.compile(rf"https?://(?:\[[0-9a-f:.]{{2,45}}\]|{_NAME})(?::[0-9]{{1,5}})?")


@attrs.frozen
class Refused:
    """Answered with a status and a text."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Page:
    """A page is to be served."""

    name: PageName
    head_only: bool


@attrs.frozen
class Admitted:
    """The upgrade may go on."""

    principal: Principal
    key: str
    """The `Sec-WebSocket-Key`."""
    subprotocol: bool
    """Whether ours was offered: without it the connection is closed right after the upgrade."""
    still: Callable[[], bool] = attrs.field(eq=False, repr=False)
    """Whether the credential that was shown is good still."""


Verdict: TypeAlias = Refused | Page | Admitted


def _lower(words: Collection[str]) -> frozenset[str]:
    return frozenset(word.lower() for word in words)


def _check_hosts(_door: object, _attribute: object, hosts: Collection[str]) -> None:
    for host in hosts:
        found = _HOST.fullmatch(host)
        if found is None or found["name"] is None or found["port"] is not None:
            raise SpecError(f"hosts: {host!r} is no name; one is 'agents.example.org', without a port")


def _check_origins(_door: object, _attribute: object, origins: Collection[str]) -> None:
    for origin in origins:
        if _ORIGIN.fullmatch(origin) is None:
            raise SpecError(f"origins: {origin!r} is no origin; one is 'https://agents.example.org', without a path")


@attrs.frozen(kw_only=True)
class Door:
    """Who may come in, by what a head says. Raises `SpecError` for a name or an origin that cannot be one."""

    access: Access
    ports: Callable[[], Collection[int]]
    """The ports that are listened on."""
    hosts: Collection[str] = attrs.field(default=(), converter=_lower, validator=_check_hosts)
    """Names that the gateway is reached by, at any port, beside `localhost` and addresses."""
    origins: Collection[str] = attrs.field(default=(), converter=_lower, validator=_check_origins)
    """Origins of pages that may connect, beside the gateway's own."""
    secure: bool = False
    """Whether it is reached by TLS."""
    open_to_all: bool = False
    """No credential is asked for."""

    def judge(self, head: Head) -> Verdict:
        """What becomes of a request. Raises `HeadError` for a head that contradicts itself."""
        host = (head.one("host") or "").lower()
        if not self._is_ours(host):
            return Refused(421, "this gateway is not reached by that name: see --host, or open_gateway(hosts=)")
        if head.path == "/ws":
            return self._judge_upgrade(head, host)
        page = _PAGES.get(head.path)
        if page is None:
            return Refused(404, "there is nothing here; the WebSocket is at /ws")
        name, methods = page
        if head.method not in methods:
            return Refused(405, f"{name} takes {', '.join(methods)}", (("Allow", ", ".join(methods)),))
        if name == "/session" and not self._origin_fits(head, host, absent_fits=False):
            return Refused(403, "pages of other origins may not come in")
        if name == "/metrics":
            if not self._origin_fits(head, host, absent_fits=True):
                return Refused(403, "pages of other origins may not come in")
            who = self._observer(head)
            if isinstance(who, Refused):
                return who
        return Page(name, head.method == "HEAD")

    def _judge_upgrade(self, head: Head, host: str) -> Verdict:
        if head.method != "GET":
            return Refused(405, "/ws takes GET", (("Allow", "GET"),))
        # A browser says where its page is from: who says nothing, and shows a cookie, is none. Who shows nothing at all
        # lacks a credential.
        if not self._origin_fits(head, host, absent_fits=_bearer(head) is not None or head.one("cookie") is None):
            return Refused(403, "pages of other origins may not come in; a program sends no Origin, but a bearer token")
        admission = self._observer(head)
        if isinstance(admission, Refused):
            return admission
        principal, still = admission
        if not head.wants_upgrade:
            return Refused(426, "/ws is a WebSocket", _UPGRADE)
        if head.one("sec-websocket-version") != "13":
            return Refused(426, "this is version 13 of the WebSocket protocol", (*_UPGRADE, _VERSION))
        key = head.one("sec-websocket-key") or ""
        if not _is_key(key):
            return Refused(400, "Sec-WebSocket-Key must be 16 bytes in base64")
        return Admitted(principal, key, SUBPROTOCOL in head.words("sec-websocket-protocol"), still)

    def _observer(self, head: Head) -> Admission | Refused:
        """Who asks, if he may observe."""
        admission = self._admission(_bearer(head), head.one("cookie") or "")
        if admission is None:
            text = "who is there? send Authorization: Bearer TOKEN, or open a session with a ticket"
            return Refused(401, text, (("WWW-Authenticate", "Bearer"),))
        return admission if admission[0].holds("observe") else Refused(403, "this token has no role")

    def _admission(self, token: str | None, cookies: str) -> Admission | None:
        if token is not None:
            return self.access.by_token(token)
        cookie = _cookie(cookies, {cookie_name(port) for port in self.ports()})
        if cookie is not None and (found := self.access.by_cookie(cookie)) is not None:
            return found
        return (Principal("local"), _always) if self.open_to_all else None

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        if found["name"] in self.hosts:
            return True
        if found["port"] is not None and int(found["port"]) not in self.ports():
            return False
        return found["name"] == "localhost" or _is_address(found["v6"] or found["name"])

    def _origin_fits(self, head: Head, host: str, *, absent_fits: bool) -> bool:
        origin = head.one("origin")
        if origin is None:
            return absent_fits
        own = f"{'https' if self.secure else 'http'}://{host}"
        return origin.lower() == own or origin.lower() in self.origins


_UPGRADE = (("Upgrade", "websocket"), ("Connection", "Upgrade"))
_VERSION = ("Sec-WebSocket-Version", "13")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _always() -> bool:
    return True


def _bearer(head: Head) -> str | None:
    scheme, _, token = (head.one("authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _cookie(cookies: str, names: Collection[str]) -> str | None:
    """The first of our cookies. Others of this host may be anything, and must not hide it: no full parser is used."""
    for pair in cookies.split(";"):
        name, _, value = pair.partition("=")
        if name.strip() in names:
            return value.strip()
    return None


def _is_key(key: str) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
