"""Tokens, tickets and sessions: what lets somebody in, how long, and that none of it is ever shown."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from actors.gateway import ALL_ROLES, Access, Principal, read_token_file
from actors.gateway._access import SESSION_SECONDS, Admission, cookie_name
from protocol.errors import SpecError

TOKEN = "token-of-the-tests-0001"
OTHER = "token-of-the-tests-0002"


@attrs.define
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def name_of(found: Admission | None) -> str | None:
    return None if found is None else found[0].name


def test_a_token_is_known_as_it_was_given() -> None:
    """Exactly it lets in; no part of it, and no longer one."""
    access = Access.of({TOKEN: Principal("a"), OTHER: Principal("b")})

    assert ["a", "b"] == [name_of(access.by_token(token)) for token in (TOKEN, OTHER)]
    assert [None] * 5 == [access.by_token(token) for token in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é\udcff")]


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "with a space in it", "with-a-tab\tin-it-000", "ümlaut-" * 4])
def test_a_token_that_is_no_secret(token: str) -> None:
    """What can be guessed, or cannot stand in a header, is refused with a better one and without being shown."""
    with pytest.raises(SpecError) as caught:
        Access.of({token: Principal("weak")})

    assert "'weak'" in str(caught.value)
    assert not token or token not in str(caught.value)


def test_a_ticket_is_good_once() -> None:
    """It opens one session, as the principal that it was made for."""
    access = Access(clock=Clock())
    ticket = access.ticket(Principal("visitor"))
    cookie = access.open_session(ticket)
    again = access.open_session(ticket)

    assert cookie is not None
    assert ("visitor", None) == (name_of(access.by_cookie(cookie)), again)


@pytest.mark.parametrize(("seconds", "opens"), [(0, True), (299, True), (301, False)])
def test_a_ticket_expires(seconds: float, opens: bool) -> None:
    """After five minutes it opens nothing."""
    clock = Clock()
    access = Access(clock=clock)
    ticket = access.ticket()
    clock.now += seconds

    assert opens == (access.open_session(ticket) is not None)


def test_a_session_expires() -> None:
    """After its time a cookie lets nobody in, and who was let in by it is told to go."""
    clock = Clock()
    access = Access(clock=clock)
    cookie = access.open_session(access.ticket())
    assert cookie is not None
    found = access.by_cookie(cookie)
    assert found is not None
    good = found[1]()
    clock.now += SESSION_SECONDS + 1

    assert (True, False, None) == (good, found[1](), access.by_cookie(cookie))


def test_tickets_and_cookies_are_no_tokens() -> None:
    """Each opens its own door only."""
    access = Access.of({TOKEN: Principal("a")})
    access.clock = Clock()
    ticket = access.ticket()
    cookie = access.open_session(access.ticket())
    assert cookie is not None

    assert (None, None) == (access.by_token(ticket), access.by_token(cookie))
    assert (None, None) == (access.by_cookie(TOKEN), access.by_cookie(ticket))
    assert (None, None) == (access.open_session(TOKEN), access.open_session(cookie))


def test_what_is_revoked_is_gone() -> None:
    """All ways in of a principal end, and those of others stay."""
    access = Access.of({TOKEN: Principal("a"), OTHER: Principal("b")})
    access.clock = Clock()
    ticket, theirs = access.ticket(Principal("a")), access.ticket(Principal("b"))
    cookie = access.open_session(access.ticket(Principal("a")))
    assert cookie is not None
    found = access.by_cookie(cookie), access.by_token(TOKEN), access.by_token(OTHER)
    access.revoke("a")

    assert [False, False, True] == [known[1]() for known in found if known]
    assert (None, None, None) == (access.by_token(TOKEN), access.by_cookie(cookie), access.open_session(ticket))
    assert access.open_session(theirs) is not None


def test_tickets_and_sessions_are_bounded() -> None:
    """The oldest go when there are too many: asking for more fills no memory."""
    access = Access(clock=Clock())
    tickets = [access.ticket() for _ in range(100)]
    opened = [access.open_session(ticket) for ticket in tickets]

    assert ([None] * 36, 64) == (opened[:36], sum(cookie is not None for cookie in opened))


def test_nothing_secret_is_shown_of_it() -> None:
    """No token, ticket or cookie stands in its repr."""
    access = Access.of({TOKEN: Principal("a")})
    access.clock = Clock()
    ticket = access.ticket()
    cookie = access.open_session(access.ticket())

    assert not any(secret in repr(access) for secret in (TOKEN, ticket, cookie or "?"))


def test_the_cookies_of_two_ports_are_two() -> None:
    """Browsers keep one jar for all ports of a host: a second gateway must not take the first one's place."""
    assert cookie_name(1) != cookie_name(2)


def a_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_file(tmp_path: Path) -> None:
    """A line is a token, its roles and its name; without roles it holds all, without a name that of its line."""
    text = f"# ours\n\n{TOKEN}\n  {OTHER} observe,decide alice  \ntoken-of-the-tests-0003 admin\n"

    assert {
        TOKEN: Principal("token-3", ALL_ROLES),
        OTHER: Principal("alice", frozenset({"observe", "decide"})),
        "token-of-the-tests-0003": Principal("token-5", frozenset({"admin"})),
    } == read_token_file(a_file(tmp_path, text))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o610, 0o602])
def test_a_token_file_that_others_may_read(tmp_path: Path, mode: int) -> None:
    """It is refused, with what to do."""
    with pytest.raises(SpecError, match="chmod 600"):
        read_token_file(a_file(tmp_path, TOKEN, mode))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no token"),
        ("# nothing\n", "holds no token"),
        (f"{TOKEN} fly\n", "line 1: no such role: fly; roles are observe, decide, operate, admin"),
        (f"{TOKEN}\n{TOKEN} observe\n", "line 2"),
        (f"{TOKEN} observe name and more\n", "line 1"),
    ],
)
def test_a_token_file_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    """The line is named, and what would be right; the token is not shown."""
    with pytest.raises(SpecError) as caught:
        read_token_file(a_file(tmp_path, text))

    assert words in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    """The path is named, and why."""
    with pytest.raises(SpecError, match="nowhere cannot be read: FileNotFoundError"):
        read_token_file(tmp_path / "nowhere")
