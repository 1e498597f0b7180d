"""Attach, detach, fetch: what one is told first, and that what follows has neither gap nor double."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors.gateway import ALL_ROLES, Principal
from protocol.events import AgentWarned
from protocol.wire import WireLimits

from .cast import asker, pauser, talker
from .wired import Hall, last_number, numbers_are_whole, open_hall

Clock = trio.testing.MockClock


async def ran(hall: Hall, agent: Any, times: int = 1) -> None:
    for _ in range(times):
        await (await agent.start("go")).result()


class TestWhere:
    async def test_from_the_head(self, autojump_clock: Clock) -> None:
        """It is what is meant where nothing is said: a snapshot, and then what is new."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one", "two"))
            await ran(hall, agent)
            client = await hall.connect()
            head = agent.stream.end
            replies = [await client.ask("agent.attach", agent=agent.id, **given) for given in ({}, {"from_": "head"})]
            await ran(hall, agent)
            await client.read_until(client.saw(agent.id, "run_finished"))

        assert [(head, 1, True, "idle")] * 2 == [
            (reply["head"], reply["oldest"], reply["recovered"], reply["snapshot"]["state"]) for reply in replies
        ]
        assert numbers_are_whole(client.events(agent.id), head)

    async def test_from_the_start(self, autojump_clock: Clock) -> None:
        """All that has been, without a snapshot."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            await ran(hall, agent)
            client = await hall.connect()
            reply = await client.ask("agent.attach", agent=agent.id, from_="start")
            await client.read_for(1)

            assert {"epoch", "head", "oldest", "recovered", "open_requests"} == set(reply)
            assert reply["recovered"]
            assert [(number, event["type"]) for number, event in client.events(agent.id)] == list(
                enumerate([event.type for event, _ in agent.stream.read(0)[1]], 1)
            )

    async def test_from_the_start_of_what_has_been_forgotten(self, autojump_clock: Clock) -> None:
        """It is no recovery: there is a snapshot, and events follow behind the head."""
        async with open_hall(event_log_bytes=2000) as hall:
            agent = await hall.spawn(talker(*["x" * 500] * 8))
            await ran(hall, agent, 7)
            client = await hall.connect()
            reply = await client.ask("agent.attach", agent=agent.id, from_="start")
            await ran(hall, agent)
            await client.read_until(client.saw(agent.id, "run_finished"))

        assert not reply["recovered"]
        assert reply["oldest"] > 1
        assert "idle" == reply["snapshot"]["state"]
        assert numbers_are_whole(client.events(agent.id), reply["head"])

    async def test_from_a_position(self, autojump_clock: Clock) -> None:
        """Whole where the log holds all behind it, else refused with a snapshot: never a part."""
        async with open_hall(event_log_bytes=2000) as hall:
            agent = await hall.spawn(talker(*["x" * 500] * 8))
            await ran(hall, agent, 8)
            client = await hall.connect()
            stream = agent.stream
            oldest, head, epoch = stream.oldest, stream.end, stream.epoch
            told = {}
            for name, where in {
                "the oldest": (epoch, oldest - 1),
                "the head": (epoch, head),
                "too old": (epoch, oldest - 2),
                "beyond": (epoch, head + 1),
                "another epoch": ("other", head),
            }.items():
                position = {"epoch": where[0], "seq": where[1]}
                reply = await client.ask("agent.attach", agent=agent.id, from_=position)
                await client.read_for(0.1)
                told[name] = (reply["recovered"], "snapshot" in reply, len(client.events(agent.id)))
                client.notes.clear()

        assert oldest > 2
        assert {
            "the oldest": (True, False, head - oldest + 1),
            "the head": (True, False, 0),
            "too old": (False, True, 0),
            "beyond": (False, True, 0),
            "another epoch": (False, True, 0),
        } == told

    async def test_an_agent_that_has_said_nothing(self, autojump_clock: Clock) -> None:
        """Its head is what has been said, and position 0 is before all."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await hall.connect()
            position = {"epoch": agent.stream.epoch, "seq": 0}
            reply = await client.ask("agent.attach", agent=agent.id, from_=position)
            await client.read_for(1)

        assert (1, True) == (reply["head"], reply["recovered"])
        assert ["agent_spawned"] == client.types(agent.id)

    @pytest.mark.parametrize("where", ["head", "start"])
    async def test_the_reply_comes_first(self, where: str, autojump_clock: Clock) -> None:
        """Before any event that it is about."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker(*["one"] * 3))
            client = await hall.connect()
            await ran(hall, agent)
            await client.send("agent.attach", {"agent": agent.id, "from": where}, id="a")
            await ran(hall, agent, 2)
            await client.read_for(1)
        order = [message.get("id", message.get("method")) for message in client.order[1:]]

        assert "a" == order[0]
        assert "events" in order

    async def test_the_reply_comes_first_where_it_does_not_fit(self, autojump_clock: Clock) -> None:
        """No event takes the place of a reply that has to wait for the next frame."""
        async with open_hall(limits=WireLimits(frame_bytes=2048)) as hall:
            agents = [await hall.spawn(talker()) for _ in range(17)]
            client = await hall.connect()
            await client.send("no.such.method", id="e")  # its answer leaves no room for the next one
            await client.send("agent.attach", {"agent": "*", "from": "start"}, id="a")
            await client.read_for(5)
        order = [message.get("id", message.get("method")) for message in client.order[1:]]

        assert len(agents) == len(client.replies["a"]["result"]["agents"])
        assert len(client.frames[1]) < 1024 < len(client.frames[2])
        assert ["e", "a", *["events"] * len(agents)] == order

    async def test_a_second_attach_replaces_the_first(self, autojump_clock: Clock) -> None:
        """Nothing comes twice, and the new wishes hold."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one", "two"))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            reply = await client.ask("agent.attach", agent=agent.id, deltas=False)
            await ran(hall, agent)
            await client.read_for(2)

            assert numbers_are_whole(client.events(agent.id), reply["head"])
            assert agent.stream.end == last_number(client.events(agent.id))
            assert "content_delta" not in client.types(agent.id)
            assert 1 == len(agent.stream._followers)

    async def test_who_may_not_see_it(self, autojump_clock: Clock) -> None:
        """For that principal it does not exist, whatever it asks."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one", name="secret"))
            other = await hall.spawn(talker("one", name="open"))
            client = await hall.connect(Principal("bob", ALL_ROLES, sees=lambda name: name == "open"))
            position = {"epoch": agent.stream.epoch, "seq": 0}
            words = [
                (await client.refusal("agent.attach", agent=agent.id)).word,
                (await client.refusal("agent.fetch", agent=agent.id, from_=position)).word,
                (await client.refusal("run.start", agent=agent.id, prompt="x", idem="i")).word,
                (await client.refusal("agent.stop", agent=agent.id)).word,
            ]
            listed = await client.ask("agent.list")
            attached = await client.ask("agent.attach", agent="*", from_="start")
            await hall.spawn(talker(name="secret"))
            later = await hall.spawn(talker(name="open"))
            await client.read_for(1)
            seen = {note["params"]["agent"] for note in client.notes if note["method"] == "events"}

        assert ["not_found"] * 4 == words
        assert [other.id] == [one["agent"] for one in listed["agents"]] == list(attached["agents"])
        assert {other.id, later.id} == seen


class TestAll:
    async def test_those_that_are_there_and_those_that_come(self, autojump_clock: Clock) -> None:
        """Each with a reply of its own; an agent that is spawned later is followed from its first event."""
        async with open_hall() as hall:
            first = await hall.spawn(talker("one"))
            client = await hall.connect()
            reply = await client.ask("agent.attach", agent="*", types=["run_started"])
            second = await hall.spawn(talker("two"))
            await ran(hall, first)
            await ran(hall, second)
            await client.read_for(2)

            assert {first.id: 1} == {agent: one["head"] for agent, one in reply["agents"].items()}
            assert "snapshot" in reply["agents"][first.id]
            for agent, after in ((first, 1), (second, 0)):
                assert numbers_are_whole(client.events(agent.id), after)
                assert agent.stream.end == last_number(client.events(agent.id))
                assert ["run_started", "run_finished"] == [kind for kind in client.types(agent.id) if kind != "skipped"]

    async def test_it_takes_no_position(self, autojump_clock: Clock) -> None:
        """Numbers are each agent's own."""
        async with open_hall() as hall:
            client = await hall.connect()
            refused = await client.refusal("agent.attach", agent="*", from_={"epoch": "e", "seq": 0})

        assert "invalid_argument" == refused.word

    async def test_detach(self, autojump_clock: Clock) -> None:
        """One of them, or all: nothing more comes of it, and nothing is left in the log."""
        async with open_hall() as hall:
            agents = [await hall.spawn(talker("one", "two")) for _ in range(2)]
            client = await hall.connect()
            await client.ask("agent.attach", agent="*")
            await client.ask("agent.detach", agent=agents[0].id)
            for agent in agents:
                await ran(hall, agent)
            await client.read_for(1)
            one_left = [bool(client.events(agent.id)) for agent in agents]
            await client.ask("agent.detach", agent="*")
            client.notes.clear()
            later = await hall.spawn(talker("one"))
            for agent in (*agents, later):
                await ran(hall, agent)
            await client.read_for(1)

            assert [False, True] == one_left
            assert [] == client.notes
            assert [0, 0, 0] == [len(agent.stream._followers) for agent in (*agents, later)]

    async def test_an_agent_that_stops(self, autojump_clock: Clock) -> None:
        """Its last word comes, whatever was wished for, and it is followed no longer."""
        async with open_hall() as hall:
            agents = [await hall.spawn(talker()) for _ in range(3)]
            client = await hall.connect()
            await client.ask("agent.attach", agent="*")
            await client.ask("agent.attach", agent=agents[1].id, types=[])
            for agent in agents[:2]:
                await client.ask("agent.stop", agent=agent.id)
            await client.read_for(21)
            session = next(iter(hall.gateway.connections.values())).session
            followed = list(session.following)

            assert [["agent_stopped"]] * 2 == [client.types(agent.id) for agent in agents[:2]]
            assert [agents[2].id] == followed
            assert [0, 0] == [len(agent.stream._followers) for agent in agents[:2]]
            assert "not_found" == (await client.refusal("agent.attach", agent=agents[0].id)).word


