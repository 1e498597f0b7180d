"""A person at `onward attach` is asked by agents of a gateway in this process: approvals, and what comes in between."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import attrs
import pytest
import trio

from actors import AgentSpec, ContinuationResponse, Runtime, open_runtime, remote, tool
from actors.agent import Agent
from actors.gateway import Access, Gateway, Principal, open_gateway
from actors.models.scripted import Scripted, call, reply

from ._command import Terminal, terminal
from ._served import ASK

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
TOKEN = "a-token-of-the-tests"
APPROVE = "approve, edit or deny? "


@attrs.define(eq=False)
class Hosted:
    """An agent with a gateway, and what its tool was called with."""

    runtime: Runtime
    gateway: Gateway
    agent: Agent
    deleted: list[str]

    async def visit(self, what: Callable[[Terminal], Any], *options: str) -> str:
        """Do this at a terminal, in a thread, to its end; all that was shown."""

        def at_terminal() -> str:
            with terminal("attach", self.gateway.address, "--token-env", "T", *options, env={"T": TOKEN}) as screen:
                what(screen)
                screen.type("/quit")
                assert screen.end() == 0
                return screen.seen

        return await trio.to_thread.run_sync(at_terminal)


@contextlib.asynccontextmanager
async def hosting(*turns: Any, **settings: Any) -> AsyncGenerator[Hosted, None]:
    """Host an agent whose model says these, and whose one tool deletes."""
    deleted: list[str] = []

    @tool(needs_approval=settings.pop("needs_approval", False))
    async def delete(path: str) -> str:
        """Delete a file."""
        deleted.append(path)
        return f"{path} is gone"

    async with open_runtime() as runtime:
        spec = AgentSpec(name="janitor", model=Scripted(list(turns)), tools=[delete], approval=remote(), **settings)
        agent = await runtime.spawn(spec)
        async with open_gateway(runtime, port=0, tokens=Access.of({TOKEN: Principal("somebody")})) as gateway:
            yield Hosted(runtime, gateway, agent, deleted)


def deletes(*paths: str) -> Any:
    """A turn that wants these files deleted."""
    return reply("", *[call("delete", {"path": path}) for path in paths])


async def test_approvals() -> None:
    """A call runs as it is, with other arguments, or not at all; all that would run is shown, and asked one by one."""

    def answer(screen: Terminal) -> None:
        screen.wait_for("> ")
        screen.type("Clean up")
        screen.wait_for("May this call run? delete")
        screen.wait_for('"path": "a.txt"')
        screen.wait_for(APPROVE)
        screen.type("sure")
        screen.wait_for("'sure' is no answer; answer a, e JSON or d")
        screen.wait_for(APPROVE)
        screen.type("?")
        screen.wait_for("May this call run? delete")
        screen.wait_for(APPROVE)
        screen.type("a")
        screen.wait_for("call approved by somebody")
        screen.wait_for('"path": "b.txt"')
        screen.wait_for(APPROVE)
        screen.type('e {"path": 3}')
        screen.wait_for("invalid_argument")
        screen.wait_for(APPROVE)
        screen.type('e {"path": "old/b.txt"}')
        screen.wait_for("call edited by somebody")
        screen.wait_for('"path": "c.txt"')
        screen.wait_for(APPROVE)
        screen.type("d keep that one")
        screen.wait_for("call denied by somebody: keep that one")
        screen.wait_for("Clean.")
        screen.wait_for("> ")

    async with hosting(deletes("a.txt", "b.txt", "c.txt"), "Clean.", needs_approval=True) as hosted:
        seen = await hosted.visit(answer)

    assert sorted(hosted.deleted) == ["a.txt", "old/b.txt"]
    assert "Traceback" not in seen


async def test_an_answer_that_comes_too_late() -> None:
    """Somebody else's answer takes the question off the screen, with what was half typed; nothing is decided twice."""
    turns = [deletes("a.txt"), deletes("b.txt"), "Done."]

    async with hosting(*turns, continuation=remote(), max_tool_iterations=1) as hosted:

        async def decide() -> None:
            ((request, _),) = hosted.agent.requests.pending()
            await hosted.runtime.decide(request.request, ContinuationResponse("approve", message="go"))

        def answer(screen: Terminal) -> None:
            screen.wait_for("> ")
            screen.type("Clean up")
            screen.wait_for(ASK)
            screen.press(b"d too la")
            trio.from_thread.run(decide)
            screen.wait_for("approved by host: go")
            screen.wait_for("Done.")
            screen.wait_for("> ")

        seen = await hosted.visit(answer)

    assert hosted.deleted == ["a.txt", "b.txt"]
    assert seen.count(ASK) == 1
    assert "  declined" not in seen


async def test_a_connection_that_is_cut() -> None:
    """It is made again; what happens meanwhile is shown, once, and the question that waits can be answered."""
    turns = [deletes("a.txt"), deletes("b.txt"), "Done."]

    async with hosting(*turns, continuation=remote(), max_tool_iterations=1) as hosted:

        async def cut() -> None:
            for connection in list(hosted.gateway.connections.values()):
                await connection.abort()

        def answer(screen: Terminal) -> None:
            screen.wait_for("> ")
            screen.type("Clean up")
            screen.wait_for("ok          delete(")
            screen.wait_for(ASK)
            trio.from_thread.run(cut)
            screen.type("s be careful")
            screen.wait_for("approved by somebody: be careful")
            screen.wait_for("Done.")
            screen.wait_for("> ")

        seen = await hosted.visit(answer)

    assert hosted.deleted == ["a.txt", "b.txt"]
    assert [seen.count("run: Clean up"), seen.count("ok          delete("), seen.count("Done.")] == [1, 2, 1]
