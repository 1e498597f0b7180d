"""A compacted conversation in a journal: what comes back is the short one, and going back finds the long one."""

from __future__ import annotations

import trio.testing

from actors import AgentSpec, trim
from actors.models.scripted import Scripted
from protocol.events import ContextCompacted
from protocol.model import Profile
from protocol.turns import AssistantMessage, TextPart, UserMessage
from tests.support.scripts import Bench, calls_until

from .test_brought_back import Place


def spec() -> AgentSpec:
    return AgentSpec(
        model=Scripted(lambda request: f"answer {len(request.messages)}"),
        name="ada",
        compact=trim(max_tokens=10),
        compact_at_tokens=150,
    )


async def test_it_comes_back_short(autojump_clock: trio.testing.MockClock) -> None:
    """The conversation of the next process is the one that this one had, and goes on from there."""
    place = Place()
    async with place.again() as runtime:
        agent = await runtime.spawn(spec(), messages=[UserMessage("x" * 400), AssistantMessage((TextPart("y" * 400),))])
        async with agent.run("one") as run:
            await run.result()
        before = list(agent.messages)
    async with place.again() as runtime:
        agent = await runtime.spawn(spec())
        after = list(agent.messages)
        async with agent.run("two") as run:
            result = await run.result()

    assert [UserMessage("one"), AssistantMessage((TextPart("answer 1"),))] == before == after
    assert ("answer 3", 1) == (result.text, sum(isinstance(event, ContextCompacted) for event in place.events))


async def test_going_back_before_it_finds_all_of_it(autojump_clock: trio.testing.MockClock) -> None:
    """What was compacted is still in the records: a fork of an earlier step has the conversation as it was then."""
    place = Place()
    made = AgentSpec(
        model=Scripted(calls_until(4), profile=Profile(reports_sending=True)),
        name="ada",
        tools=[Bench().tool(value="v" * 400)],
        compact=trim(max_tokens=200),
        compact_at_tokens=350,
    )
    async with place.again() as runtime:
        agent = await runtime.spawn(made)
        async with agent.run("go") as run:
            await run.result()
        short = len(agent.messages)
        other = AgentSpec(model=Scripted(["done"]), name="bea")
        fork = await runtime.fork(other, run.id, step=2)
        long = len(fork.messages)

    assert any(isinstance(event, ContextCompacted) for event in place.events)
    assert short < 7 <= long