class TestFilters:
    async def test_types(self, autojump_clock: Clock) -> None:
        """What is listed, and always what waits for somebody, how that ended, and how the run did."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker(name="a"))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id, types=["tool_started", "no_such_type"], from_="start")
            await agent.start("go")
            await client.read_until(lambda: bool(client.requests(agent.id)))
            request = client.requests(agent.id)[0]
            await client.ask(
                "continuation.decide",
                request=request["request"],
                decision="decline",
                digest=request["digest"],
                idem="i",
            )
            await client.read_until(client.saw(agent.id, "run_finished"))
            await client.read_for(2)
            end = agent.stream.end

        assert ["tool_started", "continuation_required", "continuation_resolved", "run_finished"] == [
            kind for kind in client.types(agent.id) if kind != "skipped"
        ]
        assert numbers_are_whole(client.events(agent.id), 0)
        assert end == last_number(client.events(agent.id))

    async def test_left_out_events_are_told_within_a_second(self, autojump_clock: Clock) -> None:
        """However few they are, and however nothing else comes."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id, types=[])
            stamps = []
            for _ in range(3):
                agent.stream.append(AgentWarned(agent=agent.id, code="c", text="t"))
                began = trio.current_time()
                known = last_number(client.events(agent.id), 1)
                await client.read_until(lambda known=known: last_number(client.events(agent.id), 1) > known)  # type: ignore[misc]
                stamps.append(trio.current_time() - began)

        assert ["skipped"] * 3 == client.types(agent.id)
        assert max(stamps) <= 1
        assert (2, 4) == (client.events(agent.id)[0][0], last_number(client.events(agent.id)))

    async def test_left_out_events_do_not_make_frames(self, autojump_clock: Clock) -> None:
        """A stream of events that nobody wants costs a frame or two in a second."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker())
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id, types=[])
            frames = len(client.frames)
            for _ in range(1000):
                agent.stream.append(AgentWarned(agent=agent.id, code="c", text="t"))
                await trio.sleep(0.01)
            await client.read_for(1)

        assert 1001 == last_number(client.events(agent.id))
        assert len(client.frames) - frames <= 25


class TestFetch:
    async def test_pages(self, autojump_clock: Clock) -> None:
        """Behind a position, as many as asked for; `more` says whether there are further ones."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one", "two"))
            await ran(hall, agent, 2)
            client = await hall.connect()
            found, seq, more, sizes = [], 0, True, []
            while more:
                page = await client.ask(
                    "agent.fetch", agent=agent.id, from_={"epoch": agent.stream.epoch, "seq": seq}, limit=4
                )
                found += page["events"]
                sizes.append((page["seq"], len(page["events"])))
                seq, more = page["seq"] + len(page["events"]) - 1, page["more"]

            assert [event.type for event, _ in agent.stream.read(0)[1]] == [event["type"] for event in found]
            assert [(1, 4), (5, 4), (9, 3)] == sizes

    async def test_what_the_log_does_not_hold(self, autojump_clock: Clock) -> None:
        """It is not found: never a page with a gap before it."""
        async with open_hall(event_log_bytes=2000) as hall:
            agent = await hall.spawn(talker(*["x" * 500] * 8))
            await ran(hall, agent, 8)
            client = await hall.connect()
            stream = agent.stream
            words = []
            for epoch, seq in ((stream.epoch, 0), (stream.epoch, stream.end + 1), ("other", stream.end)):
                position = {"epoch": epoch, "seq": seq}
                words.append((await client.refusal("agent.fetch", agent=agent.id, from_=position)).word)
            last = await client.ask("agent.fetch", agent=agent.id, from_={"epoch": stream.epoch, "seq": stream.end})

        assert ["not_found"] * 3 == words
        assert ([], False) == (last["events"], last["more"])


