"""Who gets in: tokens for programs, a one-time ticket and a cookie for a browser.

Tokens are kept as digests and compared in constant time; none ever stands in an address, a log or an event.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar, get_args

import attrs
import trio

from protocol.errors import SpecError
from protocol.wire import Role

from ._principals import ALL_ROLES, Principal

__all__ = ("SESSION_SECONDS", "Access", "Admission", "cookie_name", "read_token_file")

T = TypeVar("T")
Admission: TypeAlias = tuple[Principal, Callable[[], bool]]
"""Who somebody is, and whether the credential that was shown is good still."""
TICKET_SECONDS = 300.0
SESSION_SECONDS = 7 * 24 * 3600.0
"""How long a browser's session lasts."""
_MAX_TICKETS = 64
_MAX_SESSIONS = 1024
_SHORTEST = 16


@attrs.define(eq=False)
class Access:
    """The tokens, tickets and browser sessions of a gateway. Its repr shows none of them."""

    clock: Callable[[], float] = attrs.field(default=trio.current_time, repr=False)
    _tokens: dict[bytes, Principal] = attrs.field(factory=dict[bytes, Principal], repr=False)
    _tickets: dict[bytes, tuple[Principal, float]] = attrs.field(
        factory=dict[bytes, tuple[Principal, float]], repr=False
    )
    _sessions: dict[bytes, tuple[Principal, float]] = attrs.field(
        factory=dict[bytes, tuple[Principal, float]], repr=False
    )

    @classmethod
    def of(cls, tokens: Mapping[str, Principal]) -> Access:
        """Know these tokens. Raises `SpecError` for one that is too short to be secret."""
        access = cls()
        for token, principal in tokens.items():
            access.add(token, principal)
        return access

    def add(self, token: str, principal: Principal) -> None:
        """Know one more token."""
        if len(token) < _SHORTEST or not token.isascii() or any(char.isspace() for char in token):
            raise SpecError(
                f"a token must be at least {_SHORTEST} printable ASCII characters without spaces,"
                f" such as {secrets.token_urlsafe(24)!r}; that of {principal.name!r} is not"
            )
        self._tokens[_digest(token)] = principal

    def revoke(self, name: str) -> None:
        """Forget all tokens, tickets and sessions of a principal: its connections are closed at their next heartbeat."""
        self._tokens = {key: known for key, known in self._tokens.items() if known.name != name}
        for table in (self._tickets, self._sessions):
            for key in [key for key, (known, _) in table.items() if known.name == name]:
                del table[key]

    def by_token(self, token: str) -> Admission | None:
        """Who a bearer token belongs to."""
        return _admission(self._token_of, _digest(token))

    def ticket(self, principal: Principal | None = None) -> str:
        """A new one-time ticket, good for five minutes: it is exchanged for a session's cookie."""
        ticket = secrets.token_urlsafe(24)
        _keep(
            self._tickets,
            _digest(ticket),
            (principal or Principal("console"), self.clock() + TICKET_SECONDS),
            _MAX_TICKETS,
        )
        return ticket

    def open_session(self, ticket: str) -> str | None:
        """Exchange a ticket for the value of a cookie; `None` for one that is unknown, used or expired."""
        key = _digest(ticket)
        found = _find(self._tickets, key)
        self._tickets.pop(key, None)
        if found is None or found[1] < self.clock():
            return None
        cookie = secrets.token_urlsafe(32)
        _keep(self._sessions, _digest(cookie), (found[0], self.clock() + SESSION_SECONDS), _MAX_SESSIONS)
        return cookie

    def by_cookie(self, cookie: str) -> Admission | None:
        """Who a session's cookie belongs to."""
        return _admission(self._session_of, _digest(cookie))

    def _token_of(self, key: bytes) -> Principal | None:
        return _find(self._tokens, key)

    def _session_of(self, key: bytes) -> Principal | None:
        found = _find(self._sessions, key)
        return None if found is None or found[1] < self.clock() else found[0]


def cookie_name(port: int) -> str:
    """What the cookie of a session is called: browsers keep one jar for all ports of a host."""
    return f"onward_session_{port}"


def read_token_file(path: Path) -> dict[str, Principal]:
    """Read `TOKEN [ROLE,ROLE...] [NAME]` lines, for `Access.of()`; empty ones and those that begin with `#` are left out.

    Raises `SpecError` for a file that others may read, or a line that cannot be read; no token is shown.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"the token file {path} cannot be read: {type(error).__name__}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SpecError(f"the token file {path} can be read by others: chmod 600 {path}")
    found: dict[str, Principal] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        token, *rest = words
        if token in found or len(rest) > 2:
            raise SpecError(f"{path}, line {number}: a line is TOKEN [ROLE,ROLE...] [NAME], and no token stands twice")
        roles = _roles(rest[0].split(","), path, number) if rest else ALL_ROLES
        found[token] = Principal(rest[1] if len(rest) > 1 else f"token-{number}", roles)
    if not found:
        raise SpecError(f"the token file {path} holds no token: a line is TOKEN [ROLE,ROLE...] [NAME]")
    return found


def _roles(words: Iterable[str], path: Path, number: int) -> frozenset[Role]:
    known: dict[str, Role] = {role: role for role in get_args(Role)}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise SpecError(f"{path}, line {number}: no such role: {', '.join(unknown)}; roles are {', '.join(known)}")
    return frozenset(known[word] for word in words)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _admission(find: Callable[[bytes], Principal | None], key: bytes) -> Admission | None:
    principal = find(key)
    return None if principal is None else (principal, lambda: find(key) == principal)


def _find(table: Mapping[bytes, T], key: bytes) -> T | None:
    found = None
    for known, value in table.items():
        if hmac.compare_digest(known, key):
            found = value
    return found


def _keep(table: dict[bytes, T], key: bytes, value: T, most: int) -> None:
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]
