"""The same over real sockets of this machine: what a network in memory cannot show."""

from __future__ import annotations

import gc
from functools import partial

import pytest
import trio

from protocol.errors import ModelError, ModelTimeout, ModelUnreachable
from protocol.turns import TextPart, Turn
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._cases import STREAMS
from tests.actors.models._wire import HELLO, HI, Heard, Server, answer, stream
from tests.actors.models.conftest import Open, model_at


async def test_a_call_over_a_socket(open_server: Open) -> None:
    """Two calls share a connection; closing the model closes it."""
    server = Server([stream(*HI), stream(*HI)])
    model = model_at(await open_server(server))

    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert HELLO_TURN == await model.turn(HELLO, Heard())
    await model.aclose()

    assert (2, 1) == (len(server.requests), server.connections)


async def test_bytes_one_by_one(open_server: Open) -> None:
    """Characters, line ends and calls survive a network that delivers single bytes."""
    names = ["SSE-05 split characters", "SSE-06 split line ends", "DEL-01 all index 0"]
    streams = [
        b"".join([data.encode() if isinstance(data, str) else data for data in STREAMS[name].chunks]) for name in names
    ]
    server = Server([stream(*[data[index : index + 1] for index in range(len(data))]) for data in streams])
    model = model_at(await open_server(server))
    turns = [await model.turn(HELLO, Heard()) for _ in names]
    await model.aclose()

    assert [STREAMS[name].turn for name in names] == turns


async def test_a_reset_in_the_middle(open_server: Open) -> None:
    """HTP-05: what had come is partial, and the reason is the system's."""
    model = model_at(await open_server(Server([stream(HI[0], end="reset")])))
    with pytest.raises(ModelError, match="broke while the reply came in: .*reset by peer") as caught:
        await model.turn(HELLO, Heard())

    assert Turn((TextPart("He"),), end="lost", response="r1") == caught.value.partial


async def test_nobody_listens() -> None:
    """Nothing was sent, and the system's reason is told."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    heard = Heard()
    with pytest.raises(ModelUnreachable, match=rf"cannot connect to http://127\.0\.0\.1:{port}/.*refused; nothing was"):
        await model_at(port).turn(HELLO, heard)

    assert [] == heard.events


async def test_tls_where_none_is_spoken(nursery: trio.Nursery, open_server: Open) -> None:
    """An address with https to a server without says so, and counts as not sent."""

    async def refuse(connection: trio.SocketStream) -> None:
        await connection.receive_some()
        await connection.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    [listener] = await nursery.start(partial(trio.serve_tcp, refuse, 0, host="127.0.0.1"))
    heard = Heard()
    model = model_at(listener.socket.getsockname()[1], scheme="https")
    with pytest.raises(ModelUnreachable, match="SSL.*nothing was sent. Does the server speak TLS there"):
        await model.turn(HELLO, heard)

    assert [] == heard.events


async def test_a_handshake_that_is_cut_leaves_nothing_open(nursery: trio.Nursery, open_server: Open) -> None:
    """TLS that is cancelled, or takes too long, closes its socket at once."""
    gone = trio.Event()

    async def wait(connection: trio.SocketStream) -> None:
        while await connection.receive_some():
            pass
        gone.set()

    [listener] = await nursery.start(partial(trio.serve_tcp, wait, 0, host="127.0.0.1"))
    port = listener.socket.getsockname()[1]
    heard = Heard()
    gc.disable()  # the collector would close it too, some time
    try:
        with pytest.raises(ModelTimeout, match="no connection"):
            await model_at(port, scheme="https", connect_timeout_seconds=0.05).turn(HELLO, heard)
        await gone.wait()
    finally:
        gc.enable()

    assert [] == heard.events


async def test_this_machine_is_reached_without_a_proxy(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy the environment names, even one that cannot work."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:1")
    port = await open_server(Server([stream(*HI), stream(*HI)]))

    for host in ("127.0.0.1", "localhost"):
        model = model_at(port, host=host)

        assert HELLO_TURN == await model.turn(HELLO, Heard())
        await model.aclose()


async def test_others_are_reached_through_the_proxy(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy of the environment is used, and sending is reported once."""
    server = Server([stream(*HI)])
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{await open_server(server)}")
    heard = Heard()
    model = model_at(80, host="model.test")
    turn = await model.turn(HELLO, heard)
    await model.aclose()

    assert (HELLO_TURN, 1) == (turn, heard.sent)
    assert "POST http://model.test/v1/chat/completions HTTP/1.1" == server.requests[0].line


async def test_a_proxy_that_refuses(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking the proxy for a tunnel is not sending: the request never left."""
    server = Server([answer(403)])
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{await open_server(server)}")
    heard = Heard()
    with pytest.raises(ModelUnreachable, match="cannot connect to https://model.test:443/v1/chat/completions: 403"):
        await model_at(443, host="model.test", scheme="https").turn(HELLO, heard)

    assert ("CONNECT model.test:443 HTTP/1.1", []) == (server.requests[0].line, heard.events)
