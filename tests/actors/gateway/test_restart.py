"""A process that dies, and another one that goes on from its disk: what clients were told holds."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, external_tool, open_runtime, remote
from actors.agent import Agent
from actors.gateway import Template, open_gateway
from actors.models.scripted import Scripted
from protocol.codec import decode_event
from protocol.events import AgentSpawned, AgentWarned, ContinuationResolved, MessageQueued, RunFinished, RunStarted
from tests.crash.lives import Reader, World, worker
from tests.support.disk import Batch, FakeDisk, events_of, journal_on

from .cast import NOTHING, talker
from .wired import Client, Hall, last_number, numbers_are_whole, open_hall

Clock = trio.testing.MockClock


def asker(name: str = "asker", **options: Any) -> AgentSpec:
    """Three rounds of tools, and a question after each; its model goes on wherever the conversation stands."""
    world = World()
    given = {"max_tool_iterations": 1, "continuation": remote(), **options}
    return AgentSpec(name=name, model=Reader(world, 3, 1), tools=[worker(world)], **given)


def approver(name: str = "approver") -> AgentSpec:
    """Two rounds of tools that need an approval."""
    world = World()
    return AgentSpec(
        name=name, model=Reader(world, 2, 1), tools=[worker(world, needs_approval=True)], approval=remote()
    )


def caller(name: str = "caller") -> AgentSpec:
    """Two rounds of a tool whose results the caller gives."""
    return AgentSpec(name=name, model=Reader(World(), 2, 1, ("look",)), tools=[external_tool("look", "Look.", NOTHING)])


TEMPLATES = {"asker": Template(asker, overrides={"name", "max_llm_calls"})}


@contextlib.asynccontextmanager
async def life(
    batches: Sequence[Batch], *specs: AgentSpec, templates: Any = None, **runtime: Any
) -> AsyncGenerator[tuple[Hall, FakeDisk, list[Agent]]]:
    """A process that goes on from these batches, with its agents."""
    disk = FakeDisk(list(batches))
    async with open_hall(journal=journal_on(disk), templates=templates, stop_grace_seconds=0.1, **runtime) as hall:
        yield hall, disk, [await hall.spawn(spec) for spec in specs]


async def asked(client: Client, agent: str) -> dict[str, Any]:
    """Wait for the next question of an agent."""
    while not (found := (await client.ask("request.list"))["requests"]):  # noqa: ASYNC110  a client polls
        await trio.sleep(0.01)
    assert agent == found[0]["agent"]
    request: dict[str, Any] = found[0]
    return request


async def decide(client: Client, request: dict[str, Any], idem: str, decision: str = "approve") -> Any:
    return await client.ask(
        f"{request['kind']}.decide",
        request=request["request"],
        decision=decision,
        digest=request["digest"],
        idem=idem,
    )


async def test_a_client_goes_on_behind_its_last_number(autojump_clock: Clock) -> None:
    """Same agent, same epoch, neither gap nor double, no snapshot; the run goes on and ends."""
    async with life([], asker(max_tool_iterations=9)) as (hall, disk, (agent,)):
        client = await hall.connect()
        attached = await client.ask("agent.attach", agent=agent.id, from_="start")
        await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
        await client.read_until(lambda: len(client.events(agent.id)) > 12)
        killed = list(disk.batches)
        before = client.events(agent.id)
    position = {"epoch": attached["epoch"], "seq": last_number(before)}
    async with life(killed, asker(max_tool_iterations=9)) as (hall, _, (agent,)):
        other = await hall.connect()
        again = await other.ask("agent.attach", agent=agent.id, from_=position)
        await other.read_until(other.saw(agent.id, "run_finished"))
        after = other.events(agent.id)

    assert (attached["epoch"], True, None) == (again["epoch"], again["recovered"], again.get("snapshot"))
    assert numbers_are_whole(before + after, 0)
    assert 1 == [event["type"] for _, event in before + after].count("run_resumed")


async def test_a_question_keeps_its_id(autojump_clock: Clock) -> None:
    """It is open after the restart, is decided under its old id by what a client saw before, and then is resolved for all."""
    async with life([], asker(max_tool_iterations=2)) as (hall, disk, (agent,)):
        client = await hall.connect()
        await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
        request = await asked(client, agent.id)
        killed = list(disk.batches)
    async with life(killed, asker(max_tool_iterations=2)) as (hall, disk, (agent,)):
        client, late = await hall.connect("ada"), await hall.connect("bob")
        (open_now,) = (await client.ask("request.list"))["requests"]
        told = await decide(client, request, "d")
        refused = await late.refusal(
            "continuation.decide", request=request["request"], decision="decline", digest=request["digest"], idem="d"
        )
        await client.ask("agent.attach", agent=agent.id, from_="start")
        await client.read_until(client.saw(agent.id, "run_finished"))
        numbers = {event["type"]: number for number, event in client.events(agent.id)}
        killed = list(disk.batches)
    async with life(killed, asker(max_tool_iterations=2)) as (hall, _, _):
        client, late = await hall.connect("ada"), await hall.connect("bob")
        again = await decide(client, request, "d")
        refused_again = await late.refusal(
            "continuation.decide", request=request["request"], decision="decline", digest=request["digest"], idem="d"
        )

    assert (request["request"], request["digest"]) == (open_now["request"], open_now["digest"])
    assert open_now["expires_in_seconds"] <= request["expires_in_seconds"]
    assert ({"status": "accepted", "request": request["request"]}, {**told, "replayed": True}) == (told, again)
    resolution = {"outcome": "approved", "by": "ada", "seq": numbers["continuation_resolved"]}
    assert [("already_resolved", resolution)] * 2 == [
        (one.word, one.data["resolution"]) for one in (refused, refused_again)
    ]


async def test_answers_are_kept(autojump_clock: Clock) -> None:
    """The same command gets the same answer in the next process, another one under its key is a conflict, others are not it."""
    async with life([], asker(), approver()) as (hall, disk, (first, second)):
        client = await hall.connect()
        run = await client.ask("run.start", agent=first.id, prompt="go", idem="i", if_busy="queue")
        steered = await client.ask("run.steer", run=run["run"], text="left", idem="s")
        await decide(client, await asked(client, first.id), "d", "decline")
        await client.ask("agent.attach", agent=first.id, from_="start")
        await client.read_until(client.saw(first.id, "run_finished"))
        await client.ask("run.start", agent=second.id, prompt="go", idem="i")
        approval = await asked(client, second.id)
        allowed = await decide(client, approval, "a", "deny")
        killed = list(disk.batches)
    async with life(killed, asker(), approver()) as (hall, disk, (first, second)):
        client, bob = await hall.connect(), await hall.connect("bob")
        run_again = await client.ask("run.start", agent=first.id, prompt="go", idem="i", if_busy="queue")
        steered_again = await client.ask("run.steer", run=run["run"], text="left", idem="s")
        allowed_again = await decide(client, approval, "a", "deny")
        words = [
            (await client.refusal("run.start", agent=first.id, prompt="stop", idem="i")).word,
            (await client.refusal("run.steer", run=run["run"], text="right", idem="s")).word,
        ]
        other = await bob.ask("run.start", agent=first.id, prompt="go", idem="i", if_busy="queue")

    assert {**run, "replayed": True, "state": "ended"} == run_again
    assert [{**steered, "replayed": True}, {**allowed, "replayed": True}] == [steered_again, allowed_again]
    assert ["idem_conflict"] * 2 == words
    assert other["run"] != run["run"]


async def test_at_any_moment(autojump_clock: Clock) -> None:
    """Wherever the process died, a client that gives its commands again comes to the same: each is done, and done once."""
    async with life([], templates=TEMPLATES) as (hall, disk, _):
        whole = await play(await hall.connect())
        batches = list(disk.batches)
    came_to: list[Any] = []
    for count in range(len(batches) + 1):
        async with life(batches[:count], templates=TEMPLATES) as (hall, disk, _):
            await play(await hall.connect())
            events = [decode_event(line) for line in events_of(disk.records())]
        counted = (AgentSpawned, RunStarted, MessageQueued, ContinuationResolved, RunFinished)
        by_kind = [sum(isinstance(event, kind) for event in events) for kind in counted]
        agents = {event.agent for event in events if isinstance(event, AgentSpawned)}
        came_to.append((len(agents), by_kind[1:]))

    assert len(batches) > 20
    assert [(1, [1, 1, len(whole), 1])] * len(came_to) == came_to


async def play(client: Client) -> list[str]:
    """All that a client does with an agent, under keys that are always the same; the requests that it decided."""
    made = await client.ask("agent.spawn", spec={"template": "asker"}, idem="m")
    started = await client.ask("run.start", agent=made["agent"], prompt="go", idem="r")
    await client.ask("run.steer", run=started["run"], text="left", idem="s")
    decided: list[str] = []
    state = "running"
    while state not in {"ended", "failed", "cancelled"}:
        for request in (await client.ask("request.list"))["requests"]:
            decided.append(request["request"])
            await decide(client, request, f"d-{request['request']}")
        await trio.sleep(0.01)
        state = (await client.ask("run.start", agent=made["agent"], prompt="go", idem="r"))["state"]
    return decided


async def test_what_the_log_does_not_hold_any_more(autojump_clock: Clock) -> None:
    """Of requests and runs that are over the end is known, also where its events are not read back."""
    small: Any = {"event_log_bytes": 400}
    async with life([], asker(), **small) as (hall, disk, (agent,)):
        client = await hall.connect()
        run = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
        request = await asked(client, agent.id)
        await decide(client, request, "d", "decline")
        await client.ask("agent.attach", agent=agent.id)
        await client.read_until(client.saw(agent.id, "run_finished"))
        number = agent.requests.number(request["request"])
        broken = await client.ask("run.start", agent=agent.id, prompt="again", idem="j")
        await client.ask("run.cancel", run=broken["run"], mode="now")
        await trio.sleep(1)
        for _ in range(9):
            agent.stream.append(AgentWarned(agent=agent.id, code="c", text="t" * 50))
        await hall.runtime.flushed()
        killed = list(disk.batches)
    async with life(killed, asker(), **small) as (hall, disk, (agent,)):
        await hall.runtime.flushed()  # a whole record is written
        twice = list(disk.batches)
        oldest = agent.stream.oldest
    async with life(twice, asker(), **small) as (hall, _, (agent,)):
        client, bob = await hall.connect(), await hall.connect("bob")
        again = await client.ask("run.start", agent=agent.id, prompt="again", idem="j")
        gone = await client.ask("run.cancel", run=run["run"])
        refused = await bob.refusal(
            "continuation.decide", request=request["request"], decision="approve", digest=request["digest"], idem="d"
        )

    assert number is not None
    assert number < oldest
    assert ("cancelled", {}) == (again["state"], gone)
    assert {"outcome": "declined", "by": "ada", "seq": number} == refused.data["resolution"]


class TestTemplates:
    async def test_agents_come_back_by_themselves(self, autojump_clock: Clock) -> None:
        """With their name, what was set and their run; the host's own agent of that name is another one."""
        async with life([], talker("one", name="x"), templates=TEMPLATES) as (hall, disk, _):
            client = await hall.connect()
            spec = {"template": "asker", "name": "x", "overrides": {"max_llm_calls": 7}}
            made = await client.ask("agent.spawn", spec=spec, idem="m")
            await client.ask("run.start", agent=made["agent"], prompt="go", idem="r")
            request = await asked(client, made["agent"])
            killed = list(disk.batches)
        async with life(killed, templates=TEMPLATES) as (hall, _, _):
            client = await hall.connect()
            again = await client.ask("agent.spawn", spec=spec, idem="m")
            (agent,) = hall.runtime.agents
            hosts = await hall.spawn(talker("one", name="x"))
            follower = await hall.connect()
            await follower.ask("agent.attach", agent=agent.id, from_="start")
            seen = await asked(client, agent.id)
            await decide(client, seen, "d", "decline")
            await follower.read_until(follower.saw(agent.id, "run_finished"))

        assert {**made, "replayed": True} == again
        assert (made["agent"], "x", 7) == (agent.id, agent.name, agent.spec.max_llm_calls)
        assert request["request"] == seen["request"]
        assert hosts.id != agent.id
        assert numbers_are_whole(follower.events(agent.id), 0)

    async def test_the_hosts_own_of_that_name(self, autojump_clock: Clock) -> None:
        """Is another agent, in the process after the next too, though the host makes it before the gateway opens."""
        async with life([], templates=TEMPLATES) as (hall, disk, _):
            client = await hall.connect()
            made = await client.ask("agent.spawn", spec={"template": "asker", "name": "x"}, idem="m")
            killed = list(disk.batches)
        async with life(killed, templates=TEMPLATES) as (hall, disk, _):
            await hall.runtime.flushed()
            killed = list(disk.batches)
        async with open_runtime(journal=journal_on(FakeDisk(killed))) as runtime:
            own = await runtime.spawn(talker("one", name="x"))
            async with open_gateway(runtime, port=0, templates=TEMPLATES):
                agents = [agent.id for agent in runtime.agents]

        assert [own.id, made["agent"]] == agents

    async def test_a_template_that_is_gone(self, autojump_clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
        """It is said, for the others too that it cannot make any more; their data stays until there is one again."""
        async with life([], templates=TEMPLATES) as (hall, disk, _):
            client = await hall.connect()
            spec = {"template": "asker", "name": "one", "overrides": {"max_llm_calls": 7}}
            one = await client.ask("agent.spawn", spec=spec, idem="m")
            await client.ask("run.start", agent=one["agent"], prompt="go", idem="r")
            await asked(client, one["agent"])
            killed = list(disk.batches)
        texts: list[dict[str, str]] = []
        for templates in ({}, {"asker": Template(asker)}, {"asker": Template(refusing, ("max_llm_calls",))}):
            with caplog.at_level(logging.WARNING, "onward.gateway"):
                async with life(killed, templates=templates) as (hall, disk, _):
                    texts.append(dict(hall.gateway.left_out))
                    killed = list(disk.batches)
                    there = len(hall.runtime.agents)
            assert there == 0
        async with life(killed, templates=TEMPLATES) as (hall, _, _):
            (agent,) = hall.runtime.agents
            waits = await asked(await hall.connect(), agent.id)

        assert [{one["agent"]}] * 3 == [set(text) for text in texts]
        assert "agent one (" in texts[0][one["agent"]]
        assert "there is no template 'asker'; there are: none" in texts[0][one["agent"]]
        assert "max_llm_calls cannot be set here" in texts[1][one["agent"]]
        assert "no more askers" in texts[2][one["agent"]]
        assert texts[0][one["agent"]] in [vars(record)["onward"].get("why") for record in caplog.records]
        assert one["agent"] == waits["agent"]

    async def test_one_that_was_stopped(self, autojump_clock: Clock) -> None:
        """Once that was answered it does not come back, though its run had not come to its boundary; nor is it made anew."""
        async with life([], templates=TEMPLATES) as (hall, disk, _):
            client = await hall.connect()
            made = await client.ask("agent.spawn", spec={"template": "asker"}, idem="m")
            await client.ask("run.start", agent=made["agent"], prompt="go", idem="r")
            await client.ask("agent.stop", agent=made["agent"])
            killed = list(disk.batches)
        async with life(killed, templates=TEMPLATES) as (hall, _, _):
            client = await hall.connect()
            again = await client.ask("agent.spawn", spec={"template": "asker"}, idem="m")
            agents = (await client.ask("agent.list"))["agents"]

        assert ({**made, "replayed": True}, []) == (again, agents)


def refusing(max_llm_calls: int) -> AgentSpec:
    assert max_llm_calls == 7
    raise ValueError("no more askers")


@attrs.define
class Ends:
    """How a client saw the end."""

    types: list[str]
    close: tuple[int, str | None]
    word: str
    retryable: bool


async def drained(batches: list[Batch] | None) -> tuple[Ends, FakeDisk]:
    """Stop a server in the order of `onward serve`, with a run at its gate."""
    disk = FakeDisk(list(batches or []))
    journal = journal_on(disk) if batches is not None else None
    async with open_hall(journal=journal) as hall:
        agent = await hall.spawn(asker())
        client = await hall.connect()
        await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
        await asked(client, agent.id)
        await client.ask("agent.attach", agent=agent.id)
        hall.gateway.restarting = True
        hall.gateway.drain()
        refused = await client.refusal("run.start", agent=agent.id, prompt="more", idem="j", if_busy="queue")
        await hall.runtime.drain(grace_seconds=1)
        await hall.runtime.flushed()
        hall.gateway.close()
        close = await client.closed()
        return Ends(client.types(agent.id), close, refused.word, refused.data["retryable"]), disk


class TestStop:
    async def test_without_a_journal(self, autojump_clock: Clock) -> None:
        """Nothing new begins; clients see the question closed and the run end, no agent that stops, and are told to come back."""
        ends, _ = await drained(None)

        assert [
            "continuation_resolved",
            "tool_finished",
            "step_finished",
            "run_finished",
        ] == ends.types
        assert ((1012, "the server restarts"), "draining", True) == (ends.close, ends.word, ends.retryable)

    async def test_with_one(self, autojump_clock: Clock) -> None:
        """The run has no end, and its question stays open: they go on in the next process."""
        ends, disk = await drained([])
        async with life(disk.batches, asker()) as (hall, _, (agent,)):
            request = await asked(await hall.connect(), agent.id)

        assert ([], (1012, "the server restarts"), "draining", True) == (
            ends.types,
            ends.close,
            ends.word,
            ends.retryable,
        )
        assert agent.id == request["agent"]

    async def test_a_run_that_comes_to_no_boundary(self, autojump_clock: Clock) -> None:
        """It is cancelled when its time is over, and clients see that before they have to go."""
        async with open_hall(stop_grace_seconds=0.1) as hall:
            agent = await hall.spawn(AgentSpec(name="stuck", model=Stuck()))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            hall.gateway.drain()
            began = trio.current_time()
            await hall.runtime.drain(grace_seconds=2)
            seconds = trio.current_time() - began
            hall.gateway.close()
            await client.closed()

        assert 1.99 < seconds < 3
        assert "run_cancelled" in client.types(agent.id)


class Stuck(Scripted):
    """A model that says nothing."""

    def __init__(self) -> None:
        super().__init__([])

    async def turn(self, request: Any, emit: Any) -> Any:  # noqa: ARG002
        await trio.sleep_forever()


async def test_results_that_were_given_are_kept(autojump_clock: Clock) -> None:
    """Once they were answered they are not asked for again."""
    async with life([], caller()) as (hall, disk, (agent,)):
        client = await hall.connect()
        run = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
        waits = await asked(client, agent.id)
        await client.ask("tools.submit", run=run["run"], results={waits["calls"][0]["id"]: "seen"})
        killed = list(disk.batches)
    async with life(killed, caller()) as (hall, _, (agent,)):
        again = await asked(await hall.connect(), agent.id)

    assert waits["calls"][0]["id"] != again["calls"][0]["id"]
