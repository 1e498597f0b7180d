"""How a client gets in, stays in, and learns that it is out for good."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from actors.client import ClientError, ClientPace, Disconnected, ReplyLost, Unreachable, connect
from actors.client._address import Address
from actors.gateway import Principal
from protocol.errors import SpecError
from protocol.wire import CloseCode
from tests.actors.client._cable import URL, Cable, cable_to, client_of
from tests.actors.client._fake import FakeConnection, cable_to_fake
from tests.actors.gateway.wired import open_hall


async def stay(connection: FakeConnection) -> None:
    await connection.welcome()
    await connection.wait()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8765", "is no address"),
        ("ftp://127.0.0.1", "is no address"),
        ("ws://", "is no address"),
        ("ws://host:seventy", "is no address"),
        ("ws://ada:secret@host", "token=..."),
        ("ws://host?token=secret", "token=..."),
        ("ws://host#ticket=secret", "token=..."),
    ],
)
async def test_an_address_that_cannot_be_one_is_refused(url: str, says: str) -> None:
    """The error says what a right one is, and shows no secret."""
    with pytest.raises(SpecError, match=says) as caught:
        async with connect(url):
            pass

    assert "secret" not in str(caught.value)
    assert "ws://127.0.0.1:8765" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("ws://127.0.0.1:8765", "127.0.0.1:8765", "/ws"),
        ("http://localhost:80/", "localhost", "/ws"),
        ("wss://agents.example.org", "agents.example.org", "/ws"),
        ("https://agents.example.org:8443/below/ws/", "agents.example.org:8443", "/below/ws"),
        ("ws://[::1]:8765/ws", "[::1]:8765", "/ws"),
    ],
)
def test_an_address_is_read(url: str, authority: str, path: str) -> None:
    """That of a gateway as it is printed serves too; behind a proxy it may have a path."""
    address = Address.read(url)

    assert (authority, path) == (address.authority, address.path)


async def test_a_token_that_no_header_can_carry_is_refused() -> None:
    """It is said before anything is sent."""
    with pytest.raises(SpecError, match="ASCII"):
        async with connect(URL, token="two words"):
            pass


async def test_the_first_try_decides(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    """Where nobody is there, it is said at once and not tried for ever."""
    cable, _ = cable_to_fake(nursery, stay)
    cable.unplugged = True

    with pytest.raises(Unreachable, match="not plugged in"):
        async with client_of(cable):
            pass

    assert 1 == len(cable.tried_at)


async def test_a_wrong_token_is_told(autojump_clock: trio.testing.MockClock) -> None:
    """The status and the server's words are in the error."""
    async with open_hall() as hall:
        with pytest.raises(Unreachable, match="401: who is there") as caught:
            async with client_of(cable_to(hall), token="a-token-that-nobody-knows"):
                pass

    assert 401 == caught.value.status


@pytest.mark.parametrize("behind", [0, 10])
async def test_a_server_that_drops_the_upgrade_is_unreachable(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, behind: int
) -> None:
    """It does not wait for what will not come."""
    cable, _ = cable_to_fake(nursery, stay)
    cable.down = [behind]
    began = trio.current_time()

    with pytest.raises(Unreachable, match="dropped during"):
        async with client_of(cable):
            pass

    assert began == trio.current_time()


async def silence(stream: trio.abc.Stream) -> None:
    await trio.sleep_forever()


async def mute(connection: FakeConnection) -> None:
    await trio.sleep_forever()