class TestAck:
    async def test_what_is_followed(self, autojump_clock: Clock) -> None:
        """It is noted as far as it was sent; all else says nothing and harms nothing."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id, from_="start")
            await client.read_until(client.saw(agent.id, "agent_spawned"))
            told = await client.ask("ack", **{agent.id: 1, "unknown": 7})
            await client.ask("ack", **{agent.id: 99})
            session = next(iter(hall.gateway.connections.values())).session
            acked = dict(session.acked)
            refused = await client.refusal("ack", **{agent.id: -1})

        assert {} == told
        assert {agent.id: 1} == acked
        assert -32602 == refused.number


class TestOpenRequests:
    async def test_whoever_comes_later_sees_them(self, autojump_clock: Clock) -> None:
        """From wherever it attaches: all of them, of all kinds, with the seconds that are left now."""
        async with open_hall() as hall:
            gate, pause = await hall.spawn(asker()), await hall.spawn(pauser("c1", "c2"))
            early = await hall.connect()
            await early.ask("agent.attach", agent="*")
            for agent in (gate, pause):
                await agent.start("go")
            await early.read_for(100)
            late = await hall.connect()
            told = {}
            for where in ("head", "start", {"epoch": gate.stream.epoch, "seq": gate.stream.end}):
                reply = await late.ask("agent.attach", agent=gate.id, from_=where)
                told[str(where)] = reply["open_requests"]
            paused = (await late.ask("agent.attach", agent=pause.id))["open_requests"]
            listed = (await late.ask("request.list"))["requests"]
            event = early.requests(gate.id)[0]

        for requests in told.values():
            (request,) = requests
            left = request.pop("expires_in_seconds")
            kind, agent = request.pop("kind"), request.pop("agent")

            assert 500 == pytest.approx(left, abs=1)
            assert ("continuation", gate.id) == (kind, agent)
            shown = {key: value for key, value in event.items() if key not in {"type", "expires_in_seconds"}}

            assert {"agent_path": [], "on_timeout": "decline", **shown} == request
        assert [("tools", None, ["c1", "c2"])] == [
            (one["kind"], one["expires_in_seconds"], [call["id"] for call in one["calls"]]) for one in paused
        ]
        assert {"continuation", "tools"} == {one["kind"] for one in listed}
