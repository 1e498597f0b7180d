"""The door: every refusal, in its order, and who is let in."""

from __future__ import annotations

from typing import Any

import pytest

from actors.gateway import Access, Principal
from actors.gateway._access import cookie_name
from actors.gateway._door import Admitted, Door, Page, Refused, Verdict, is_loopback
from actors.gateway._head import HeadError, HeadReader
from protocol.errors import SpecError
from tests.actors.gateway.raw import BEARER, KEY, OFFER, TOKEN, UPGRADE, head, upgrade

PORT = 8765
OWN = ("Origin", "http://localhost:8765")
FOREIGN = ("Origin", "https://evil.example")
WRONG = ("Authorization", "Bearer of-nobody-at-all-0001")
ROLELESS = "token-of-nobody-000001"


def door(**options: Any) -> Door:
    access = Access.of({TOKEN: Principal("tester"), ROLELESS: Principal("ghost", frozenset())})
    return Door(access=options.pop("access", access), ports=lambda: [PORT], **options)


def judge(raw: bytes, **options: Any) -> Verdict:
    found = HeadReader().feed(raw)
    assert found is not None
    return door(**options).judge(found)


def status_of(raw: bytes, **options: Any) -> int | str:
    """The status it is refused with; or `page`, or the name of who is let in."""
    try:
        verdict = judge(raw, **options)
    except HeadError as error:
        return error.status
    match verdict:
        case Refused(status=status):
            return status
        case Page(name=name):
            return name
        case Admitted(principal=principal):
            return principal.name


def without(*names: str) -> bytes:
    """An upgrade that lacks these headers."""
    return head("/ws", *[(name, value) for name, value in (*UPGRADE, OFFER, BEARER) if name not in names])


ORDER: list[tuple[str, dict[str, str]]] = [
    ("421", {"host": "evil.example"}),
    ("405", {"method": "PUT"}),
    ("403", {"origin": "https://evil.example"}),
    ("401", {"authorization": "Bearer of-nobody-at-all-0001"}),
    ("403 role", {"authorization": f"Bearer {ROLELESS}"}),
    ("426", {"upgrade": "h2c"}),
    ("426 version", {"sec-websocket-version": "12"}),
    ("400", {"sec-websocket-key": "short"}),
]
"""What is wrong with a request, from the first thing that is looked at to the last."""


@pytest.mark.parametrize("at", range(len(ORDER)), ids=[name for name, _ in ORDER])
def test_the_first_thing_that_is_wrong_is_told(at: int) -> None:
    """Of all that is wrong with an upgrade, what comes first in the order decides its status."""
    fields = {
        "host": "localhost",
        "method": "GET",
        **{name.lower(): value for name, value in (*UPGRADE, OFFER, BEARER)},
    }
    for _, wrong in reversed(ORDER[at:]):
        fields.update(wrong)
    method, host = fields.pop("method"), fields.pop("host")

    assert int(ORDER[at][0][:3]) == status_of(head("/ws", *fields.items(), method=method, host=host))


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8765", "127.0.0.1", "127.0.0.1:8765", "[::1]:8765", "[::1]", "192.0.2.7:8765"],
)
def test_hosts_that_are_ours(host: str) -> None:
    """Localhost and addresses, with our port or without one: no name of somebody else's can be among them."""
    assert "tester" == status_of(upgrade(host=host))
    assert "/healthz" == status_of(head("/healthz", host=host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "localhost.evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost:8766",
        "127.0.0.1:80",
        "localhost:",
        "localhost:x",
        "localhost:\xff",
        "localhost:876500",
        "localhost@evil.example",
        "user@localhost",
        "127.1",
        "::1",
        "[::1",
        "[localhost]:8765",
        "",
        " ",
        "localhost, evil.example",
        "localhost.",
    ],
)
@pytest.mark.parametrize("path", ["/ws", "/", "/healthz", "/readyz", "/schema", "/onward.js", "/session", "/none"])
def test_a_rebound_name_gets_nothing(host: str, path: str) -> None:
    """A name that is not ours is refused on every route, whatever else is right, before it learns what is there."""
    method = "POST" if path == "/session" else "GET"

    assert 421 == status_of(head(path, *UPGRADE, OFFER, BEARER, host=host, method=method))


