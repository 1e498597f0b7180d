"""Every command of a client, against the real gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, external_tool, remote
from actors.agent import Agent
from actors.client import Attached, Client, Follower, Position, Received, ReplyLost, RunLimits, WireRefused
from actors.gateway import Principal, Template
from actors.models import Scripted, call, reply
from protocol.events import (
    ApprovalRequired,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    MessageDelivered,
    RunCancelled,
    RunFinished,
    RunPaused,
    ToolFinished,
)
from protocol.wire.replies import OpenApproval, OpenContinuation, OpenPause
from tests.actors.client._agents import send, talker
from tests.actors.client._cable import Cable, cable_to, client_of
from tests.actors.client._fake import FakeConnection, cable_to_fake
from tests.actors.gateway.wired import Hall, open_hall

ADA = Principal("ada")
Clock = trio.testing.MockClock


@attrs.define(eq=False)
class Desk:
    """A client, and what it is about."""

    hall: Hall
    cable: Cable
    client: Client


@pytest.fixture
async def desk(autojump_clock: Clock) -> AsyncGenerator[Desk, None]:
    templates = {"talker": Template(talker(rounds=1), overrides={"max_tool_iterations"})}
    async with open_hall(templates=templates) as hall:
        cable = cable_to(hall)
        async with client_of(cable, token=hall.token_of(ADA)) as client:
            yield Desk(hall, cable, client)


async def until(events: Follower, kind: type[Event]) -> Event:
    """The next event of a kind."""
    with trio.fail_after(3600):
        async for item in events:
            if isinstance(item, Received) and isinstance(item.event, kind):
                return item.event
    raise AssertionError(f"no {kind.__name__} came")


def kinds(agent: Agent, kind: type[Event]) -> list[Event]:
    return [event for event, _ in agent.stream.read(0)[1] if isinstance(event, kind)]


async def test_the_agents_are_listed(autojump_clock: Clock, desk: Desk) -> None:
    """With what they do now."""
    agent = await desk.hall.spawn(talker())
    (info,) = await desk.client.agents()

    assert (agent.id, "ada", "idle", None, 1) == (info.agent, info.name, info.state, info.run, info.head)


async def test_an_agent_is_made_from_a_template(autojump_clock: Clock, desk: Desk) -> None:
    """With another name and a limit of the client's, as far as the host lets it."""
    spawned = await desk.client.spawn("talker", name="bob", overrides={"max_tool_iterations": 1})
    with pytest.raises(WireRefused, match="not_found"):
        await desk.client.spawn("nobody")

    assert [(spawned.agent, "bob")] == [(agent.id, agent.name) for agent in desk.hall.runtime.agents]


async def test_a_run_is_started_and_seen_to_its_end(autojump_clock: Clock, desk: Desk) -> None:
    """Its events begin behind the number that it is answered with."""
    agent = await desk.hall.spawn(talker(rounds=1))
    started = await desk.client.start(agent.id, "go")
    async with desk.client.follow(agent.id, since=Position(epoch=agent.stream.epoch, seq=started.seq)) as events:
        first = await anext(events)
        finished = await until(events, RunFinished)

    assert isinstance(first, Received)
    assert ("run_started", started.run) == (first.event.type, finished.run if isinstance(finished, RunFinished) else "")


async def test_limits_of_a_client_only_lower(autojump_clock: Clock, desk: Desk) -> None:
    """What it asks for beyond the agent's is not given; `busy` is told, and retryable."""
    agent = await desk.hall.spawn(talker(rounds=3, max_llm_calls=2, continuation=None, max_tool_iterations=None))
    await desk.client.start(agent.id, "go", limits=RunLimits(max_llm_calls=9, max_tool_calls=1))
    with pytest.raises(WireRefused) as busy:
        await desk.client.start(agent.id, "me too")
    async with desk.client.follow(agent.id, since="start") as events:
        finished = await until(events, RunFinished)

    assert ("busy", True) == (busy.value.code, busy.value.retryable)
    assert isinstance(finished, RunFinished)
    assert 2 == finished.summary.counters.llm_calls


