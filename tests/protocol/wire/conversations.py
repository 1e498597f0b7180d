"""Conversations with a gateway, to be recorded: each shows one part of the protocol from hello to the end."""

from __future__ import annotations

import trio

from actors import AgentSpec, external_tool, remote, sub_agent, tool
from actors.models.scripted import call, reply

from .stage import Hopping, asked, attached, gated, look, spec
from .tape import Conversation, Scene


async def approve(scene: Scene) -> None:
    """Attach, run, be asked, go on with a message and a grant, and read the answer."""
    agent = await scene.hall.spawn(gated())
    client = await attached(scene, agent)
    await client.ask("agent.list")
    await client.ask("run.start", agent=agent.id, prompt="Audit this folder", idem="start-1")
    question = await asked(client, agent)
    await client.ask("request.list")
    await client.ask(
        "continuation.decide",
        request=question["request"],
        decision="approve",
        message="Skip the tests",
        grant=2,
        digest=question["digest"],
        idem="decide-1",
    )
    await client.read_until(client.saw(agent.id, "run_finished"))
    await client.ask("ack", **{agent.id: client.events(agent.id)[-1][0]})
    await client.ask("ping")
    await client.ask("agent.detach", agent=agent.id)


async def decline(scene: Scene) -> None:
    """Do not go on: the model ends with tools off. A second client sees it too, and comes too late."""
    agent = await scene.hall.spawn(gated())
    client, other = await attached(scene, agent), await attached(scene, agent, deltas=False)
    await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1", limits={"max_llm_calls": 4})
    question = await asked(client, agent)
    decision = {"request": question["request"], "decision": "decline", "digest": question["digest"]}
    await client.ask("continuation.decide", **decision, message="Enough", idem="decide-1")
    await client.ask("continuation.decide", **decision, message="Enough", idem="decide-1")
    await other.refusal("continuation.decide", **decision, idem="decide-2")
    await client.read_until(client.saw(agent.id, "run_finished"))
    await other.read_until(other.saw(agent.id, "run_finished"))


async def discard(scene: Scene) -> None:
    """Go on without the calls that wait."""
    agent = await scene.hall.spawn(gated())
    client = await attached(scene, agent, from_="start")
    await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1")
    question = await asked(client, agent)
    await client.ask(
        "continuation.decide",
        request=question["request"],
        decision="approve",
        discard_tool_calls=[call["id"] for call in question["tool_calls"]],
        tool_message="Not that one",
        digest=question["digest"],
        idem="decide-1",
    )
    await client.read_until(client.saw(agent.id, "run_finished"))


async def cancel(scene: Scene) -> None:
    """End a run at once, in the middle of a tool."""
    agent = await scene.hall.spawn(gated())
    client = await attached(scene, agent)
    started = await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1")
    await client.read_until(client.saw(agent.id, "tool_started"))
    await client.ask("run.cancel", run=started["run"], mode="now", reason="seen enough")
    await client.read_until(client.saw(agent.id, "run_cancelled"))


async def steer(scene: Scene) -> None:
    """A message that is delivered at the next boundary, and one that comes too late for that."""
    agent = await scene.hall.spawn(spec(*[reply("", call("look", {"path": name})) for name in "ab"]))
    client = await attached(scene, agent)
    started = await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1")
    await client.read_until(client.saw(agent.id, "tool_started"))
    await client.ask("run.steer", run=started["run"], text="Be brief", idem="steer-1")
    await client.read_until(lambda: client.types(agent.id).count("tool_started") == 2)
    await client.ask("run.steer", run=started["run"], text="And polite", idem="steer-2")
    await client.ask("run.cancel", run=started["run"], mode="now")
    await client.read_until(client.saw(agent.id, "run_cancelled"))


async def expiry(scene: Scene) -> None:
    """Nobody answers: the question expires, and that is a refusal. Heartbeats come meanwhile."""
    agent = await scene.hall.spawn(gated(continuation_timeout_seconds=45))
    client = await attached(scene, agent)
    await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1")
    await client.read_until(client.saw(agent.id, "run_finished"))
    await client.ask("agent.stop", agent=agent.id, mode="boundary", reason="over")
    await client.read_until(client.saw(agent.id, "agent_stopped"))


