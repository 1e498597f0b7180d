"""A server that is killed in mid-stream and started again: without a journal it is another one, and that is told."""

from __future__ import annotations

import contextlib
import functools
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from actors.client import Attached, ClientPace, Gone, Item, Received, connect
from protocol.events import ContentDelta

pytestmark = [pytest.mark.peer, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("_gateway_server.py")
TOKEN = "the-token-of-the-peers"


@contextlib.asynccontextmanager
async def serving(port: int) -> AsyncGenerator[trio.Process, None]:
    """A server on this port, killed at the end if it was not before."""
    command = [sys.executable, str(SERVER), str(port), TOKEN]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            functools.partial(
                trio.run_process,
                command,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env={"PYTHONPATH": str(ROOT)},
                check=False,
            )
        )
        assert process.stdout is not None
        with trio.fail_after(60):
            assert b"ready\n" == await process.stdout.receive_some()
        yield process
        process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_killed_server_is_come_back_to() -> None:
    """What had come came once and in order; the agent of before is gone, and that of the new server is seen whole."""
    port = free_port()
    items: list[Item] = []
    async with (
        serving(port) as first,
        connect(f"ws://127.0.0.1:{port}", token=TOKEN, pace=ClientPace(first_seconds=0.2)) as client,
        client.follow(since="start") as events,
    ):
        (before,) = await client.agents()
        await client.start(before.agent, "go")
        async for item in events:
            items.append(item)
            if len(items) == 60:
                break
        first.kill()
        async with serving(port):
            with trio.fail_after(60):
                async for item in events:
                    items.append(item)
                    if item.agent != before.agent:
                        break
                (after,) = await client.agents()
                await client.start(after.agent, "go")
                async for item in events:
                    items.append(item)
                    if isinstance(item, Received) and isinstance(item.event, ContentDelta):
                        break
    old = [item.number for item in items if isinstance(item, Received) and item.agent == before.agent]
    new = [item.number for item in items if isinstance(item, Received) and item.agent == after.agent]

    assert list(range(1, len(old) + 1)) == old
    assert len(old) >= 60
    assert [Gone(before.agent)] == [item for item in items if not isinstance(item, (Received, Attached))]
    assert list(range(1, len(new) + 1)) == new
    assert 2 == client.statistics().connections
