"""`onward serve` as a process: how it ends, and whom it lets in."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import trio
import trio_websocket

from actors.cli._made_token import find_made_token

from ._command import PATIENCE_SECONDS
from ._served import command, serve
from ._server import serving, streaming

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A token file."""
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{TOKEN} operate,decide tester\n")
    path.chmod(0o600)
    return path


async def test_a_signal_ends_it_in_order(tokens: Path) -> None:
    """SIGTERM: the port is closed, clients get what there is and are told to come back, and the exit status is 0."""
    seen: list[dict[str, Any]] = []
    with (
        serving(streaming({"content": "Thinking"}, hang=True)) as model,
        serve("--model", "openai:m", "--base-url", model.url, "--token-file", str(tokens)) as server,
    ):
        headers = [(b"Authorization", f"Bearer {TOKEN}".encode())]
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream, trio.open_nursery() as nursery:
            client = await trio_websocket.wrap_client_stream(
                nursery, stream, f"127.0.0.1:{server.port}", "/ws", subprotocols=["onward.v1"], extra_headers=headers
            )
            await client.send_message(json.dumps(command(1, "hello")))
            await client.send_message(json.dumps(command(2, "agent.list")))
            agent = ""
            with pytest.raises(trio_websocket.ConnectionClosed) as closed, trio.fail_after(PATIENCE_SECONDS):
                while True:
                    message = json.loads(await client.get_message())
                    seen += message if isinstance(message, list) else [message]
                    if not agent and seen[-1].get("id") == 2:
                        agent = seen[-1]["result"]["agents"][0]["agent"]
                        await client.send_message(json.dumps(command(3, "agent.attach", agent="*")))
                        start = command(4, "run.start", agent=agent, prompt="Hello", idem="i1")
                        await client.send_message(json.dumps(start))
                    if "Thinking" in json.dumps(message):
                        server.screen.process.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(server.screen.wait_for, "SIGTERM: clients are told")
        with pytest.raises(OSError):
            await trio.open_tcp_stream("127.0.0.1", server.port)
        model.release.set()
        status = await trio.to_thread.run_sync(server.screen.end)

    assert closed.value.reason is not None
    assert (1012, 0) == (closed.value.reason.code, status)
    assert TOKEN not in server.screen.seen
    assert "Traceback" not in server.screen.seen


def test_the_second_signal_ends_it_at_once() -> None:
    """Whatever still goes on."""
    with (
        serving(streaming({"content": "Thinking"}, hang=True)) as model,
        serve("--model", "openai:m", "--base-url", model.url) as server,
    ):
        start_a_run(server.url, find_made_token(server.port) or "")
        assert model.asked.wait(PATIENCE_SECONDS)
        server.screen.press(b"\x03")
        server.screen.wait_for("SIGINT: clients are told, and runs are ended. Once more: at once.")
        began = time.monotonic()
        server.screen.press(b"\x03")
        status = server.screen.end()

    assert -signal.SIGINT == status
    assert time.monotonic() - began < 3  # a run is given five seconds
    assert "Traceback" not in server.screen.seen


def start_a_run(url: str, token: str) -> None:
    """Start a run and leave."""

    async def start() -> None:
        from actors.client import connect

        async with connect(url, token=token) as client:
            (agent,) = await client.agents()
            await client.start(agent.agent, "Hello")

    trio.run(start)


async def test_its_ticket_lets_a_browser_in(runtime_folder: Path) -> None:
    """The address that is printed opens one session; the token that was made stands in a private file, and nowhere else."""
    with serve() as server:
        token = find_made_token(server.port)
        ticket = server.screen.seen.partition("#ticket=")[2].split()[0]
        answers = [await trio.to_thread.run_sync(post_ticket, server.port, ticket) for _ in range(2)]
        server.screen.press(b"\x03")
        status = await trio.to_thread.run_sync(server.screen.end)

    assert [b"200", b"401"] == [answer.split()[1] for answer in answers]
    assert status == 0
    assert token
    assert token not in server.screen.seen
    assert "nothing is kept" in server.screen.seen
    assert list((runtime_folder / "onward").iterdir()) == []


def post_ticket(port: int, ticket: str) -> bytes:
    body = json.dumps({"ticket": ticket})
    head = (
        f"POST /session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((head + body).encode())
        return connection.recv(4096)