async def edit(scene: Scene) -> None:
    """A call that needs approval: one runs with other arguments, one does not run."""
    risky = tool(look, name="remove", needs_approval=True)
    turns = [reply("", call("remove", {"path": "a"})), reply("", call("remove", {"path": "b"})), "Done."]
    agent = await scene.hall.spawn(spec(*turns, tools=[risky], approval=remote()))
    client = await attached(scene, agent)
    await client.ask("run.start", agent=agent.id, prompt="Tidy up", idem="start-1")
    first = await asked(client, agent)
    decision = {"request": first["request"], "decision": "approve", "digest": first["digest"]}
    await client.refusal("approval.decide", **decision, arguments={"path": 1}, idem="decide-0")
    await client.ask("approval.decide", **decision, arguments={"path": "a.tmp"}, idem="decide-1")
    second = await asked(client, agent, 2)
    await client.ask(
        "approval.decide",
        request=second["request"],
        decision="deny",
        reason="It is needed",
        digest=second["digest"],
        idem="decide-2",
    )
    await client.read_until(client.saw(agent.id, "run_finished"))


async def resume(scene: Scene) -> None:
    """The connection is cut: attach behind the last number, send the same commands again, miss nothing."""
    agent = await scene.hall.spawn(gated())
    client = await attached(scene, agent)
    start = {"agent": agent.id, "prompt": "Audit", "idem": "start-1"}
    await client.ask("run.start", **start)
    question = await asked(client, agent)
    position = {"epoch": agent.stream.epoch, "seq": client.events(agent.id)[-1][0]}
    decision = {"request": question["request"], "digest": question["digest"], "decision": "decline", "idem": "decide-1"}
    await client.send("continuation.decide", decision)
    await trio.sleep(5)
    await client.drop()
    again = await scene.client()
    await again.ask("agent.attach", agent=agent.id, from_=position)
    await again.ask("run.start", **start)
    await again.ask("continuation.decide", **decision)
    await again.read_until(again.saw(agent.id, "run_finished"))
    await again.ask("agent.fetch", agent=agent.id, from_={**position, "seq": 0}, limit=3)
    await again.ask("agent.attach", agent=agent.id, from_={"epoch": "epoch-of-yesterday", "seq": 7})


async def pause(scene: Scene) -> None:
    """A tool of the caller's own: the run waits for its result."""
    own = external_tool("ask_user", "Ask the user.", {"type": "object", "properties": {"question": {"type": "string"}}})
    agent = await scene.hall.spawn(
        spec(reply("", call("ask_user", {"question": "Which?"})), "Blue it is.", tools=[own])
    )
    client = await attached(scene, agent)
    started = await client.ask("run.start", agent=agent.id, prompt="Paint it", idem="start-1")
    await client.read_until(client.saw(agent.id, "run_paused"))
    open_request = (await client.ask("request.list"))["requests"][0]
    await client.ask("agent.attach", agent=agent.id)
    call_id = open_request["calls"][0]["id"]
    await client.refusal("tools.submit", run=started["run"], results={"nobody": "blue"})
    await client.ask("tools.submit", run=started["run"], results={call_id: "blue"})
    await client.read_until(client.saw(agent.id, "run_finished"))


async def family(scene: Scene) -> None:
    """Sub-agents, followed with their root; one of them asks."""
    child = gated(name="child")
    root = spec(reply("", call("ask_child", {"task": "look"})), "The child says so.", tools=[sub_agent(child)])
    agent = await scene.hall.spawn(root)
    client = await attached(scene, agent)
    await client.ask("run.start", agent=agent.id, prompt="Audit", idem="start-1")
    question = await asked(client, agent)
    other = await attached(scene, agent)
    await other.ask(
        "continuation.decide",
        request=question["request"],
        decision="decline",
        digest=question["digest"],
        idem="decide-1",
    )
    await client.read_until(lambda: client.types(agent.id).count("run_finished") == 2)


async def hops(scene: Scene) -> None:
    """A decode of several requests, one of which is taken back."""
    agent = await scene.hall.spawn(AgentSpec(name="hopper", model=Hopping()))
    client = await attached(scene, agent)
    await client.ask("run.start", agent=agent.id, prompt="Go on", idem="start-1")
    await client.read_until(client.saw(agent.id, "run_finished"))


