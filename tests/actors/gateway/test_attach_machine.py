"""Clients that come, go, decide and follow, in any order: what each has seen is the log, and each request ends once."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import attrs
import trio
import trio.testing
import trio_websocket
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.agent import Agent
from protocol.codec import decode_event

from .cast import asker, parent, payer
from .wired import Client, Hall, RefusedError, open_hall

EXPIRES = 30
LONG = os.environ.get("ONWARD_SWEEP") == "full"
FILTERS: list[dict[str, Any]] = [
    {},
    {},
    {"deltas": False},
    {"types": []},
    {"types": ["run_started", "tool_finished"]},
]
steps = st.one_of(
    st.tuples(st.just("start"), st.integers(0, 2), st.sampled_from(["refuse", "queue"])),
    st.tuples(st.just("connect"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("attach"), st.integers(0, 3), st.integers(0, 44)),
    st.tuples(st.just("decide"), st.integers(0, 3), st.integers(0, 23)),
    st.tuples(st.just("again"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("drop"), st.integers(0, 3), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 1.0, 20.0]), st.just(0)),
    st.tuples(st.just("cancel"), st.integers(0, 2), st.sampled_from(["now", "boundary"])),
    st.tuples(st.just("stop"), st.integers(0, 2), st.just(0)),
)


@attrs.define
class Person:
    """A client over all its connections: what it has of each agent, and what it was told of its decisions."""

    name: str
    client: Client | None = None
    read: int = 0
    """Messages of the present connection that have been looked at."""
    has: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    """By agent: the epoch and the last number."""
    asked: dict[Any, str] = attrs.field(factory=dict)
    """Attaches that are not answered, by id: the agent, or the whereabouts."""
    following: set[str] = attrs.field(factory=set)
    decided: dict[Any, tuple[str, str]] = attrs.field(factory=dict)
    """Decisions that are not answered: request and key."""
    last: dict[str, Any] | None = None
    """The last decision, to be sent again."""
    accepted: set[tuple[str, str]] = attrs.field(factory=set)
    refused: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list)
    seen: list[tuple[str, int, dict[str, Any]]] = attrs.field(factory=list)
    requests: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def look(self) -> None:
        """Go through what has come since, in order: the rules of a client."""
        assert self.client is not None
        fresh, self.read = self.client.order[self.read :], len(self.client.order)
        for message in fresh:
            if message.get("method") == "events":
                self._events(message["params"])
            elif message.get("id") in self.asked:
                self._attached(self.asked.pop(message["id"]), message)
            elif message.get("id") in self.decided:
                self._told(self.decided.pop(message["id"]), message)

    def _attached(self, where: str, message: dict[str, Any]) -> None:
        if "error" in message:
            assert "not_found" == message["error"]["data"]["code"]
            return
        agent, _, mode = where.partition(" ")
        reply = message["result"]
        held = self.has.get(agent)
        if mode == "position" and reply["recovered"]:
            assert held is not None
            assert held[0] == reply["epoch"]
            assert "snapshot" not in reply
        elif mode == "start" and reply["recovered"]:
            self.has[agent] = (reply["epoch"], 0)
        else:
            assert "snapshot" in reply
            self.has[agent] = (reply["epoch"], reply["head"])
        self.following.add(agent)
        for request in reply["open_requests"]:
            self.requests[request["request"]] = request

    def _events(self, params: dict[str, Any]) -> None:
        agent, number = params["agent"], params["seq"]

        assert agent in self.following, "events before the reply that they belong to"
        epoch, seq = self.has[agent]
        assert (epoch, seq + 1) == (params["epoch"], number)
        for event in params["events"]:
            self.seen.append((agent, number, event))
            number += event.get("n", 1)
            if event["type"].endswith("_required"):
                self.requests[event["request"]] = event
        self.has[agent] = (epoch, number - 1)

    def _told(self, decision: tuple[str, str], message: dict[str, Any]) -> None:
        if "error" not in message:
            self.accepted.add(decision)
        elif message["error"]["data"]["code"] == "already_resolved":
            self.refused.append((decision[0], message["error"]["data"]["resolution"]))
        else:
            assert message["error"]["data"]["code"] in {"stale_view", "invalid_argument", "not_found"}


@attrs.define
class Play:
    """A hall, its agents, and four people."""

    hall: Hall
    agents: list[Agent]
    people: list[Person] = attrs.field(factory=lambda: [Person(f"p{n}") for n in range(4)])
    idems: int = 0

    async def do(self, what: str, one: Any, other: Any) -> None:
        await getattr(self, f"do_{what}")(one, other)
        await trio.sleep(0.02)
        for person in self.people:
            await self.read(person)

    async def read(self, person: Person) -> None:
        if person.client is not None:
            with contextlib.suppress(trio_websocket.ConnectionClosed):
                await person.client.read_for(0.02)
            person.look()

    async def do_start(self, agent: int, if_busy: Any) -> None:
        self.hall.nursery.start_soon(self._start, self.agents[agent], if_busy)

    async def _start(self, agent: Agent, if_busy: Any) -> None:
        with contextlib.suppress(Exception):
            await agent.start("go", if_busy=if_busy)

    async def do_connect(self, who: int, _: Any) -> None:
        person = self.people[who]
        if person.client is None:
            person.client, person.read = await self.hall.connect(person.name), 0
            person.following.clear()

    async def do_attach(self, who: int, how: int) -> None:
        person, agent = self.people[who], self.agents[how % 3]
        if person.client is None or any(where.startswith(agent.id) for where in person.asked.values()):
            return
        wishes = FILTERS[how // 9 % len(FILTERS)]
        mode = ("position", "head", "start")[how // 3 % 3]
        held = person.has.get(agent.id)
        if mode == "position" and held is None:
            mode = "head"
        where: Any = {"epoch": held[0], "seq": held[1]} if mode == "position" and held else mode
        id = await person.client.send("agent.attach", {"agent": agent.id, "from": where, **wishes})
        person.asked[id] = f"{agent.id} {mode}"
        await self.read(person)

    async def do_decide(self, who: int, how: int) -> None:
        person = self.people[who]
        if person.client is None or not person.requests:
            return
        request = list(person.requests.values())[-1 - how % min(3, len(person.requests))]
        kind = "approval" if "call" in request else "continuation"
        self.idems += 1
        person.last = {
            "method": f"{kind}.decide",
            "request": request["request"],
            "digest": "stale" if how % 8 == 7 else request["digest"],
            "decision": "approve" if how % 2 else ("decline" if kind == "continuation" else "deny"),
            "idem": f"i{self.idems}",
        }
        await self.do_again(who, 0)

    async def do_again(self, who: int, _: Any) -> None:
        person = self.people[who]
        if person.client is None or person.last is None:
            return
        params = dict(person.last)
        id = await person.client.send(params.pop("method"), params)
        person.decided[id] = (params["request"], params["idem"])

    async def do_drop(self, who: int, how: int) -> None:
        person = self.people[who]
        if person.client is None:
            return
        if how:
            await person.client.socket.aclose()
        else:
            await person.client.drop()
        person.client = None
        person.asked.clear()
        person.decided.clear()

    async def do_wait(self, seconds: float, _: Any) -> None:
        await trio.sleep(seconds)

    async def do_cancel(self, agent: int, mode: Any) -> None:
        core = self.agents[agent].current
        if core is not None:
            core.cancel("the play says so") if mode == "now" else core.stop("the play says so")

    async def do_stop(self, agent: int, _: Any) -> None:
        self.agents[agent].stop()

    def judge(self) -> None:
        """What holds at the end, whatever has been done."""
        accepted = [(request, person.name) for person in self.people for request, _ in person.accepted]
        logs: dict[str, list[Any]] = {
            agent.id: [event for event, _ in agent.stream.read(0, 100_000)[1]] for agent in self.agents
        }
        resolutions: dict[str, tuple[int, Any]] = {}
        for log in logs.values():
            for number, event in enumerate(log, 1):
                if event.type.endswith("_resolved"):
                    assert event.request not in resolutions
                    resolutions[event.request] = (number, event)

        assert len(accepted) == len(dict(accepted))
        for request, name in accepted:
            assert name == resolutions[request][1].by
        for person in self.people:
            for request, told in person.refused:
                number, event = resolutions[request]
                assert {"outcome": event.outcome, "by": event.by, "seq": number} == told
            for agent, number, seen in person.seen:
                if seen["type"] != "skipped":
                    assert logs[agent][number - 1] == decode_event(json.dumps(seen))


async def play(script: list[tuple[str, Any, Any]]) -> None:
    async with open_hall(event_log_bytes=2_000_000) as hall:
        short = {"continuation_timeout_seconds": EXPIRES, "max_llm_calls": 4}
        specs = [asker("a", **short), payer(1, 2, name="b"), parent(asker("kid", **short), name="c")]
        stage = Play(hall, [await hall.spawn(spec) for spec in specs])
        for step in script:
            await stage.do(*step)
        stage.judge()
        for person in stage.people:  # whoever is away comes back, and gets the rest, or a snapshot
            await stage.do_connect(stage.people.index(person), 0)
            for place, agent in enumerate(stage.agents):
                if not agent.stopped.is_set():
                    await stage.do_attach(stage.people.index(person), place)
        await stage.do("wait", 1.0, 0)
        stage.judge()
        for person in stage.people:
            for agent in stage.agents:
                if not agent.stopped.is_set():
                    assert agent.stream.end == person.has[agent.id][1]


@settings(
    max_examples=2000 if LONG else 60,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(steps, min_size=5, max_size=40))
def test_whatever_they_do(script: list[tuple[str, Any, Any]]) -> None:
    """One resolution for each request, told alike to all; what each client has is whole, or begins with a snapshot."""
    trio.run(play, script, clock=trio.testing.MockClock(autojump_threshold=0))


def test_the_refused_are_known() -> None:
    """The model of a client fails where a number is missing: it could not be fooled."""
    person = Person("p", has={"a": ("e", 3)}, following={"a"})
    try:
        person._events({"agent": "a", "epoch": "e", "seq": 5, "events": []})
    except AssertionError:
        fooled = False
    else:
        fooled = True

    assert not fooled
    assert issubclass(RefusedError, Exception)
