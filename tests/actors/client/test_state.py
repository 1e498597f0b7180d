"""What a client makes of events is what the server says of the agent."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import AgentSpec, Runtime, approve, external_tool, open_runtime, remote
from actors.agent import Agent
from actors.gateway._snapshot import open_requests, snapshot_of
from actors.models import Scripted, call, reply
from protocol.gate import ContinuationResponse
from protocol.turns import AssistantMessage
from protocol.wire.cursor import Numbered
from protocol.wire.reducer import apply_event, start_from
from protocol.wire.replies import Attached, OpenApproval, OpenContinuation, OpenPause
from protocol.wire.state import ClientState
from tests.actors.client._agents import send, talker

ASK = external_tool("ask", "Ask a person.", {"type": "object", "properties": {}})
AGENTS = {
    "talks": talker(rounds=4),
    "sends": AgentSpec(
        name="sends",
        model=Scripted([reply("", *[call("send", {"to": to}) for to in ("ann", "bob")]), "done"]),
        tools=[send],
        approval=remote(),
    ),
    "asks": AgentSpec(name="asks", model=Scripted([reply("", call("ask", {}, id="c1")), "so it is"]), tools=[ASK]),
}


def catch_up(state: ClientState, agent: Agent) -> None:
    """Apply what is new."""
    first, entries = agent.stream.read(state.seq)
    for number, (event, _) in enumerate(entries, first):
        apply_event(state, Numbered(number, event, number), now=trio.current_time())


def attach(agent: Agent) -> Attached:
    stream = agent.stream
    return Attached(
        epoch=stream.epoch,
        head=stream.end,
        oldest=stream.oldest,
        recovered=True,
        open_requests=open_requests(agent),
        snapshot=snapshot_of(agent),
    )


def known(state: ClientState) -> dict[str, Any]:
    """What a snapshot says too."""
    return {
        "state": state.status,
        "run": state.run,
        "step": state.runs[state.run].step if state.run is not None else 0,
        "requests": set(state.requests),
    }


def told(reply: Attached) -> dict[str, Any]:
    snapshot = reply.snapshot
    assert snapshot is not None
    requests = {request.request for request in reply.open_requests}
    return {"state": snapshot.state, "run": snapshot.run, "step": snapshot.step_number, "requests": requests}


async def help_on(runtime: Runtime, agent: Agent) -> None:
    """Answer what waits."""
    for request in open_requests(agent):
        match request:
            case OpenContinuation():
                await runtime.decide(request.request, ContinuationResponse("approve"))
            case OpenApproval():
                await runtime.decide(request.request, approve())
            case OpenPause():
                runtime.submit(request.run, {"c1": "yes"})


@pytest.mark.parametrize("name", AGENTS)
async def test_it_agrees_with_every_snapshot(autojump_clock: trio.testing.MockClock, name: str) -> None:
    """At every moment of a run, for who saw all of it and for who began anywhere in it."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AGENTS[name])
        whole = ClientState(agent=agent.id)
        states = [whole]
        seen: list[Any] = []
        async with agent.run("go") as run:
            while True:
                await trio.sleep(0.01)
                reply = attach(agent)
                states.append(start_from(agent.id, reply, now=trio.current_time()))
                for state in states:
                    catch_up(state, agent)
                    seen.append((told(reply), known(state)))
                if agent.current is None or reply.head == agent.stream.end and run.over:
                    break
                if len(states) % 3 == 0:
                    await help_on(runtime, agent)
            result = await run.result()
        last = list(whole.runs[run.id].messages.values())

    assert [(said, made) for said, made in seen if said != made] == []
    assert len(states) > 3
    assert (result.text, result.usage) == (whole.runs[run.id].summary.text, whole.runs[run.id].usage)  # type: ignore[union-attr]
    texts = [
        "".join(getattr(part, "text", "") for part in message.parts)
        for message in result.messages
        if isinstance(message, AssistantMessage)
    ]
    assert [text for text in texts if text] == [message.text for message in last if message.text]