async def test_a_run_is_steered_and_cancelled(autojump_clock: Clock, desk: Desk) -> None:
    """What it is told it reads; cancelling it twice is no fault, cancelling another one is."""
    agent = await desk.hall.spawn(talker(rounds=9, max_tool_iterations=20))
    async with desk.client.follow(agent.id) as events:
        started = await desk.client.start(agent.id, "go")
        await desk.client.steer(started.run, "be quick")
        await until(events, MessageDelivered)
        await desk.client.cancel(started.run, mode="now", reason="enough")
        cancelled = await until(events, RunCancelled)
    await desk.client.cancel(started.run)
    with pytest.raises(WireRefused, match="not_found"):
        await desk.client.cancel("run-0-0")

    assert isinstance(cancelled, RunCancelled)
    assert "enough" == cancelled.reason


async def test_an_agent_is_stopped(autojump_clock: Clock, desk: Desk) -> None:
    """It is there no longer."""
    agent = await desk.hall.spawn(talker())
    await desk.client.stop(agent.id, reason="enough")
    await agent.stopped.wait()

    assert () == await desk.client.agents()


async def test_a_question_is_decided_as_it_was_shown(autojump_clock: Clock, desk: Desk) -> None:
    """From the event, or from the list of what waits: with a message, a grant, and calls that are not run."""
    agent = await desk.hall.spawn(talker(rounds=4, max_grant=5))
    async with desk.client.follow(agent.id) as events:
        await desk.client.start(agent.id, "go")
        asked = await until(events, ContinuationRequired)
        assert isinstance(asked, ContinuationRequired)
        discard = [call.id for call in asked.tool_calls]
        decided = await desk.client.decide(
            asked, "approve", message="go on", discard=discard, tool_message="no", grant=1
        )
        await until(events, ContinuationRequired)
        (waiting,) = await desk.client.requests()
        assert isinstance(waiting, OpenContinuation)
        await desk.client.decide(waiting, "decline", message="enough")
        await until(events, RunFinished)
    first, second = kinds(agent, ContinuationResolved)

    assert ("accepted", asked.request) == (decided.status, decided.request)
    assert isinstance(first, ContinuationResolved)
    assert isinstance(second, ContinuationResolved)
    assert ("approved", "ada", "go on", tuple(discard), 1) == (
        first.outcome,
        first.by,
        first.message,
        first.discarded,
        first.granted,
    )
    assert ("declined", "enough") == (second.outcome, second.message)
    assert "no" in [event.text for event in kinds(agent, ToolFinished) if isinstance(event, ToolFinished)]


async def test_what_cannot_be_decided_is_told(autojump_clock: Clock, desk: Desk) -> None:
    """In the protocol's words, with what the server says beside: who was quicker, and how."""
    agent = await desk.hall.spawn(talker())
    async with desk.client.follow(agent.id) as events:
        await desk.client.start(agent.id, "go")
        asked = await until(events, ContinuationRequired)
    assert isinstance(asked, ContinuationRequired)
    words = []
    for decision in ("maybe", "approve", "decline"):
        try:
            await desk.client.decide(asked, decision)  # type: ignore[arg-type]
        except WireRefused as error:
            words.append((error.code, error.data.get("resolution", {}).get("outcome"), error.retryable))

    assert [("invalid_argument", None, False), ("already_resolved", "approved", False)] == words


async def test_calls_are_approved_denied_and_edited(autojump_clock: Clock, desk: Desk) -> None:
    """Each as it was shown."""
    model = Scripted([reply("", *[call("send", {"to": to}) for to in ("ann", "bob", "eve")]), "done"])
    agent = await desk.hall.spawn(AgentSpec(name="clerk", model=model, tools=[send], approval=remote()))
    async with desk.client.follow(agent.id) as events:
        await desk.client.start(agent.id, "go")
        asked = await until(events, ApprovalRequired)
        assert isinstance(asked, ApprovalRequired)
        waiting = await desk.client.requests()
        approvals = [request for request in waiting if isinstance(request, OpenApproval)]
        await desk.client.decide_approval(asked, "approve")
        await desk.client.decide_approval(approvals[1], "deny", reason="not him")
        await desk.client.decide_approval(approvals[2], "approve", arguments={"to": "ann"})
        await until(events, RunFinished)
    texts = {event.call: event.text for event in kinds(agent, ToolFinished) if isinstance(event, ToolFinished)}
    approved, denied, edited = (texts[request.call] for request in approvals)

    assert "sent to ann" == approved
    assert "not him" in denied
    assert "sent to ann" in edited