def test_a_name_of_ones_own() -> None:
    """A name that is given is ours at any port, in any case: a proxy may stand before it."""
    told = [
        status_of(upgrade(host=host), hosts=("Agents.example.org",))
        for host in ("agents.example.org", "AGENTS.example.org:443", "agents.example.org:8765", "other.example.org")
    ]

    assert ["tester", "tester", "tester", 421] == told


@pytest.mark.parametrize("name", ["agents.example.org:443", "https://agents.example.org", "", "a b", "[::1]", "*"])
def test_a_name_that_is_none(name: str) -> None:
    """A wrong setting is told at once."""
    with pytest.raises(SpecError, match="without a port"):
        door(hosts=[name])


@pytest.mark.parametrize("origin", ["agents.example.org", "https://a.example/", "*", "null", "ws://a.example", ""])
def test_an_origin_that_is_none(origin: str) -> None:
    """A wrong setting is told at once."""
    with pytest.raises(SpecError, match="without a path"):
        door(origins=[origin])


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://evil.example:8765",
        "http://localhost:8766",
        "http://localhost",
        "https://localhost:8765",
        "http://localhost:8765.evil.example",
        "http://localhost:8765/",
        "http://127.0.0.1:8765",
        "null",
        "",
        "file://",
        "http://localhost:8765 https://evil.example",
    ],
)
def test_foreign_origins(origin: str) -> None:
    """A page that is not our own gets nowhere, even with a good token: scheme, host and port have to be equal."""
    assert 403 == status_of(upgrade(BEARER, ("Origin", origin), host="localhost:8765"))


def test_origins_that_fit() -> None:
    """The gateway's own origin, in any case, and those that are given."""
    own = [
        status_of(upgrade(BEARER, ("Origin", origin), host="localhost:8765"))
        for origin in ("http://localhost:8765", "HTTP://LOCALHOST:8765")
    ]
    others = [
        status_of(upgrade(BEARER, ("Origin", origin)), origins=("https://Pages.example",))
        for origin in ("https://pages.example", "https://pages.example:444", "http://pages.example")
    ]
    secure = [
        status_of(upgrade(BEARER, ("Origin", f"{scheme}://localhost:8765"), host="localhost:8765"), secure=True)
        for scheme in ("http", "https")
    ]

    assert ["tester", "tester"] == own
    assert ["tester", 403, 403] == others
    assert [403, "tester"] == secure


def test_who_says_nothing() -> None:
    """Without Origin a bearer token is needed: a request with nothing at all lacks a credential, a cookie its Origin."""
    assert 401 == status_of(head("/ws", *UPGRADE, OFFER))
    assert 403 == status_of(upgrade(("Cookie", "a=b")))
    assert 401 == status_of(upgrade(OWN, host="localhost:8765"))
    assert "tester" == status_of(upgrade(BEARER))


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer x{TOKEN}"],
)
def test_credentials_that_are_none(value: str) -> None:
    """Only a token as it was given counts; how to show it is told, and the token is not repeated."""
    verdict = judge(upgrade(("Authorization", value)))

    assert isinstance(verdict, Refused)
    assert (401, (("WWW-Authenticate", "Bearer"),)) == (verdict.status, verdict.headers)
    assert TOKEN not in str(verdict)


def test_the_scheme_is_read_in_any_case() -> None:
    """`bearer` is `Bearer`."""
    assert "tester" == status_of(upgrade(("authorization", f"bearer  {TOKEN}")))


@pytest.mark.parametrize("path", [f"/ws?token={TOKEN}", f"/ws?access_token={TOKEN}", f"/ws?ticket={TOKEN}#x"])
def test_a_token_in_the_address_is_none(path: str) -> None:
    """What stands in a query is not looked at, and is nowhere to be seen again."""
    found = HeadReader().feed(head(path, *UPGRADE, OFFER))
    assert found is not None
    verdict = door().judge(found)

    assert isinstance(verdict, Refused)
    assert 401 == verdict.status
    assert TOKEN not in f"{found!r}{verdict!r}"


