"""The front, over memory and in virtual time: what it reads, how long it waits, what it answers, and how many it takes."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator

import pytest
import trio
import trio.testing

from actors.gateway import DoorLimits, Gateway, Principal
from actors.gateway._access import cookie_name
from actors.gateway._door import Admitted
from actors.gateway._pages import Pages, response
from actors.gateway._watched import WatchedStream
from tests.actors.gateway.raw import (
    BEARER,
    ELSEWHERE,
    OFFER,
    TOKEN,
    UPGRADE,
    Answer,
    Choked,
    a_client,
    a_gateway,
    command,
    dial,
    dribble,
    head,
    parse_answer,
    upgrade,
)

Clock = trio.testing.MockClock


@pytest.fixture
async def gateway(autojump_clock: Clock) -> AsyncGenerator[Gateway]:
    async with a_gateway() as opened:
        yield opened


async def ask(gateway: Gateway, *pieces: bytes, every_seconds: float = 0.0) -> tuple[Answer, float]:
    """The answer to what is sent bit by bit, and after how long the connection was over."""
    begun = trio.current_time()
    async with a_client(gateway) as client, trio.open_nursery() as nursery:
        nursery.start_soon(dribble, client, pieces, every_seconds)
        data = await client.all()
        took = trio.current_time() - begun
        nursery.cancel_scope.cancel()
    return parse_answer(data), took


def bytewise(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


@pytest.mark.parametrize(
    "pieces",
    [[], [upgrade()[:20]], [upgrade()[:-1]], bytewise(upgrade()), bytewise(b"G" * 1000)],
    ids=["nothing", "a part", "all but one byte", "a byte a second", "no end"],
)
async def test_a_head_has_five_seconds(gateway: Gateway, autojump_clock: Clock, pieces: list[bytes]) -> None:
    """A head that is not there in time is 408, however busily it is being sent."""
    answer, took = await ask(gateway, *pieces, every_seconds=1)

    assert 408 == answer.status
    assert 5 <= took <= 6


async def test_a_head_of_single_bytes_is_a_head(gateway: Gateway, autojump_clock: Clock) -> None:
    """Bytes that come alone, but in time, are taken."""
    answer, _ = await ask(gateway, *bytewise(head("/healthz")), every_seconds=0.01)

    assert (200, b"ok") == (answer.status, answer.body)


async def test_a_head_that_is_too_long(gateway: Gateway, autojump_clock: Clock) -> None:
    """431 as soon as 16 KiB are exceeded, and not at the end of what is sent."""
    answer, took = await ask(gateway, b"GET / HTTP/1.1\r\n", *[b"X: " + b"x" * 997 + b"\r\n"] * 100)

    assert 431 == answer.status
    assert took < 2


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01" + b"\0" * 60 + b"\r\n\r\n", b"EHLO example.org\r\n\r\n", b"\r\n" * 9000]
)
async def test_what_is_no_http(gateway: Gateway, autojump_clock: Clock, sent: bytes) -> None:
    """What cannot be read is answered, and the connection is over."""
    answer, took = await ask(gateway, sent)

    assert answer.status in {400, 431, 408}
    assert took <= 6


async def test_a_client_that_hangs_up(gateway: Gateway, autojump_clock: Clock) -> None:
    """Who goes in the middle of a head leaves nothing behind."""
    for sent in (b"", b"GET", upgrade()[:-1], head("/")):
        async with a_client(gateway) as client:
            await client.send(sent)


async def test_a_refusal_is_an_answer(gateway: Gateway, autojump_clock: Clock) -> None:
    """It has a status, a text and a length, closes the connection, and repeats nothing of what was sent."""
    answer, _ = await ask(gateway, head(f"/ws?token={TOKEN}", *UPGRADE, OFFER, ("Authorization", f"Basic {TOKEN}")))

    assert (401, "Bearer", "close") == (
        answer.status,
        answer.headers["www-authenticate"],
        answer.headers["connection"],
    )
    assert len(answer.body) == int(answer.headers["content-length"])
    assert TOKEN not in f"{answer}"


HEADERS = {
    "cache-control": "no-store",
    "connection": "close",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/schema", "/nothing", "/ws"])
async def test_every_answer_is_strict(gateway: Gateway, autojump_clock: Clock, path: str) -> None:
    """Nothing is framed, sniffed, kept, or loads anything from elsewhere: pages and refusals alike."""
    answer, _ = await ask(gateway, head(path))
    policy = answer.headers["content-security-policy"].split("; ")

    assert HEADERS == {name: value for name, value in answer.headers.items() if name in HEADERS}
    assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} <= set(policy)
    assert [] == [rule for rule in policy if "unsafe" in rule or "*" in rule]


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/", 200, "text/html; charset=utf-8"),
        ("/healthz", 200, "text/plain; charset=utf-8"),
        ("/readyz", 200, "text/plain; charset=utf-8"),
        ("/schema", 200, "application/schema+json"),
        ("/nothing", 404, "text/plain; charset=utf-8"),
    ],
)
async def test_pages(gateway: Gateway, autojump_clock: Clock, path: str, status: int, kind: str) -> None:
    """Each page has its type; HEAD answers the same without its body."""
    full, _ = await ask(gateway, head(path))
    top, _ = await ask(gateway, head(path, method="HEAD"))

    assert (status, kind) == (full.status, full.headers["content-type"])
    assert len(full.body) == int(full.headers["content-length"])
    assert (full.status, b"") == (top.status, top.body)
    assert full.headers["content-length"] == top.headers["content-length"]


async def test_the_first_page_says_what_this_is(gateway: Gateway, autojump_clock: Clock) -> None:
    """It names the protocol and where to connect, and nothing of what runs here."""
    answer, _ = await ask(gateway, head("/"))
    text = answer.body.decode()

    assert all(words in text for words in ("Onward gateway", "onward.v1", "/ws", "/schema"))
    assert "tester" not in text


async def test_the_schema_is_the_one_that_was_given(autojump_clock: Clock) -> None:
    """Whoever opens the gateway may say what `/schema` serves; without that it is that of the commands."""
    async with a_gateway(schema=lambda: b'{"title":"mine"}') as gateway:
        mine, _ = await ask(gateway, head("/schema"))
    async with a_gateway() as gateway:
        ours, _ = await ask(gateway, head("/schema"))

    assert b'{"title":"mine"}' == mine.body
    assert "onward.v1" in json.loads(ours.body)["title"]


def test_what_is_there_to_be_served() -> None:
    """The script of pages is 404 until there is one; a gateway that closes is not ready, but healthy."""
    bare = Pages(script=lambda: None, ready=lambda: False)
    full = Pages(script=lambda: b"1", ready=lambda: True)
    told = [
        parse_answer(pages.answer(path, head_only=False)).status
        for pages in (bare, full)
        for path in ("/onward.js", "/readyz", "/healthz")
    ]
    script = parse_answer(full.answer("/onward.js", head_only=False))

    assert [404, 503, 200, 200, 200, 200] == told
    assert ("text/javascript; charset=utf-8", b"1") == (script.headers["content-type"], script.body)


def post(body: bytes, *, length: int | None = None, kind: str = "application/json", host: str = "localhost") -> bytes:
    """A request to open a session."""
    size = ("Content-Length", str(len(body) if length is None else length))
    fields = (("Origin", f"http://{host}"), ("Content-Type", kind), size)
    return head("/session", *fields, method="POST", host=host, body=body)


def with_ticket(gateway: Gateway) -> bytes:
    return json.dumps({"ticket": gateway.ticket(Principal("visitor"))}).encode()


async def test_a_ticket_opens_a_session(gateway: Gateway, autojump_clock: Clock) -> None:
    """The cookie is out of reach for scripts and other sites, and lets its page in: with the Origin, and once."""
    body = with_ticket(gateway)
    opened, _ = await ask(gateway, post(body))
    again, _ = await ask(gateway, post(body))
    cookie, *rest = opened.headers["set-cookie"].split("; ")
    async with a_client(gateway) as client:
        inside = await client.upgrade(("Cookie", cookie), ("Origin", "http://localhost"))
        await client.send(command(1, "hello"))
        await client.more(1)
    outside, _ = await ask(gateway, upgrade(("Cookie", cookie)))

    assert (200, 401, 101, 403) == (opened.status, again.status, inside.status, outside.status)
    assert cookie.startswith(f"{cookie_name(next(iter(gateway.ports)))}=")
    assert ["Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Strict"] == rest
    assert "visitor" == client.messages[0]["result"]["principal"]
    assert "set-cookie" not in again.headers


async def test_an_expired_ticket(gateway: Gateway, autojump_clock: Clock) -> None:
    """After five minutes a ticket opens nothing."""
    body = with_ticket(gateway)
    await trio.sleep(301)
    answer, _ = await ask(gateway, post(body))

    assert 401 == answer.status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post(b"{}"), 400),
        (post(b""), 400),
        (post(b"[]"), 400),
        (post(b'{"ticket": 1}'), 400),
        (post(b'{"ticket": "a", "ticket": "b"}'), 400),
        (post(b'{"ticket": NaN}'), 400),
        (post(b'{"ticket": [[[[]]]]}'), 400),
        (post(b"\xff"), 400),
        (post(b'{"ticket": "\\ud800"}'), 400),
        (post(b'{"ticket": "unknown"}'), 401),
        (post(b'{"ticket": "unknown"}', kind="text/plain"), 415),
        (post(b'{"ticket": "unknown"}', kind="application/x-www-form-urlencoded"), 415),
        (post(b"x" * 5000), 413),
        (post(b"x" * 100, length=10**9), 408),
        (post(b"x", length=2), 408),
    ],
)
async def test_what_opens_no_session(gateway: Gateway, autojump_clock: Clock, sent: bytes, status: int) -> None:
    """The body is bounded in bytes and in time, and has to be what it says."""
    answer, took = await ask(gateway, sent)

    assert status == answer.status
    assert "set-cookie" not in answer.headers
    assert took <= 7


async def test_the_body_shares_the_deadline_of_the_head(gateway: Gateway, autojump_clock: Clock) -> None:
    """Five seconds are for both together."""
    answer, took = await ask(gateway, *bytewise(post(with_ticket(gateway))), every_seconds=0.05)

    assert 408 == answer.status
    assert 5 <= took <= 6.1


async def test_a_request_behind_another_one_is_not_heard(gateway: Gateway, autojump_clock: Clock) -> None:
    """A connection has one answer."""
    answer, _ = await ask(gateway, head("/healthz") + head("/schema"))

    assert b"ok" == answer.body


async def test_frames_that_come_with_the_head(gateway: Gateway, autojump_clock: Clock) -> None:
    """What a client sends before the upgrade is answered is heard after it, whole and in order."""
    async with a_client(gateway) as client:
        await client.send(upgrade() + command(1, "hello") + command(2, "ping")[:5], command(2, "ping")[5:])
        data = await client.more(1)

    assert 101 == parse_answer(data).status
    assert b'"id":1,"result"' in data
    assert b'"id":2,"result"' in data


async def test_too_much_with_the_head(gateway: Gateway, autojump_clock: Clock) -> None:
    """What comes too early is bounded like all that follows."""
    async with a_client(gateway) as client:
        await client.send(upgrade() + b"\x81\xff" + b"\x7f" * 12)
        data = await client.all()

    assert b"\x88" == parse_answer(data).body[:1]
    assert 1009 == int.from_bytes(parse_answer(data).body[2:4])


async def test_the_subprotocol_is_told(gateway: Gateway, autojump_clock: Clock) -> None:
    """Ours is selected among those that are offered; if it is not among them, 4526 says which it is."""
    async with a_client(gateway) as client:
        answer = await client.upgrade(BEARER, ("Sec-WebSocket-Protocol", "x, y"))
    async with a_client(gateway) as stranger:
        await stranger.send(head("/ws", *UPGRADE, BEARER, ("Sec-WebSocket-Protocol", "onward.v2")))
        other = parse_answer(await stranger.all())

    assert (101, "onward.v1") == (answer.status, answer.headers["sec-websocket-protocol"])
    assert (101, None) == (other.status, other.headers.get("sec-websocket-protocol"))
    assert 4526 == int.from_bytes(other.body[2:4])
    assert b"onward.v1" in other.body


async def test_nothing_of_the_head_reaches_the_library(gateway: Gateway, autojump_clock: Clock) -> None:
    """Headers that it would not read, or would read in another way, do not stop an upgrade that the door has let in."""
    odd = (
        ("Connection", "keep-alive"),
        ("Upgrade", "h2c"),
        ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
        ("X", "\xff"),
    )
    async with a_client(gateway) as client:
        answer = await client.upgrade(BEARER, *odd)

    assert 101 == answer.status
    assert "sec-websocket-extensions" not in answer.headers


# How many


async def open_many(gateway: Gateway, nursery: trio.Nursery, count: int, address: str = ELSEWHERE) -> list[int]:
    """The statuses of so many upgrades; who is let in stays."""
    statuses = []
    for _ in range(count):
        client = dial(gateway, nursery, address=address)
        await client.send(upgrade())
        await client.more(0.001)
        statuses.append(parse_answer(bytes(client.got)).status)
    return statuses


@pytest.mark.parametrize(
    "limits",
    [
        DoorLimits(connections=3),
        DoorLimits(connections_per_address=3),
        DoorLimits(connections_per_principal=3),
        DoorLimits(handshakes_burst=3, handshakes_per_second=0.1),
    ],
    ids=["in all", "of an address", "of a principal", "at once"],
)
async def test_there_are_only_so_many(limits: DoorLimits, autojump_clock: Clock) -> None:
    """What is one too many is 503, with when to try again; the others are served, and when they go there is room."""
    async with a_gateway(door_limits=limits) as gateway:
        async with trio.open_nursery() as nursery:
            statuses = await open_many(gateway, nursery, 3)
            late, _ = await ask(gateway, upgrade())
            nursery.cancel_scope.cancel()
        await trio.sleep(30)
        async with a_client(gateway) as client:
            again = await client.upgrade()
        await trio.testing.wait_all_tasks_blocked()
        assert gateway.front is not None
        crowd = gateway.front.crowd

    assert [101] * 3 == statuses
    assert (503, 101) == (late.status, again.status)
    assert 1 <= int(late.headers["retry-after"]) <= 10
    assert ({}, {}) == (dict(crowd.by_address), dict(crowd.by_principal))


async def test_addresses_are_counted_alone(autojump_clock: Clock) -> None:
    """One address that is full keeps no other out; all of an IPv6 /64 count as one, and IPv4 is the same in both dresses."""
    limits = DoorLimits(connections_per_address=1)
    async with a_gateway(door_limits=limits) as gateway, trio.open_nursery() as nursery:
        told = [
            (await open_many(gateway, nursery, 1, address))[0]
            for address in (
                "203.0.113.1",
                "203.0.113.1",
                "::ffff:203.0.113.1",
                "203.0.113.2",
                "2001:db8::1",
                "2001:db8::2",
                "2001:db8:0:1::1",
                "fe80::1%eth0",
                "memory",
            )
        ]
        nursery.cancel_scope.cancel()

    assert [101, 503, 503, 101, 101, 503, 101, 101, 101] == told


async def test_pages_do_not_count_as_handshakes(autojump_clock: Clock) -> None:
    """Health is asked for as often as one likes."""
    async with a_gateway(door_limits=DoorLimits(handshakes_burst=1, handshakes_per_second=0.001)) as gateway:
        told = [(await ask(gateway, head("/healthz")))[0].status for _ in range(10)]

    assert [200] * 10 == told


async def test_those_who_are_turned_away_are_bounded_too(autojump_clock: Clock) -> None:
    """So many are told at a time that there are too many, and are gone in seconds; the rest is dropped without a word."""
    async with a_gateway(door_limits=DoorLimits(connections=0)) as gateway, trio.open_nursery() as nursery:
        clients = [dial(gateway, nursery) for _ in range(100)]
        await trio.testing.wait_all_tasks_blocked()
        waiting = len(nursery.child_tasks)
        answers = []
        with trio.fail_after(7):
            for client in clients:
                answers.append(await client.all())

    assert 64 == waiting
    assert (64, 36) == (sum(b"503" in answer for answer in answers), answers.count(b""))


# What goes wrong


async def test_a_client_that_does_not_read_its_answer(gateway: Gateway, autojump_clock: Clock) -> None:
    """An answer is sent within five seconds, or not."""
    assert gateway.front is not None
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(head("/"))
    begun = trio.current_time()
    await gateway.front.serve(Choked(theirs, room=0), ELSEWHERE)

    assert 5 == pytest.approx(trio.current_time() - begun)


async def test_a_fault_of_ours_ends_one_connection(
    gateway: Gateway, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever fails while a client is served is logged, without its secrets, and the next client is served."""
    assert gateway.front is not None
    served = gateway.front.upgrade

    async def fail(_stream: WatchedStream, _admitted: Admitted) -> None:
        async with trio.open_nursery():
            raise RuntimeError("a fault")

    gateway.front.upgrade = fail
    with caplog.at_level(logging.DEBUG):
        async with a_client(gateway) as client:
            await client.send(upgrade())
            told = await client.all()
    gateway.front.upgrade = served
    async with a_client(gateway) as client:
        answer = await client.upgrade()

    assert (b"", 101) == (told, answer.status)
    assert ["a connection failed"] == [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    assert TOKEN not in caplog.text


async def test_a_ping_behind_our_close(
    gateway: Gateway, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The library fails where it answers a ping after its own close frame: that is no fault, and ends no other client."""
    async with a_client(gateway) as other, a_client(gateway) as client:
        await other.upgrade()
        await other.send(command(1, "hello"))
        await client.upgrade()
        begun = trio.current_time()
        await client.more(5.1)  # it says no hello, and does not answer the close frame
        waited = trio.current_time() - begun
        await client.send(b"\x89\x80\x00\x00\x00\x00")
        await client.all()
        await other.send(b"\x89\x81\x00\x00\x00\x00x")
        await other.more(1)

    assert 4501 == client.code
    assert 5.1 == pytest.approx(waited)
    assert b"\x8a\x01x" == bytes(other.got)[-3:]
    assert [] == [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_response_has_one_body() -> None:
    """Its length is that of its bytes, not of its characters."""
    answer = parse_answer(response(200, "é"))

    assert ("2", "é".encode()) == (answer.headers["content-length"], answer.body)
