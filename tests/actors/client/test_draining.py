"""A server that is being closed: what it does not do any more is done by the one that comes back."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.client import WireRefused
from tests.actors.client._cable import client_of
from tests.actors.client._fake import FakeConnection, attached, cable_to_fake


async def test_what_a_leaving_server_refuses_is_asked_of_the_next(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """A command and an attach: their callers see nothing of it."""

    async def leaves(connection: FakeConnection) -> None:
        await connection.welcome()
        for method in ("ping", "agent.attach"):
            await connection.refuse(await connection.command(method), "draining", retryable=True)
        await connection.close(1012)

    async def comes(connection: FakeConnection) -> None:
        await connection.welcome()
        for _ in range(2):
            command = await connection.command()
            await connection.reply(command, {} if command["method"] == "ping" else attached(snapshot=True))
        await connection.wait()

    cable, server = cable_to_fake(nursery, leaves, comes)
    async with client_of(cable) as client, trio.open_nursery() as tasks:
        tasks.start_soon(client.ping)
        await trio.testing.wait_all_tasks_blocked()
        async with client.follow("a"):
            pass

    assert ["ping", "agent.attach"] == sorted((c["method"] for c in server.connections[1].commands[:2]), reverse=True)


async def test_an_agent_that_takes_no_more_is_another_matter(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """That is told at once: it would be so the next time too."""

    async def stopped(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.refuse(await connection.command("run.start"), "draining")
        await connection.wait()

    async with client_of(cable_to_fake(nursery, stopped)[0]) as client:
        with pytest.raises(WireRefused, match="draining"):
            await client.start("a", "Hello")
