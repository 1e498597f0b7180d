"""What must hold of the cases about who is let in, and about those who are not and come again."""

from __future__ import annotations

import functools
import hmac
import re
from typing import Any
from unittest import mock

import attrs
import trio

from actors.client import ClientPace
from actors.gateway import Access, DoorLimits, Principal
from protocol.wire.commands import Ping
from protocol.wire.replies import Nothing
from tests.actors.gateway.raw import OFFER, UPGRADE, Answer, dial, head, parse_answer
from tests.support.play import Stage

from .claims import claim
from .gateway.place import Place, at_a_gateway
from .program import CASES

ALLOWED = "https://allowed.example"
RIGHT, WRONG = "the-right-token-of-somebody", "the-wrong-token-of-nobody-1"


def handshake(told: str) -> bytes:
    """The request that the case's words mean."""
    headers = [*UPGRADE, OFFER]
    host = "localhost"
    for part in re.split(r", | and ", told.removeprefix("handshake with ").replace(" (DNS rebinding)", "")):
        if part in {"no token", "no Origin"}:
            pass
        elif part == "right token":
            headers.append(("Authorization", f"Bearer {RIGHT}"))
        elif part == "wrong token":
            headers.append(("Authorization", f"Bearer {WRONG}"))
        elif part == "allowed Origin":
            headers.append(("Origin", ALLOWED))
        elif found := re.fullmatch(r"Host header (.*)", part):
            host = found[1]
        else:
            found = re.fullmatch(r"(?:allowed Origin with a suffix trick: |Origin )(.*)", part)
            assert found, part
            headers.append(("Origin", found[1]))
            if part.startswith("allowed"):
                headers.append(("Authorization", f"Bearer {RIGHT}"))  # that alone is wrong
    return head("/ws", *headers, host=host)


@attrs.frozen
class Door:
    """GTW-14: how each handshake was answered."""

    answers: dict[str, Answer]
    sessions: dict[str, int]
    """WebSockets that were there then."""


@functools.cache
def knock() -> Door:
    async def scene(_stage: Stage, place: Place) -> Door:
        place.hall.access.add(RIGHT, Principal("somebody"))
        door = Door({}, {})
        async with trio.open_nursery() as nursery:
            for told in CASES["GTW-14"]["input"]["actions"]:
                client = dial(place.gateway, nursery)
                await client.send(handshake(told))
                while b"\r\n\r\n" not in client.got:
                    client.got += await client.stream.receive_some(65_536)
                door.sessions[told] = len(place.gateway.connections)
                door.answers[told] = parse_answer(await client.more(1))
                await trio.aclose_forcefully(client.stream)
            nursery.cancel_scope.cancel("all have knocked")
        return door

    return at_a_gateway(scene, origins=[ALLOWED])


@claim(
    "GTW-14",
    "only the last is accepted; the others are refused at the handshake (HTTP 401/403), before any event is sent and"
    " before any session exists",
)
def only_the_right_ones_are_let_in() -> None:
    """A foreign name is 421, which says that this server does not answer to it (RFC 9110)."""
    door = knock()
    told = CASES["GTW-14"]["input"]["actions"]
    *refused, accepted = [door.answers[what] for what in told]

    assert [403, 403, 401, 401, 403, 421] == [answer.status for answer in refused]
    assert 101 == accepted.status
    assert [0, 0, 0, 0, 0, 0, 1] == [door.sessions[what] for what in told]
    for answer in refused:
        assert str(len(answer.body)) == answer.headers["content-length"]
        assert "upgrade" not in answer.headers


@claim("GTW-14", "token comparison is constant-time")
def tokens_are_compared_whole() -> None:
    """As often, and as long, whatever is shown: no byte of a token stands in what is compared."""
    known = [f"token-number-{number:06}" for number in range(20)]
    access = Access.of({token: Principal(f"p{number}") for number, token in enumerate(known)})
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(ours: Any, theirs: Any) -> bool:
        compared.append((ours, theirs))
        return real(ours, theirs)

    counts: dict[str, int] = {}
    with mock.patch("hmac.compare_digest", compare):
        for shown in (known[0], known[-1], known[0][:-1] + "X", "X" + known[0][1:], "x", "é" * 500):
            compared.clear()
            access.by_token(shown)
            counts[shown] = len(compared)

            assert {32} == {len(side) for pair in compared for side in pair}

    assert {20} == set(counts.values())