async def test_a_server_that_says_nothing_is_given_up(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """Whether it is silent during the upgrade or after hello, ten seconds are enough."""
    began = trio.current_time()
    with pytest.raises(Unreachable, match="too slow"):
        async with client_of(Cable(silence, nursery)):
            pass
    with pytest.raises(Disconnected, match="hello was not answered"):
        async with client_of(cable_to_fake(nursery, mute)[0]):
            pass

    assert 20 == trio.current_time() - began


async def test_a_server_that_refuses_hello_is_told(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """Its words are in the error."""

    async def refuse(connection: FakeConnection) -> None:
        await connection.refuse(await connection.command("hello"), "forbidden")
        await connection.wait()

    with pytest.raises(Unreachable, match="hello was refused: not so"):
        async with client_of(cable_to_fake(nursery, refuse)[0]):
            pass


@pytest.mark.parametrize("code", [1000, 1002, 1009, CloseCode.UNAUTHENTICATED, CloseCode.VERSION, 4999])
async def test_a_close_that_is_final_is_final(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, code: int
) -> None:
    """Commands, those that wait and those that come, raise with the code; nothing is tried again."""

    async def leave(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.command("ping")
        await connection.close(code)

    cable, _ = cable_to_fake(nursery, leave)
    async with client_of(cable) as client:
        with pytest.raises(Disconnected, match="because") as waiting:
            await client.ping()
        with pytest.raises(Disconnected) as later:
            await client.ping()
        await trio.sleep(3600)

    assert (code, code, 1) == (waiting.value.code, later.value.code, len(cable.tried_at))


@pytest.mark.parametrize("code", [1001, 1011, 1012, CloseCode.SLOW, CloseCode.OVERLOADED, CloseCode.ATTACH_AGAIN])
async def test_after_any_other_close_it_comes_back(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, code: int
) -> None:
    """The command that waited is given again and answered."""

    async def leave(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.command("ping")
        await connection.close(code)

    async def answer(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("ping"), {})
        await connection.wait()

    cable, _ = cable_to_fake(nursery, leave, answer)
    async with client_of(cable) as client:
        await client.ping()
        statistics = client.statistics()

    assert (2, 1) == (statistics.connections, statistics.resent)


async def test_the_waits_between_tries_grow_up_to_a_bound(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """They double from half a second to thirty; after a connection that lasted they begin anew."""
    cable, _ = cable_to_fake(nursery, stay)
    async with client_of(cable):
        cable.unplugged = True
        await cable.cut()
        await trio.sleep(120)
        cable.unplugged = False
        await trio.sleep(100)
        last = len(cable.tried_at)
        await cable.cut()
        lost = trio.current_time()
        await trio.sleep(5)
    waits = [after - before for before, after in zip(cable.tried_at[:last], cable.tried_at[1:last], strict=False)]

    assert [0.5, 1, 2, 4, 8, 16, 30, 30] == pytest.approx(waits[:8])
    assert [0.5] == pytest.approx([cable.tried_at[last] - lost])


async def test_a_server_that_is_full_is_tried_again_when_it_says(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """On top of the wait of one's own; at the first try it is an error that says so."""
    served: list[trio.abc.Stream] = []
    well, _ = cable_to_fake(nursery, stay)

    async def full_at_times(stream: trio.abc.Stream) -> None:
        served.append(stream)
        if len(served) == 1:
            await well.serve(stream)
            return
        await stream.receive_some(4096)
        await stream.send_all(b"HTTP/1.1 503 Full\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nfull")
        await trio.aclose_forcefully(stream)

    cable = Cable(full_at_times, nursery)
    async with client_of(cable):
        await cable.cut()
        await trio.sleep(9)
    with pytest.raises(Unreachable, match="answered 503: full") as caught:
        async with client_of(cable):
            pass
    waits = [after - before for before, after in zip(cable.tried_at, cable.tried_at[1:], strict=False)]

    assert [0.5, 8] == pytest.approx(waits[:2])
    assert (503, 7, True) == (caught.value.status, caught.value.retry_after_seconds, caught.value.may_retry)


async def test_the_waits_are_random(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    """All of a wait is left to chance: those who were thrown out together come back one by one."""
    cable, _ = cable_to_fake(nursery, stay)
    chances = iter([0.0, 0.25, 0.5, 1.0])
    async with client_of(cable, chance=lambda: next(chances)):
        cable.unplugged = True
        await cable.cut()
        await trio.sleep(2)
    waits = [after - before for before, after in zip(cable.tried_at, cable.tried_at[1:], strict=False)]

    assert [0, 0.25, 1.0] == pytest.approx(waits[:3])


async def test_a_client_gives_up_where_it_is_told_to(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """After so many seconds without a connection, its commands raise."""
    cable, _ = cable_to_fake(nursery, stay)
    pace = ClientPace(give_up_seconds=10, command_seconds=math.inf)
    async with client_of(cable, pace=pace) as client:
        cable.unplugged = True
        await cable.cut()
        with pytest.raises(Disconnected, match="no connection for 1[0-9] s"):
            await client.ping()


async def test_a_server_that_falls_silent_is_left(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """Without a word for two and a half heartbeats the connection counts as dead; with them it lasts."""

    async def beat(connection: FakeConnection) -> None:
        await connection.welcome()
        for _ in range(10):
            await trio.sleep(20)
            await connection.heartbeat()
        await trio.sleep_forever()

    cable, _ = cable_to_fake(nursery, beat)
    async with client_of(cable):
        await trio.sleep(249.9)
        before = len(cable.tried_at)
        await trio.sleep(1)

    assert (1, 2) == (before, len(cable.tried_at))


@pytest.mark.parametrize("frame", [b"bytes", "no json", "17", '{"id": {}}', '{"method": "events", "params": {}}'])
async def test_what_is_not_of_the_protocol_ends_the_connection(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, frame: str | bytes
) -> None:
    """And no more than that: the client comes back."""

    async def babble(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.send(frame)
        await connection.wait()

    async def answer(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("ping"), {})
        await connection.wait()

    async with client_of(cable_to_fake(nursery, babble, answer)[0]) as client:
        await client.ping()

    assert 2 == client.statistics().connections


async def test_unknown_notifications_and_late_replies_are_passed_over(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """A newer server may say more."""

    async def talk(connection: FakeConnection) -> None:
        await connection.welcome(more={"than": "known"}, capabilities={"new": True})
        ping = await connection.command("ping")
        late = {"jsonrpc": "2.0", "id": 4711, "result": {}}
        await connection.send({"jsonrpc": "2.0", "method": "news", "params": 7}, late, {**late, "id": "x"})
        await connection.reply(ping, {"more": 1})
        await connection.wait()

    async with client_of(cable_to_fake(nursery, talk)[0]) as client:
        await client.ping()

    assert (1, {"new": True}) == (client.statistics().connections, client.welcome.capabilities)


async def test_a_deadline_ends_the_wait_for_a_reply(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """It is not known whether the command was done, and the error says so."""
    async with client_of(cable_to_fake(nursery, stay)[0]) as client:
        began = trio.current_time()
        with pytest.raises(ReplyLost, match="ping was not answered within 30 s"):
            await client.ping()

    assert 30 == pytest.approx(trio.current_time() - began)


async def test_leaving_the_block_says_goodbye(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    """The server gets a close frame with 1000, and what is called afterwards says that the client is closed."""
    cable, server = cable_to_fake(nursery, stay)
    async with client_of(cable) as client:
        pass
    with pytest.raises(Disconnected, match="has been closed"):
        await client.ping()
    closed = server.connections[0].socket.closed

    assert closed is not None
    assert 1000 == closed.code


async def test_an_error_of_the_body_leaves_it_as_itself(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """No group is around it."""
    with pytest.raises(KeyError, match="mine"):
        async with client_of(cable_to_fake(nursery, stay)[0]):
            raise KeyError("mine")


@pytest.mark.parametrize("unplugged", [False, True])
async def test_a_cancel_ends_it_within_a_second(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, unplugged: bool
) -> None:
    """Connected or waiting to come back, with a server that does not answer the close frame either."""

    async def deaf(connection: FakeConnection) -> None:
        await connection.welcome()
        await trio.sleep_forever()

    cable, _ = cable_to_fake(nursery, deaf)
    with trio.move_on_after(5) as scope:
        async with client_of(cable) as client:
            if unplugged:
                cable.unplugged = True
                await cable.cut()
            await client.ping()

    assert scope.cancelled_caught
    assert trio.current_time() - scope.deadline <= 1


async def test_after_half_a_frame_no_other_is_sent(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """A server that takes no more is left at once: a close frame in the middle of another is no close frame."""
    cable, _ = cable_to_fake(nursery, stay)
    with trio.move_on_after(5) as scope:
        async with client_of(cable) as client:
            cable.ends[0].stalled = trio.Event()
            await client.ping()

    assert scope.cancelled_caught
    assert scope.deadline == trio.current_time()


async def test_a_command_that_is_not_taken_ends_the_connection(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """After ten seconds; on the next one it is given again."""

    async def answer(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.reply(await connection.command("ping"), {})
        await connection.wait()

    cable, _ = cable_to_fake(nursery, stay, answer)
    async with client_of(cable) as client:
        cable.ends[0].stalled = trio.Event()
        began = trio.current_time()
        await client.ping()

    assert 10.5 == pytest.approx(trio.current_time() - began)


async def test_a_cancelled_command_leaves_the_others_alone(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """Whether it was sent or not, its reply is not taken for another one's."""

    async def answer_late(connection: FakeConnection) -> None:
        await connection.welcome()
        first, second = await connection.command("agent.list"), await connection.command("ping")
        await trio.sleep(5)
        await connection.reply(first, {"agents": []})
        await connection.reply(second, {})
        await connection.wait()

    async with client_of(cable_to_fake(nursery, answer_late)[0]) as client:
        with trio.move_on_after(1) as scope:
            await client.agents()
        await client.ping()

    assert scope.cancelled_caught


async def test_what_comes_too_fast_for_the_server_waits(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """No more commands are sent than the server's limits allow."""
    at: list[float] = []

    async def count(connection: FakeConnection) -> None:
        await connection.welcome(limits={"commands_per_second": 2, "commands_burst": 3})
        while True:
            command = await connection.command("ping")
            at.append(trio.current_time())
            await connection.reply(command, {})

    async with client_of(cable_to_fake(nursery, count)[0]) as client:
        began = trio.current_time()
        async with trio.open_nursery() as several:
            for _ in range(7):
                several.start_soon(client.ping)

    assert [0, 0, 0, 0.5, 1, 1.5, 2] == pytest.approx([time - began for time in at])


async def test_a_server_that_is_overloaded_is_asked_again_when_it_says(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """The caller sees nothing of it: the command was not done, and is given once more."""

    async def busy(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.refuse(await connection.command("ping"), "overloaded", retry_after_ms=1500)
        again = await connection.command("ping")
        await connection.reply(again, {})
        await connection.wait()

    async with client_of(cable_to_fake(nursery, busy)[0]) as client:
        began = trio.current_time()
        await client.ping()

    assert 1.5 == pytest.approx(trio.current_time() - began)


async def test_a_token_is_shown_nowhere(autojump_clock: trio.testing.MockClock) -> None:
    """Not in what a program prints of a client, a follower or an error."""
    async with open_hall() as hall:
        token = "a-token-that-nobody-is-to-see"
        hall.access.add(token, Principal("ada"))
        async with client_of(cable_to(hall), token=token) as client, client.follow() as events:
            shown = [repr(client), repr(events), repr(client.welcome), repr(vars(client)), str(client.statistics())]
        hall.access.revoke("ada")
        with pytest.raises(Unreachable) as caught:
            async with client_of(cable_to(hall), token=token):
                pass

    assert [] == [text for text in (*shown, repr(caught.value), str(caught.value)) if token in text]


async def test_errors_have_one_base() -> None:
    """Who catches `ClientError` catches all that can go wrong with a connection."""
    assert all(issubclass(error, ClientError) for error in (Disconnected, ReplyLost, Unreachable))