async def everybody(scene: Scene) -> None:
    """Follow all agents, those that come later too; of some events only. Steer one of them, and cancel it."""
    client = await scene.client()
    await client.ask("agent.attach", agent="*", from_="start", types=["tool_started", "message_queued"])
    spawn = {"spec": {"template": "auditor", "overrides": {"max_llm_calls": 3}}, "idem": "spawn-1"}
    spawned = await client.ask("agent.spawn", **spawn)
    await client.ask("agent.spawn", **spawn)
    started = await client.ask("run.start", agent=spawned["agent"], prompt="Audit", idem="start-1")
    await client.read_until(client.saw(spawned["agent"], "tool_started"))
    steer = {"run": started["run"], "text": "Be brief", "idem": "steer-1"}
    await client.ask("run.steer", **steer)
    await client.ask("run.steer", **steer)
    await client.ask("run.cancel", run=started["run"])
    await client.read_until(lambda: bool({"run_finished", "run_cancelled"} & set(client.types(spawned["agent"]))))
    await client.read_for(30)
    await client.ask("run.cancel", run=started["run"], mode="now")
    await client.ask("agent.detach", agent="*")


async def failure(scene: Scene) -> None:
    """The model fails: so does the run."""
    agent = await scene.hall.spawn(spec(tools=()))
    client = await attached(scene, agent)
    await client.ask("run.start", agent=agent.id, prompt="Hello", idem="start-1")
    await client.read_until(client.saw(agent.id, "run_failed"))


async def misframed(scene: Scene) -> None:
    """What is no command: each gets its error, and the connection stays."""
    client = await scene.client(hello=False)
    await client.socket.send_message('{"jsonrpc":"2.0","id":"first","method":"ping","params":{}}')
    await client.read()
    await client.ask("hello", client="transcripts")
    for text in (
        "no JSON",
        '{"jsonrpc":"2.0","id":2,"method":"ping","id":3}',
        '[{"jsonrpc":"2.0","id":4,"method":"ping"}]',
        '{"jsonrpc":"2.0","method":"ping"}',
        '{"jsonrpc":"2.0","id":5,"method":"pong"}',
        '{"jsonrpc":"2.0","id":6,"method":"agent.attach","params":{"agent":"no id"}}',
        '{"jsonrpc":"2.0","id":"seven","method":"continuation.decide","params":{"request":"q","decision":"approve"}}',
    ):
        await client.socket.send_message(text)
        await client.read()
    await client.ask("ping")


async def refused(scene: Scene) -> None:
    """Commands that fit the schema and are refused, by one word each."""
    agent = await scene.hall.spawn(gated())
    client = await attached(scene, agent)
    guest = await scene.client("guest", "observe")
    start = {"agent": agent.id, "prompt": "Audit", "idem": "start-1"}
    await guest.refusal("run.start", **start)
    await client.refusal("run.start", **{**start, "agent": "agent-of-yesterday"})
    await client.refusal("run.start", **{**start, "prompt": "x" * 8193})
    await client.refusal("agent.spawn", spec={"template": "unheard-of"}, idem="spawn-1")
    await client.ask("run.start", **start)
    await client.refusal("run.start", **{**start, "prompt": "Something else"})
    await client.refusal("run.start", **{**start, "idem": "start-2"})
    question = await asked(client, agent)
    decision = {"request": question["request"], "decision": "decline", "digest": question["digest"], "idem": "decide-1"}
    await guest.refusal("continuation.decide", **decision)
    await client.refusal("continuation.decide", **{**decision, "digest": "of another view"})
    await client.refusal("continuation.decide", **{**decision, "decision": "timeout"})
    await client.refusal("continuation.decide", **{**decision, "request": "request-of-yesterday"})
    await client.refusal("approval.decide", **{**decision, "decision": "approve"})
    await client.ask("continuation.decide", **decision)
    await client.refusal("continuation.decide", **{**decision, "idem": "decide-2"})
    await client.read_until(client.saw(agent.id, "run_finished"))
    await client.refusal("agent.fetch", agent=agent.id, from_={"epoch": "epoch-of-yesterday", "seq": 1})
    await client.ask("agent.stop", agent=agent.id)
    await client.refusal("run.start", **{**start, "idem": "start-3"})


async def hurried(scene: Scene) -> None:
    """More commands than may come at once."""
    client = await scene.client()
    ids = [await client.send("ping") for _ in range(41)]
    await client.read_until(lambda: all(id in client.replies for id in ids))


CONVERSATIONS: dict[str, Conversation] = {
    conversation.__name__: conversation
    for conversation in (
        approve,
        decline,
        discard,
        cancel,
        steer,
        expiry,
        edit,
        resume,
        pause,
        family,
        hops,
        everybody,
        failure,
        misframed,
        refused,
        hurried,
    )
}
