"""`onward serve` as a process: how it ends, and whom it lets in."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio_websocket

from actors.cli._made_token import find_made_token
from actors.client import ClientPace, Item, Received, WireRefused, connect
from actors.journal import read_journal
from protocol.events import ContentDelta, RunFinished, RunStarted
from tests.peers.test_killed_server import free_port
from tests.support.unmeasured import unmeasured

from ._command import COMMAND, PATIENCE_SECONDS, ROOT, environment
from ._served import Served, command, serve
from ._server import call_delta, serving, streaming

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
    """SIGTERM: the port is closed, clients see how runs end and are told to come back, and the exit status is 0."""
    seen: list[dict[str, Any]] = []
    with (
        serving(streaming({"content": "Thinking"}, hang=True)) as model,
        serve("--model", "openai:m", "--base-url", model.url, "--token-file", str(tokens)) as server,
    ):
        headers = [(b"Authorization", f"Bearer {TOKEN}".encode())]
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        signalled = False
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
                    if not signalled and "Thinking" in json.dumps(message):
                        signalled = True  # a second one would end it at once
                        server.screen.process.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(server.screen.wait_for, "SIGTERM: clients are told")
        with pytest.raises(OSError):
            await trio.open_tcp_stream("127.0.0.1", server.port)
        model.release.set()
        status = await trio.to_thread.run_sync(server.screen.end)

    assert closed.value.reason is not None
    assert (1012, 0) == (closed.value.reason.code, status)
    assert '"run_cancelled"' in json.dumps(seen)
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


async def test_with_a_journal_it_goes_on(tmp_path: Path, runtime_folder: Path) -> None:
    """SIGTERM: no run ends, and the status is 0; the same command goes on, and the token that was made is good still."""
    call = streaming(call_delta("list_dir", {"path": "."}), finish="tool_calls")
    answers = [call, streaming({"content": "Thinking"}, hang=True), streaming({"content": "All seen."})]
    port = free_port()
    items: list[Item] = []
    with serving(*answers) as model, contextlib.ExitStack() as servers:

        async def start() -> Served:
            arguments = ["--model", "openai:m", "--base-url", model.url, "--tools", "files:.", "--journal", "onward.db"]
            return await trio.to_thread.run_sync(servers.enter_context, serve(*arguments, bind=str(port), cwd=tmp_path))

        first = await start()
        token = find_made_token(port)
        assert token is not None
        pace = ClientPace(first_seconds=0.2)
        async with connect(first.url, token=token, pace=pace) as client, client.follow(since="start") as events:
            (agent,) = await client.agents()
            await client.start(agent.agent, "Look around")
            with trio.fail_after(PATIENCE_SECONDS):
                async for item in events:
                    items.append(item)
                    if isinstance(item, Received) and isinstance(item.event, ContentDelta):
                        break
            first.screen.process.send_signal(signal.SIGTERM)
            status = await trio.to_thread.run_sync(first.screen.end)
            model.release.set()
            second = await start()
            with trio.fail_after(PATIENCE_SECONDS):
                async for item in events:
                    items.append(item)
                    if isinstance(item, Received) and isinstance(item.event, RunFinished):
                        text = item.event.summary.text
                        break
        mode = stat.S_IMODE((runtime_folder / "onward" / f"token-{port}").stat().st_mode)
        second.screen.press(b"\x03")
        last = await trio.to_thread.run_sync(second.screen.end)
    numbers = [item.number for item in items if isinstance(item, Received)]
    types = [item.event.type for item in items if isinstance(item, Received)]

    assert (0, 0, "All seen.") == (status, last, text)
    assert list(range(1, len(items) + 1)) == numbers
    assert (1, 1) == (types.count("run_started"), types.count("run_resumed"))
    assert (token, 0o600) == (find_made_token(port), mode)
    assert "SIGTERM: clients are told, and runs stand still. Once more: at once." in first.screen.seen
    assert "Kept in onward.db: the same command goes on where this one ends." in first.screen.seen
    assert token not in first.screen.seen + second.screen.seen
    assert "Traceback" not in first.screen.seen + second.screen.seen


def start_a_run(url: str, token: str) -> None:
    """Start a run and leave."""

    async def start() -> None:
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


def test_who_is_not_hosted_any_more(tmp_path: Path) -> None:
    """Is kept, and that is said."""
    for name in ("one", "two"):
        (tmp_path / "agents.toml").write_text(f'[[agents]]\nname = "{name}"\n')
        with serve("agents.toml", "--journal", "onward.db", cwd=tmp_path) as server:
            server.screen.press(b"\x03")
            status = server.screen.end()

    assert status == 0
    assert "one: is kept in onward.db, and not hosted here" in server.screen.seen
    assert "two: is kept" not in server.screen.seen


@pytest.fixture
def on_a_small_disk(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server whose files may have 300 KB."""
    bounded = ["sh", "-c", 'ulimit -f 600; exec "$@"', "sh"]  # blocks of 512 bytes
    arguments = ["serve", "--bind", "0", "--journal", "onward.db", "--tools", f"files:{ROOT / 'docs'}"]
    with subprocess.Popen(
        [*bounded, *COMMAND, *arguments], cwd=tmp_path, env=unmeasured(environment()), stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


async def test_a_disk_that_is_full(on_a_small_disk: subprocess.Popen[str], tmp_path: Path) -> None:
    """It is said, nothing is acknowledged any more, and the status is 1; what was acknowledged is kept."""
    process = on_a_small_disk
    assert process.stderr is not None
    seen = ""
    while "Ctrl-C ends it." not in seen:
        seen += await trio.to_thread.run_sync(process.stderr.readline)
    url = seen.partition("Serving at ")[2].split()[0]
    told: list[str] = []
    async with trio.open_nursery() as nursery:

        async def start_runs() -> None:
            async with connect(url, token=find_made_token(int(url.rpartition(":")[2])) or "") as client:
                (agent,) = await client.agents()
                while True:
                    with contextlib.suppress(WireRefused):
                        told.append((await client.start(agent.agent, "Audit this folder", if_busy="queue")).run)

        nursery.start_soon(start_runs)
        with trio.fail_after(PATIENCE_SECONDS):
            seen += await trio.to_thread.run_sync(process.stderr.read)
            status = await trio.to_thread.run_sync(process.wait)
        nursery.cancel_scope.cancel("the server has ended")
    with read_journal(tmp_path / "onward.db") as journal:
        (agent,) = journal.agents
        kept = [stored.event.run for stored in journal.events(agent.id) if isinstance(stored.event, RunStarted)]

    assert status == 1
    assert "onward: the journal onward.db cannot be" in seen
    assert "Traceback" not in seen
    assert told == kept[: len(told)]