# ---------------------------------------------------------------- a storm

ROUNDS = 3


@attrs.frozen
class Storm:
    """GTW-19: a thousand clients with an expired token, and one good one."""

    answers: list[Answer | None]
    """`None` for those that were dropped without a word."""
    sessions: int
    """The most WebSockets that there were."""
    agents: int
    latencies: list[float]
    """Of the good client's pings, one every tenth of a second."""
    together: int
    """The most connections that were being looked at."""


@functools.cache
def storm() -> Storm:
    told = re.match(r"(\d+) clients with an expired token", CASES["GTW-19"]["input"]["actions"])
    assert told

    async def scene(_stage: Stage, place: Place) -> Storm:
        place.hall.access.add(RIGHT, Principal("somebody"))
        place.hall.access.revoke("somebody")
        good = place.person("good")
        await good.come()
        front = place.gateway.front
        assert front is not None
        answers: list[Answer | None] = []
        together: list[int] = []
        sessions: list[int] = []
        latencies: list[float] = []

        async def again_and_again(number: int) -> None:
            for _ in range(ROUNDS):
                client = dial(place.gateway, place.nursery, address=f"10.0.{number // 250}.{number % 250}")
                await client.send(handshake("right token"))
                answers.append(parse_answer(data) if (data := await client.all()) else None)
                together.append(front.crowd.by_address.total())
                sessions.append(len(place.gateway.connections))
                await trio.aclose_forcefully(client.stream)

        async with trio.open_nursery() as nursery:
            for number in range(int(told[1])):
                nursery.start_soon(again_and_again, number)
            for _ in range(10):
                asked = trio.current_time()
                assert Nothing() == await good.ask("ping", Ping(), Nothing)
                latencies.append(trio.current_time() - asked)
                await trio.sleep(0.1)
        return Storm(answers, max(sessions), len(place.hall.runtime.agents), latencies, max(together))

    return at_a_gateway(scene, door_limits=DoorLimits(connections=200))


@claim("GTW-19", "rejection happens at the HTTP handshake, before the upgrade, and costs no session or agent work")
def the_refused_cost_nothing() -> None:
    came = storm()

    answers = [answer for answer in came.answers if answer is not None]

    assert 1000 * ROUNDS == len(came.answers)
    assert {401, 503} == {answer.status for answer in answers}
    assert (1, 0) == (came.sessions, came.agents)
    assert not any("upgrade" in answer.headers for answer in answers)


@claim("GTW-19", "the good client's latency stays bounded; the number of handshakes in progress is capped")
def the_good_client_is_served() -> None:
    came = storm()

    assert max(came.latencies) <= 0.1
    assert came.together <= 200
    assert all("retry-after" in answer.headers for answer in came.answers if answer and answer.status == 503)


@claim(
    "GTW-19",
    "the bundled client, if any, resets its back-off only after an authenticated connection has been stable for some"
    " seconds, and uses jitter",
)
def the_client_backs_off() -> None:
    async def scene(_stage: Stage, place: Place) -> list[float]:
        person = place.person("A")
        await person.come()
        waits: list[float] = []
        for stable_seconds in (0, 0, 0, 0, 0, 60, 0):
            await trio.sleep(stable_seconds)
            broken, tries = trio.current_time(), len(person.cable.tried_at)
            await person.cable.cut()
            while len(person.cable.tried_at) == tries:  # noqa: ASYNC110  nobody tells of it
                await trio.sleep(0.01)
            waits.append(person.cable.tried_at[tries] - broken)
            await person.come_back()
        return [round(wait, 1) for wait in waits]

    pace = ClientPace()

    # `chance` is the longest here: the waits are the bounds.
    assert [0.5, 1.0, 2.0, 4.0, 8.0, 0.5, 1.0] == at_a_gateway(scene)
    assert {0.0, 2.0, 4.0} == {pace.wait_seconds(3, chance) for chance in (0.0, 0.5, 1.0)}
    assert 30.0 == pace.wait_seconds(1000, 1.0)
