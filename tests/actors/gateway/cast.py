"""Agents as the gateway's tests need them."""

from __future__ import annotations

from typing import Any

import trio

from actors import Agent, AgentSpec, external_tool, remote, sub_agent, tool
from actors.models.scripted import Scripted, call, reply
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import agent

NOTHING = {"type": "object", "properties": {}}


def talker(*texts: str, name: str = "talker") -> AgentSpec:
    """Answers with these texts, one in each run."""
    return AgentSpec(name=name, model=Scripted(list(texts)))


def asker(name: str = "asker", **options: Any) -> AgentSpec:
    """Asks its gate after each window of one tool round, for as long as it may."""
    given = {"max_tool_iterations": 1, "continuation": remote(), "max_llm_calls": 50, **options}
    return agent(calls_while_on(), Bench().tool(), name=name, **given)


def payer(*amounts: int, name: str = "payer", **options: Any) -> AgentSpec:
    """Asks for approval of one payment for each amount, all in its first turn."""
    turn = reply("", *[call("pay", {"n": n}, id=f"c{place}") for place, n in enumerate(amounts, 1)])

    async def pay(n: int) -> str:
        await trio.lowlevel.checkpoint()
        return f"paid {n}"

    given = {"approval": remote(), **options}
    return agent([turn, "done"], tool(pay, description="Pay.", needs_approval=True), name=name, **given)


def pauser(*calls: str, name: str = "pauser") -> AgentSpec:
    """Waits for the results of its caller's own tool, once."""
    turn = reply("", *[call("look", {}, id=id) for id in calls or ("c1",)])
    return agent([turn, "seen"], external_tool("look", "Look.", NOTHING), name=name)


def sleeper(seconds: float = 60, *, name: str = "sleeper", turns: int = 1) -> AgentSpec:
    """Calls a tool that takes its time, then answers."""
    script: list[Any] = []
    for number in range(turns):
        script += [reply("", call("t", {}, id=f"c{number}")), f"answer {number}"]
    return agent(script, Bench().tool(seconds=seconds), name=name)


def parent(child: AgentSpec, *, name: str = "parent") -> AgentSpec:
    """Gives its task to a sub-agent, then answers."""
    return agent(
        [reply("", call(f"ask_{child.name}", {"task": "do it"}, id="p1")), "all done"], sub_agent(child), name=name
    )


def patient(child: Agent, *, name: str = "patient") -> AgentSpec:
    """Runs another agent inside a tool, and waits for its end past any pause."""

    async def delegate() -> str:
        async with child.run("do it") as run:
            await run.wait_ended()
        return "ok"

    return agent([reply("", call("delegate", {}, id="p1")), "all done"], tool(delegate, description="D."), name=name)