@pytest.mark.parametrize(
    "name",
    ["Host", "Origin", "Authorization", "Cookie", "Sec-WebSocket-Key", "Sec-WebSocket-Version"],
)
def test_headers_that_stand_twice(name: str) -> None:
    """What one reader takes from the first and another from the last is refused, even where both are the same."""
    values = {"Host": "localhost", "Origin": "http://localhost", "Cookie": "a=b", **dict([*UPGRADE, BEARER])}
    doubled = {**values, name: values[name]}
    fields = [(key, value) for key, value in doubled.items() for _ in range(2 if key == name else 1)]

    assert 400 == status_of(head("/ws", *fields, OFFER, host=None))


@pytest.mark.parametrize(
    "raw",
    [
        without("Connection"),
        without("Upgrade"),
        without("Upgrade", "Connection") + b"",
        upgrade().replace(b"websocket", b"h2c"),
        upgrade().replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
    ids=["no connection", "no upgrade", "neither", "another protocol", "HTTP/1.0"],
)
def test_no_upgrade(raw: bytes) -> None:
    """`/ws` without a WebSocket says what it is."""
    verdict = judge(raw)

    assert isinstance(verdict, Refused)
    assert (426, ("Upgrade", "websocket")) == (verdict.status, verdict.headers[0])


@pytest.mark.parametrize("version", [None, "", "8", "12", "14", "13, 8"])
def test_another_version(version: str | None) -> None:
    """Any version of the WebSocket protocol but 13 is told which one it is."""
    fields = [(key, value) for key, value in (*UPGRADE, OFFER, BEARER) if key != "Sec-WebSocket-Version"]
    verdict = judge(head("/ws", *fields, *([("Sec-WebSocket-Version", version)] if version is not None else [])))

    assert isinstance(verdict, Refused)
    assert 426 == verdict.status
    assert ("Sec-WebSocket-Version", "13") in verdict.headers


@pytest.mark.parametrize(
    "key", [None, "", "x", KEY[:-2], KEY + "AA", "AAECAwQFBgcICQoLDA0OD!==", "\xff" * 16, "é" * 24]
)
def test_a_key_that_is_none(key: str | None) -> None:
    """The key of an upgrade is 16 bytes in base64."""
    fields = [(name, value) for name, value in (*UPGRADE, OFFER, BEARER) if name != "Sec-WebSocket-Key"]

    assert 400 == status_of(head("/ws", *fields, *([("Sec-WebSocket-Key", key)] if key is not None else [])))


def test_what_an_upgrade_may_look_like() -> None:
    """Words in any case, among others, on several lines."""
    fields = (
        ("connection", "keep-alive"),
        ("connection", "UPGRADE, x"),
        ("upgrade", "h2c, WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", KEY),
        ("sec-websocket-protocol", "other"),
        ("sec-websocket-protocol", "x, onward.v1"),
    )
    verdict = judge(head("/ws", *fields, BEARER))

    assert isinstance(verdict, Admitted)
    assert (True, KEY) == (verdict.subprotocol, verdict.key)


@pytest.mark.parametrize("offered", [None, "", "onward.v2", "ONWARD.V1", "onward.v1x", "onward"])
def test_a_subprotocol_that_is_not_offered(offered: str | None) -> None:
    """The upgrade goes on, to be closed with the reason: a page is not shown the status of a refusal."""
    fields = [] if offered is None else [("Sec-WebSocket-Protocol", offered)]
    verdict = judge(head("/ws", *UPGRADE, *fields, BEARER))

    assert isinstance(verdict, Admitted)
    assert not verdict.subprotocol


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/", "/"),
        ("HEAD", "/", "/"),
        ("GET", "/healthz?x=1", "/healthz"),
        ("GET", "/readyz", "/readyz"),
        ("GET", "/schema", "/schema"),
        ("GET", "/onward.js", "/onward.js"),
        ("GET", "/nothing", 404),
        ("GET", "/ws/", 404),
        ("GET", "/WS", 404),
        ("GET", "/%77s", 404),
        ("GET", "/../ws", 404),
        ("GET", "//localhost/ws", 400),
        ("GET", "http://localhost/ws", 400),
        ("OPTIONS", "*", 400),
        ("POST", "/nothing", 404),
        ("POST", "/", 405),
        ("OPTIONS", "/", 405),
        ("GET", "/session", 405),
        ("HEAD", "/session", 405),
        ("POST", "/ws", 405),
        ("HEAD", "/ws", 405),
        ("CONNECT", "localhost:8765", 400),
        ("PROPFIND", "/ws", 405),
    ],
)
def test_paths_and_methods(method: str, path: str, expected: int | str) -> None:
    """Pages need no token; what is not there is 404, and a method that does not fit 405."""
    assert expected == status_of(head(path, method=method))


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", "http://localhost:8765"])
def test_a_session_is_opened_from_our_own_page(origin: str | None) -> None:
    """`POST /session` needs our own Origin: without one, no page of ours has sent it."""
    fields = [] if origin is None else [("Origin", origin)]

    assert 403 == status_of(head("/session", *fields, method="POST"))
    assert "/session" == status_of(head("/session", ("Origin", "http://localhost"), method="POST"))


