"""One connection: frames in, one reply each, the greeting, the heartbeat, and how it ends."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from typing import Any

import pytest
import trio
import trio.testing
import trio_websocket

from actors import AgentSpec
from actors.gateway import Pace, Principal
from actors.models.scripted import Scripted
from protocol.events import AgentWarned
from protocol.wire import CloseCode, WireLimits

from .wired import Client, Hall, open_hall

Clock = trio.testing.MockClock


async def told(client: Client, frame: str) -> Any:
    """What one frame is answered with."""
    await client.socket.send_message(frame)
    await client.read()
    client.replies.clear()
    return client.order[-1]


async def error_of(client: Client, frame: str) -> tuple[Any, int]:
    message = await told(client, frame)
    return message["id"], message["error"]["code"]


class TestHello:
    async def test_what_it_tells(self, autojump_clock: Clock) -> None:
        """The connection's id, the server's time, the pace, the limits, and who one is."""
        async with open_hall(pace=Pace(heartbeat_seconds=7)) as hall:
            client = await hall.connect("ada", "decide", "observe", hello=False)
            welcome = await client.ask("hello", client={"name": "test", "version": "1"}, want=["unheard-of"])

        assert {
            "connection",
            "server_time",
            "heartbeat_seconds",
            "limits",
            "capabilities",
            "principal",
            "roles",
        } == set(welcome)
        assert datetime.fromisoformat(welcome["server_time"]).utcoffset() is not None
        assert (7, "ada", ["decide", "observe"], {}) == tuple(
            welcome[key] for key in ("heartbeat_seconds", "principal", "roles", "capabilities")
        )
        assert (65_536, 8_192, 1_048_576) == tuple(
            welcome["limits"][key] for key in ("message_bytes", "text_bytes", "frame_bytes")
        )

    @pytest.mark.parametrize(
        "frame",
        [
            '{"id":1,"method":"agent.list"}',
            '{"id":1,"method":"no.such.method"}',
            '{"id":1,"method":"agent.attach","params":{}}',
        ],
    )
    async def test_nothing_comes_before_it(self, frame: str, autojump_clock: Clock) -> None:
        """Any other method is no valid request, whatever is wrong with it besides; hello may be said after."""
        async with open_hall() as hall:
            client = await hall.connect(hello=False)
            refused = await error_of(client, frame)
            welcome = await client.ask("hello")

        assert (1, -32600) == refused
        assert "ada" == welcome["principal"]

    async def test_it_is_said_once(self, autojump_clock: Clock) -> None:
        """A second one is refused, and changes nothing."""
        async with open_hall() as hall:
            client = await hall.connect()
            refused = await client.refusal("hello")
            pong = await client.ask("ping")

        assert -32600 == refused.number
        assert {} == pong

    async def test_commands_may_follow_it_at_once(self, autojump_clock: Clock) -> None:
        """Nobody has to wait for the answer to hello."""
        async with open_hall() as hall:
            client = await hall.connect(hello=False)
            ids = [await client.send(method) for method in ("hello", "ping", "agent.list")]
            answers = [await client.reply(id) for id in ids]

        assert [{}, {"agents": []}] == answers[1:]

    async def test_who_does_not_say_it_is_closed(self, autojump_clock: Clock) -> None:
        """After five seconds, whatever else was sent."""
        async with open_hall() as hall:
            client = await hall.connect(hello=False)
            await client.send("ping")
            closed = await client.closed()

            assert 5 == pytest.approx(trio.current_time(), abs=0.1)
            assert CloseCode.UNAUTHENTICATED == closed[0]


class TestFrames:
    @pytest.mark.parametrize(
        ("frame", "expected"),
        [
            ("[]", (None, -32600)),
            ('[{"id":1,"method":"ping"}]', (None, -32600)),
            ('{"method":"ping"}', (None, -32600)),
            ('{"id":null,"method":"ping"}', (None, -32600)),
            ('{"id":1.5,"method":"ping"}', (None, -32600)),
            ('{"id":true,"method":"ping"}', (None, -32600)),
            ('{"id":9007199254740993,"method":"ping"}', (None, -32600)),
            ('{"id":"","method":"ping"}', (None, -32600)),
            ('{"id":"' + 65 * "x" + '","method":"ping"}', (None, -32600)),
            ('{"id":1,"method":7}', (1, -32600)),
            ('{"id":1}', (1, -32600)),
            ('{"id":1,"jsonrpc":"1.0","method":"ping"}', (1, -32600)),
            ('{"id":1,"method":"ping","params":[]}', (1, -32602)),
            ('{"id":1,"method":"nothing"}', (1, -32601)),
            ('{"id":"a","method":"agent.attach","params":{"agent":7}}', ("a", -32602)),
            ('{"id":1,"method":"agent.attach","params":{"agent":"a b"}}', (1, -32602)),
            ('{"id":1,"method":"agent.attach","params":{"agent":"a\\n"}}', (1, -32602)),
            ('"ping"', (None, -32600)),
            ("", (None, -32700)),
            ('{"id":1,"method":"ping"', (None, -32700)),
            ('{"id":1,"id":2,"method":"ping"}', (None, -32700)),
            ('{"id":1,"method":"ping","params":{"x":NaN}}', (None, -32700)),
            ('{"id":1,"method":"ping","params":{"x":"\\ud800"}}', (None, -32700)),
        ],
    )
    async def test_what_is_no_command(self, frame: str, expected: tuple[Any, int], autojump_clock: Clock) -> None:
        """It gets one error with the code of its fault, and the connection stays."""
        async with open_hall() as hall:
            client = await hall.connect()
            refused = await error_of(client, frame)
            pong = await client.ask("ping")

        assert expected == refused
        assert {} == pong

    @pytest.mark.parametrize("id", [0, -1, 2**53, "a", 64 * "x", "\N{PILE OF POO}"])
    async def test_ids_come_back_as_they_were(self, id: Any, autojump_clock: Clock) -> None:
        """An integer within 2^53, or a string of 1 to 64 characters; unknown params are ignored."""
        async with open_hall() as hall:
            client = await hall.connect()
            message = await told(client, json.dumps({"id": id, "method": "ping", "params": {"unknown": 1}}))

        assert {"jsonrpc": "2.0", "id": id, "result": {}} == message

    async def test_each_command_gets_one_reply(self, autojump_clock: Clock) -> None:
        """In one frame, if they come together."""
        async with open_hall() as hall:
            client = await hall.connect()
            for number in range(10):
                await client.send("ping", id=f"p{number}")
            await client.read_for(1)

        assert [f"p{number}" for number in range(10)] == [message["id"] for message in client.order[1:]]
        assert len(client.frames) <= 4

    async def test_binary_frames(self, autojump_clock: Clock) -> None:
        """This protocol is text."""
        async with open_hall() as hall:
            client = await hall.connect()
            await client.socket.send_message(b"{}")
            closed = await client.closed()

        assert 1003 == closed[0]

    async def test_texts_that_are_too_long(self, autojump_clock: Clock) -> None:
        """8 KiB in UTF-8, and not one byte more; the connection stays."""
        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted(["ok"])))
            client = await hall.connect()
            refused = await client.refusal("run.start", agent=agent.id, prompt=4096 * "\u00e4" + "a", idem="i")
            started = await client.ask("run.start", agent=agent.id, prompt=4096 * "\u00e4", idem="i")

        assert "too_large" == refused.word
        assert {"run", "seq"} == set(started)

    async def test_a_result_that_fits_in_no_frame(self, autojump_clock: Clock) -> None:
        """The command is refused, and the connection stays."""
        async with open_hall(limits=WireLimits(frame_bytes=2048)) as hall:
            for _ in range(30):
                await hall.spawn(AgentSpec(model=Scripted([])))
            client = await hall.connect()
            refused = await client.refusal("agent.list")
            pong = await client.ask("ping")

        assert "too_large" == refused.word
        assert {} == pong
        assert max(map(len, client.frames)) <= 2048


class TestFaults:
    async def test_a_fault_of_ours(self, autojump_clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
        """The client is told that it was one, the log has its trace, and the connection stays."""
        async with open_hall() as hall:
            client = await hall.connect()
            await hall.spawn(AgentSpec(model=Scripted([])))
            bad = Principal("eve", sees=lambda _name: 1 // 0 > 0)
            victim = await hall.connect(bad)
            refused = await victim.refusal("agent.list")
            pongs = [await one.ask("ping") for one in (client, victim)]

        assert -32603 == refused.number
        assert "ZeroDivisionError" in caplog.text
        assert "ZeroDivisionError" not in refused.text
        assert [{}, {}] == pongs


class TestHeartbeat:
    async def test_it_tells_what_has_moved(self, autojump_clock: Clock) -> None:
        """Of what is followed, and with an empty map where nothing has."""
        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted(["one", "two"])))
            await hall.spawn(AgentSpec(model=Scripted([])))
            client = await hall.connect()
            await client.read_for(21)
            await client.ask("agent.attach", agent=agent.id)
            await client.read_for(40)
            await (await agent.start("go")).result()
            await client.read_for(20)

            assert [{}, {agent.id: 1}, {}, {agent.id: agent.stream.end}] == client.heartbeats()

    async def test_it_comes_behind_the_events_that_it_counts(self, autojump_clock: Clock) -> None:
        """A client that has less than a heartbeat says has lost something: it is never told too soon."""
        async with open_hall(pace=Pace(heartbeat_seconds=0.01)) as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted(["one"] * 20)))
            client = await hall.connect(queue=10_000)
            await client.ask("agent.attach", agent=agent.id, from_="start")
            for _ in range(20):
                await (await agent.start("go")).result()
                await trio.sleep(0.003)
            await client.read_for(1)
        seen, wrong = 0, []
        for note in client.notes:
            if note["method"] == "events":
                seen = note["params"]["seq"] + len(note["params"]["events"]) - 1
            elif note["params"]["heads"].get(agent.id, seen) != seen:
                wrong.append(note)

        assert [] == wrong
        assert len([heads for heads in client.heartbeats() if heads]) >= 3

    async def test_it_counts_what_was_sent(self, autojump_clock: Clock) -> None:
        """In the middle of a long past it says how far that has come, and no more."""
        async with open_hall(pace=Pace(heartbeat_seconds=0.02), event_log_bytes=4_000_000) as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted([])))
            for _ in range(2000):
                agent.stream.append(AgentWarned(agent=agent.id, code="c", text="x" * 1000))
            client = await hall.connect(queue=1000)
            await client.ask("agent.attach", agent=agent.id, from_="start")
            await client.read_for(3)
        seen, wrong, told = 0, [], []
        for note in client.notes:
            if note["method"] == "events":
                seen = note["params"]["seq"] + len(note["params"]["events"]) - 1
            elif (head := note["params"]["heads"].get(agent.id)) is not None:
                told.append(head)
                wrong += [head] if head != seen else []

        assert [] == wrong
        assert told[0] < told[-1] == 2001

    async def test_none_before_hello(self, autojump_clock: Clock) -> None:
        """Nothing but replies comes to one who has not said who it is."""
        async with open_hall(pace=Pace(heartbeat_seconds=1)) as hall:
            client = await hall.connect(hello=False)
            await client.read_for(4.5)

        assert [] == client.notes

    async def test_two_pings_without_an_answer(self, autojump_clock: Clock) -> None:
        """A client that is gone is let go: with the second ping that it misses."""
        async with open_hall() as hall:
            client = await hall.connect()
            deafen(client)
            await trio.sleep(59)
            before = len(hall.gateway.connections)
            await trio.sleep(3)

            assert (1, 0) == (before, len(hall.gateway.connections))

    async def test_a_credential_that_is_taken_away(self, autojump_clock: Clock) -> None:
        """It is looked at again at each heartbeat; others stay."""
        async with open_hall() as hall:
            ada, bob = await hall.connect("ada"), await hall.connect("bob")
            await trio.sleep(5)
            hall.access.revoke("ada")
            closed = await ada.closed()
            at = trio.current_time()
            pong = await bob.ask("ping")

        assert CloseCode.UNAUTHENTICATED == closed[0]
        assert 20 == pytest.approx(at, abs=1)
        assert {} == pong


class TestEnds:
    async def test_a_client_that_leaves(self, autojump_clock: Clock) -> None:
        """With a close frame or without one: nothing of it stays."""
        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted([])))
            clients = [await hall.connect() for _ in range(4)]
            for client in clients:
                await client.ask("agent.attach", agent=agent.id)
            await clients[0].socket.aclose()
            await clients[1].drop()
            await clients[2].stream.send_all(b"\x81")  # half a frame
            await clients[2].drop()
            await trio.sleep(3)
            left = list(hall.gateway.connections.values())

            assert 1 == len(left) == len(agent.stream._followers) == len(agent.stream._armed)

    async def test_the_gateway_goes_away(self, autojump_clock: Clock) -> None:
        """Each client gets what is visible, then the reason; whoever asks for more is told that it is draining."""
        async with open_hall(pace=Pace(window_seconds=0.5)) as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted(["one"])))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id, from_="start")
            await (await agent.start("go")).result()
            end = agent.stream.end
            hall.gateway.close()
            await trio.sleep(0.001)
            refused = await client.refusal("agent.list")
            closed = await client.closed()

        assert "draining" == refused.word
        assert refused.data["retryable"]
        assert CloseCode.GOING_AWAY == closed[0]
        assert end == len(client.events(agent.id))

    async def test_a_chatty_agent_holds_nobody_up(self, autojump_clock: Clock) -> None:
        """What becomes visible after the end began is not sent any more, however slowly a client reads."""
        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted([])))
            client = await hall.connect(streams=trio.testing.lockstep_stream_pair)
            await client.ask("agent.attach", agent=agent.id)

            async def chatter() -> None:
                while True:
                    agent.stream.append(AgentWarned(agent=agent.id, code="c", text="t"))
                    await trio.sleep(0.001)

            hall.nursery.start_soon(chatter)
            await trio.sleep(0.1)  # by now a send waits for the client
            hall.gateway.close()
            began = trio.current_time()
            with contextlib.suppress(trio_websocket.ConnectionClosed):
                while True:
                    await client.read()
                    await trio.sleep(0.05)
            closed = client.socket.closed

            assert closed is not None
            assert CloseCode.GOING_AWAY == closed.code
            assert trio.current_time() - began < 1

    async def test_an_error_in_the_writer(self, autojump_clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
        """Whatever happens inside ends this connection, with 1011, and no other."""
        async with open_hall() as hall:
            client, other = await hall.connect(), await hall.connect()
            await trio.sleep(1)
            connection = next(iter(hall.gateway.connections.values()))
            connection.session._messages.append(None)  # type: ignore[arg-type]
            connection.session.stir()
            closed = await client.closed()
            pong = await other.ask("ping")

        assert CloseCode.INTERNAL == closed[0]
        assert {} == pong
        assert "failed" in caplog.text

    async def test_the_close_frame_is_waited_for(self, autojump_clock: Clock) -> None:
        """A client has a second to answer it; then TCP is dropped."""
        async with open_hall() as hall:
            client = await hall.connect(hello=False, streams=trio.testing.lockstep_stream_pair)
            deafen(client)
            await trio.sleep(5.9)
            before = len(hall.gateway.connections)
            await trio.sleep(0.2)

            assert (1, 0) == (before, len(hall.gateway.connections))

    async def test_a_send_that_takes_too_long(self, autojump_clock: Clock) -> None:
        """Ten seconds; then TCP is dropped, within a second."""
        async with open_hall() as hall:
            client = await hall.connect(streams=trio.testing.lockstep_stream_pair)
            await stall(hall, client)
            began = trio.current_time()
            while hall.gateway.connections:  # noqa: ASYNC110
                await trio.sleep(0.1)

            assert 9 <= trio.current_time() - began <= 11
            with pytest.raises(trio_websocket.ConnectionClosed):
                while True:
                    await client.read()


def deafen(client: Client) -> None:
    """Have a client hear nothing any more: it answers neither pings nor a close frame."""
    wsproto: Any = client.socket._wsproto
    wsproto.receive_data = lambda _data: None


async def stall(hall: Hall, client: Client) -> None:
    """Have the server send more than the client takes: it reads no more from here on."""
    for number in range(5):
        await client.send("ping", id=f"stall{number}")
        await trio.sleep(0.1)
    await trio.testing.wait_all_tasks_blocked()