async def test_results_are_given_to_a_paused_run(autojump_clock: Clock, desk: Desk) -> None:
    """Those of the caller's own tools; what is not waited for is refused."""
    ask = external_tool("ask", "Ask a person.", {"type": "object", "properties": {}})
    model = Scripted([reply("", call("ask", {}, id="c1")), "so it is"])
    agent = await desk.hall.spawn(AgentSpec(name="asker", model=model, tools=[ask]))
    async with desk.client.follow(agent.id) as events:
        started = await desk.client.start(agent.id, "go")
        await until(events, RunPaused)
        (waiting,) = await desk.client.requests()
        assert isinstance(waiting, OpenPause)
        with pytest.raises(WireRefused, match="invalid_argument"):
            await desk.client.submit(started.run, {"c2": "no"})
        await desk.client.submit(started.run, {waiting.calls[0].id: "yes"})
        finished = await until(events, RunFinished)

    assert isinstance(finished, RunFinished)
    assert "so it is" == finished.summary.text


async def test_a_page_of_the_log_is_fetched(autojump_clock: Clock, desk: Desk) -> None:
    """Behind a position, as many as are asked for."""
    agent = await desk.hall.spawn(talker(rounds=1))
    async with agent.run("go") as run:
        await run.result()
    page = await desk.client.fetch(agent.id, Position(epoch=agent.stream.epoch, seq=2), limit=3)

    assert (3, 3, True) == (page.seq, len(page.events), page.more)


async def test_a_principal_sees_and_may_what_it_may(autojump_clock: Clock) -> None:
    """Who may observe alone is refused to drive and to decide, and is told so."""
    async with open_hall() as hall:
        agent = await hall.spawn(talker())
        token = hall.token_of(Principal("guest", frozenset({"observe"})))
        async with client_of(cable_to(hall), token=token) as client, client.follow(agent.id) as events:
            first = await anext(events)
            with pytest.raises(WireRefused, match="forbidden"):
                await client.start(agent.id, "go")
            roles = client.welcome.roles

    assert isinstance(first, Attached)
    assert ("observe",) == roles


async def test_what_is_too_large_is_not_even_sent(autojump_clock: Clock, desk: Desk) -> None:
    """The server would close the connection for it."""
    agent = await desk.hall.spawn(talker())
    with pytest.raises(WireRefused, match="too_large"):
        await desk.client.start(agent.id, "x" * 70_000)
    await desk.client.ping()

    assert 1 == desk.client.statistics().connections


async def test_text_that_is_none_is_replaced_not_refused(autojump_clock: Clock, desk: Desk) -> None:
    """A lone surrogate, as a careless reader of files makes them."""
    agent = await desk.hall.spawn(talker())
    async with desk.client.follow(agent.id) as events:
        await desk.client.start(agent.id, "caf\udce9")
        await anext(events)
        started = await anext(events)

    assert isinstance(started, Received)
    assert "caf\ufffd" == getattr(started.event, "prompt", None)


@pytest.mark.parametrize("method", ["stop", "submit"])
async def test_what_must_not_be_given_twice_is_not(autojump_clock: Clock, nursery: trio.Nursery, method: str) -> None:
    """Where the connection breaks before the reply, the caller is told that it is not known."""

    async def break_off(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.command()

    async def stay(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.wait()

    cable, server = cable_to_fake(nursery, break_off, stay)
    async with client_of(cable) as client:
        with pytest.raises(ReplyLost, match="look whether it was done"):
            await (client.stop("a") if method == "stop" else client.submit("r", {"c": 1}))
        await trio.sleep(5)

    assert [] == server.connections[1].commands


async def test_a_command_is_given_again_as_it_was(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    """Byte for byte, its key too; one that was never sent waits for the connection."""

    async def break_off(connection: FakeConnection) -> None:
        await connection.welcome()
        await connection.command("run.steer")

    async def answer(connection: FakeConnection) -> None:
        await connection.welcome()
        for _ in range(2):
            await connection.reply(await connection.command("run.steer"), {})
        await connection.wait()

    cable, server = cable_to_fake(nursery, break_off, answer)
    async with client_of(cable) as client:
        await client.steer("r", "faster")
        await client.steer("r", "faster")
    (first,), (again, other) = (connection.commands for connection in server.connections)

    assert first == again
    assert first["params"]["idem"] != other["params"]["idem"]