def test_a_refused_method_tells_which_fit() -> None:
    """405 comes with `Allow`."""
    told = [judge(head(path, method="PUT")) for path in ("/", "/session", "/ws")]

    assert ["GET, HEAD", "POST", "GET"] == [
        dict(answer.headers)["Allow"] for answer in told if isinstance(answer, Refused)
    ]


def test_a_cookie_among_others() -> None:
    """Other cookies of the host may be anything at all: ours is found among them, and theirs are not taken for it."""
    access = Access(clock=lambda: 0.0)
    cookie = access.open_session(access.ticket(Principal("visitor")))
    name = cookie_name(PORT)
    ours = f"{name}={cookie}"

    def told(text: str) -> int | str:
        return status_of(upgrade(OWN, ("Cookie", text), host="localhost:8765"), access=access)

    assert ["visitor"] * 3 == [told(ours), told(f'x={{"a": "b;c"}}; {ours} ; y="'), told(f"=;;; {ours};")]
    assert [401] * 4 == [told(f"{name}="), told(f"x{ours}"), told(f"{ours}x"), told(f"{cookie_name(1)}={cookie}")]


def test_a_cookie_needs_its_origin() -> None:
    """A cookie is sent along by a browser, whoever asks: only the Origin tells who that was."""
    access = Access(clock=lambda: 0.0)
    cookie = ("Cookie", f"{cookie_name(PORT)}={access.open_session(access.ticket())}")

    assert 403 == status_of(upgrade(cookie), access=access)
    assert 403 == status_of(upgrade(cookie, FOREIGN), access=access)
    assert "console" == status_of(upgrade(cookie, OWN, host="localhost:8765"), access=access)


def test_open_to_all() -> None:
    """Without credentials everybody on this machine is let in; but no foreign page, and nobody with a wrong token."""
    plain = head("/ws", *UPGRADE, OFFER)

    assert "local" == status_of(plain, open_to_all=True)
    assert 403 == status_of(upgrade(FOREIGN), open_to_all=True)
    assert 401 == status_of(upgrade(WRONG), open_to_all=True)
    assert 421 == status_of(upgrade(host="evil.example"), open_to_all=True)


def test_the_credential_is_good_until_it_is_revoked() -> None:
    """Who was let in by a token knows whether that is good still."""
    access = Access.of({TOKEN: Principal("tester")})
    verdict = judge(upgrade(), access=access)
    assert isinstance(verdict, Admitted)
    before = verdict.still()
    access.revoke("tester")

    assert (True, False) == (before, verdict.still())


def test_where_only_this_machine_listens() -> None:
    """Loopback addresses and `localhost`: of any other name it is not known."""
    near = ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"]
    far = ["0.0.0.0", "::", "", "192.168.0.1", "example.org", "localhost.example.org"]

    assert [True] * len(near) == [is_loopback(host) for host in near]
    assert [False] * len(far) == [is_loopback(host) for host in far]
