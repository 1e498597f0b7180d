"""`onward serve --journal`, killed in mid-run and started again: for its clients it is the same server."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio_websocket

from actors.client import Client, ClientPace, Item, Received, connect
from protocol.events import ContentDelta, ContinuationRequired, RunFinished
from tests.cli._served import Served, command, serve
from tests.cli._server import call_delta, serving, streaming
from tests.peers._node import NODE, PROGRAMS, run_program

from .test_killed_server import free_port

pytestmark = [pytest.mark.peer, pytest.mark.slow]
TOKEN = "the-token-of-the-peers"
PLAYERS: dict[str, list[str | Path]] = {
    "websockets": [sys.executable, Path(__file__).parent / "raw_websockets.py"],
    "ws": [NODE, PROGRAMS / "raw_ws.mjs"],
}
PIECES = [{"content": f"piece {number} "} for number in range(40)]
START = {"prompt": "look around", "idem": "start"}


@contextlib.asynccontextmanager
async def life(folder: Path, port: int, model: str) -> AsyncGenerator[Served]:
    """One process of the server, the same command each time; killed at the end, whatever it does."""
    arguments = ["--journal", "onward.db", "--token-file", "tokens", "--tools", "files:.", "--max-tool-iterations", "1"]
    with contextlib.ExitStack() as stack:
        server = await trio.to_thread.run_sync(
            stack.enter_context,
            serve(*arguments, "--model", "openai:m", "--base-url", model, bind=str(port), cwd=folder),
        )
        yield server
        server.screen.process.kill()
        server.screen.process.wait()


async def ask(port: int, method: str, **params: Any) -> Any:
    """Give one command on a connection of its own."""
    headers = [(b"Authorization", f"Bearer {TOKEN}".encode())]
    url = f"ws://127.0.0.1:{port}/ws"
    async with trio_websocket.open_websocket_url(url, subprotocols=["onward.v1"], extra_headers=headers) as socket:
        await socket.send_message(json.dumps(command(1, "hello")))
        await socket.send_message(json.dumps(command(2, method, **params)))
        while True:
            frame = json.loads(await socket.get_message())
            for message in frame if isinstance(frame, list) else [frame]:
                if message.get("id") == 2:
                    return message.get("result") or message["error"]["data"]


@attrs.define
class Reader:
    """A client in Python that follows all, through all lives."""

    client: Client
    events: Any
    items: list[Item] = attrs.field(factory=list[Item])

    async def until(self, seen: Callable[[Any], bool]) -> Any:
        """Read on until an event is what is waited for."""
        with trio.fail_after(60):
            async for item in self.events:
                self.items.append(item)
                if isinstance(item, Received) and seen(item.event):
                    return item.event
        raise AssertionError("the events have ended")


@pytest.mark.parametrize("player", PLAYERS)
async def test_nothing_that_was_told_is_lost(player: str, tmp_path: Path) -> None:
    """Both clients see all once and in order; the question is decided under its old id; repeated commands are done once."""
    (tmp_path / "tokens").write_text(f"{TOKEN} operate,decide tester\n")
    (tmp_path / "tokens").chmod(0o600)
    port = free_port()
    list_folder = [call_delta("list_dir", {"path": "."}, id=f"c{number}") for number in range(2)]
    answers = [
        streaming(*PIECES, hang=True),
        streaming(list_folder[0], finish="tool_calls"),
        streaming(list_folder[1], finish="tool_calls"),
        streaming({"content": "All seen."}),
    ]
    printed: list[str] = []

    async def play(agent: str) -> None:
        given = {"url": f"ws://127.0.0.1:{port}/ws", "token": TOKEN, "agent": agent, "on": {}}
        printed.append(await run_program(PLAYERS[player], json.dumps(given), seconds=120))

    with serving(*answers) as model:
        async with contextlib.AsyncExitStack() as stack:
            nursery = await stack.enter_async_context(trio.open_nursery())
            async with life(tmp_path, port, model.url):
                client = await stack.enter_async_context(
                    connect(f"ws://127.0.0.1:{port}", token=TOKEN, pace=ClientPace(first_seconds=0.2))
                )
                events = await stack.enter_async_context(client.follow(since="start"))
                reader = Reader(client, events)
                (agent,) = await client.agents()
                nursery.start_soon(play, agent.agent)
                await reader.until(lambda event: isinstance(event, ContentDelta) and "piece 20" in event.text)
                started = await ask(port, "run.start", agent=agent.agent, **START)
            async with life(tmp_path, port, model.url) as second:
                asked = await reader.until(lambda event: isinstance(event, ContinuationRequired))
            async with life(tmp_path, port, model.url) as third:
                again = await ask(port, "run.start", agent=agent.agent, **START)
                decided = {"request": asked.request, "decision": "approve", "digest": asked.digest, "idem": "d"}
                told = [await ask(port, "continuation.decide", **decided) for _ in range(2)]
                late = await ask(port, "continuation.decide", **{**decided, "idem": "e"})
                end = await reader.until(lambda event: isinstance(event, RunFinished))
                with trio.fail_after(60):
                    while not printed:  # noqa: ASYNC110  another process
                        await trio.sleep(0.05)
                connections = client.statistics().connections
                head = (await client.agents())[0].head
            await stack.aclose()
    numbers = [item.number for item in reader.items if isinstance(item, Received)]
    seen = json.loads(printed[0])
    types = Counter(item.event.type for item in reader.items if isinstance(item, Received))

    assert list(range(1, len(numbers) + 1)) == numbers
    assert all(isinstance(item, Received) for item in reader.items)
    assert numbers == seen["numbers"][: len(numbers)]
    assert head >= len(numbers)
    assert [item.event.type for item in reader.items if isinstance(item, Received)] == seen["types"][: len(numbers)]
    assert {"run_started": 1, "run_resumed": 2, "continuation_required": 1, "continuation_resolved": 1} == {
        kind: types[kind] for kind in ("run_started", "run_resumed", "continuation_required", "continuation_resolved")
    }
    assert ("All seen.", 3) == (end.summary.text, connections)
    assert (started["run"], started["seq"], True) == (again["run"], again["seq"], again["replayed"])
    accepted = {"status": "accepted", "request": asked.request}
    assert [accepted, {**accepted, "replayed": True}] == told
    assert ("already_resolved", "approved", "tester") == (
        late["code"],
        late["resolution"]["outcome"],
        late["resolution"]["by"],
    )
    assert all(f"goes on with {started['run']}" in server.screen.seen for server in (second, third))
    assert "(open questions: 1)" in third.screen.seen
