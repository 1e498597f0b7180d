"""Commands that drive agents: runs are started, steered, cancelled and fed, and agents stopped."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import AgentSpec, RuntimeLimits
from actors.models.scripted import Scripted

from .cast import asker, parent, patient, pauser, sleeper, talker
from .wired import Client, open_hall

Clock = trio.testing.MockClock


def finished(client: Client, agent: str) -> dict[str, Any]:
    return next(event for _, event in client.events(agent) if event["type"] == "run_finished")


class TestStart:
    async def test_a_run(self, autojump_clock: Clock) -> None:
        """Its id, and the number behind which its first event comes; it outlives its connection."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper())
            client = await hall.connect()
            told = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.drop()
            other = await hall.connect()
            await other.ask("agent.attach", agent=agent.id, from_="start")
            await other.read_until(other.saw(agent.id, "run_finished"))
            first = next((number, event) for number, event in other.events(agent.id) if event["type"] == "run_started")

        assert (told["seq"] + 1, told["run"], "go") == (first[0], first[1]["run"], first[1]["prompt"])
        assert {"run", "seq"} == set(told)

    async def test_sent_again(self, autojump_clock: Clock) -> None:
        """The same run, with its present state; another prompt under that key is a conflict."""
        async with open_hall() as hall:
            agents = {name: await hall.spawn(spec) for name, spec in {
                "ended": talker("one"), "running": sleeper(500), "waiting": asker(), "paused": pauser(),
            }.items()}  # fmt: skip
            client = await hall.connect()
            told, again = {}, {}
            for name, agent in agents.items():
                told[name] = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
                await trio.sleep(1)
                again[name] = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            refused = await client.refusal("run.start", agent=agents["ended"].id, prompt="stop", idem="i")
            runs = [list(agent.stream.runs) for agent in agents.values()]

        assert {name: {**one, "replayed": True, "state": name} for name, one in told.items()} == again
        assert "idem_conflict" == refused.word
        assert [1, 1, 1, 1] == list(map(len, runs))

    async def test_a_key_is_of_one_agent_and_principal(self, autojump_clock: Clock) -> None:
        """The same key is another command for another agent, and for somebody else."""
        async with open_hall() as hall:
            first, second = await hall.spawn(talker("one", "two")), await hall.spawn(talker("one"))
            ada, bob = await hall.connect("ada"), await hall.connect("bob")
            runs = []
            for client, agent in ((ada, first), (ada, second), (bob, first)):
                runs.append((await client.ask("run.start", agent=agent.id, prompt="go", idem="i"))["run"])
                await trio.sleep(1)

        assert 3 == len(set(runs))

    async def test_a_busy_agent(self, autojump_clock: Clock) -> None:
        """It is refused, to be tried again under the same key; or it waits for its turn."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(60, turns=3))
            client = await hall.connect()
            first = await client.ask("run.start", agent=agent.id, prompt="go", idem="i1")
            refused = await client.refusal("run.start", agent=agent.id, prompt="go", idem="i2")
            await client.read_for(100)
            second = await client.ask("run.start", agent=agent.id, prompt="go", idem="i2")
            began = trio.current_time()
            third = await client.ask("run.start", agent=agent.id, prompt="go", idem="i3", if_busy="queue")

            assert 3 == len({one["run"] for one in (first, second, third)})
            assert ("busy", True) == (refused.word, refused.data["retryable"])
            assert 60 == pytest.approx(trio.current_time() - began, abs=1)

    async def test_a_runtime_that_is_full(self, autojump_clock: Clock) -> None:
        """It is told, and nothing has begun."""
        async with open_hall(of_host=RuntimeLimits(max_history_bytes=100)) as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect()
            refused = await client.refusal("run.start", agent=agent.id, prompt="x" * 101, idem="i")
            state = agent.statistics().state

        assert ("busy", True, "idle") == (refused.word, refused.data["retryable"], state)
        assert "max_history_bytes" in refused.text

    async def test_a_queued_run_holds_nothing_up(self, autojump_clock: Clock) -> None:
        """The commands behind it are answered meanwhile, those that end the wait too."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(600, turns=2))
            client = await hall.connect()
            first = await client.ask("run.start", agent=agent.id, prompt="go", idem="i1")
            queued = await client.send(
                "run.start", {"agent": agent.id, "prompt": "x", "idem": "i2", "if_busy": "queue"}
            )
            pong = await client.ask("ping")
            await client.ask("run.cancel", run=first["run"], mode="now")
            second = await client.reply(queued)

            assert {} == pong
            assert first["run"] != second["run"]
            assert trio.current_time() < 10

    async def test_a_queued_run_outlives_its_connection(self, autojump_clock: Clock) -> None:
        """Sent again, it is the same one: it is not queued twice, and runs once."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(60, turns=3))
            client = await hall.connect("ada")
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i1")
            params = {"agent": agent.id, "prompt": "x", "idem": "i2", "if_busy": "queue"}
            await client.send("run.start", params)
            await trio.sleep(1)
            await client.drop()
            again = await hall.connect("ada")
            told = await again.ask("run.start", **params)
            await again.read_for(200)
            runs = list(agent.stream.runs)

        assert 2 == len(runs)
        assert runs[1] == told["run"]
        assert told["replayed"]

    async def test_a_queued_run_of_an_agent_that_stops(self, autojump_clock: Clock) -> None:
        """It is refused when that is so."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(60, turns=2))
            client = await hall.connect()
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i1")
            params = {"agent": agent.id, "prompt": "x", "idem": "i2", "if_busy": "queue"}
            queued = await client.send("run.start", params)
            await client.ask("agent.stop", agent=agent.id, mode="now")
            await client.read_until(lambda: queued in client.replies)
            refused = client.replies[queued]["error"]["data"]["code"]
            gone = await client.refusal("run.start", **{**params, "if_busy": "refuse"})

        assert "draining" == refused
        assert "not_found" == gone.word

    async def test_too_many_wait(self, autojump_clock: Clock) -> None:
        """What waits for something is bounded, and all else goes on."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(6000))
            client = await hall.connect(queue=1000)
            for number in range(70):
                params = {"agent": agent.id, "prompt": "x", "idem": f"i{number}", "if_busy": "queue"}
                await client.send("run.start", params, id=f"r{number}")
                await trio.sleep(0.1)
            listed = await client.ask("agent.list")
            await client.read_for(1)
            words = [message["error"]["data"]["code"] for message in client.replies.values() if "error" in message]

        assert ["overloaded"] * 5 == words
        assert 1 == len(listed["agents"])

    @pytest.mark.parametrize(
        ("own", "asked", "rounds"),
        [({"max_llm_calls": 3}, {"max_llm_calls": 2}, 2), ({"max_llm_calls": 3}, {"max_llm_calls": 9}, 3),
         ({}, {"max_llm_calls": 4}, 4), ({"max_llm_calls": 3}, {"max_tool_calls": 50}, 3)],
    )  # fmt: skip
    async def test_limits_only_lower(
        self, own: dict[str, int], asked: dict[str, int], rounds: int, autojump_clock: Clock
    ) -> None:
        """What the agent has is the most."""
        async with open_hall() as hall:
            options: dict[str, Any] = {"continuation": None, "max_tool_iterations": 50, "max_llm_calls": None, **own}
            spec = asker(**options)
            agent = await hall.spawn(spec)
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i", limits=asked)
            await client.read_until(client.saw(agent.id, "run_finished"))

        assert rounds == finished(client, agent.id)["summary"]["counters"]["llm_calls"]

    @pytest.mark.parametrize("limits", [{"max_llm_calls": 0}, {"max_cost": -1}, {"max_tool_calls": "2"}])
    async def test_limits_that_cannot_be(self, limits: dict[str, Any], autojump_clock: Clock) -> None:
        """They do not fit the schema."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect()
            refused = await client.refusal("run.start", agent=agent.id, prompt="go", idem="i", limits=limits)

        assert -32602 == refused.number

    @pytest.mark.parametrize(("prompt", "word"), [("", "-32602"), ("  ", "invalid_argument")])
    async def test_a_prompt_that_says_nothing(self, prompt: str, word: str, autojump_clock: Clock) -> None:
        """It is refused, and the key stays free."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect()
            refused = await client.refusal("run.start", agent=agent.id, prompt=prompt, idem="i")
            told = await client.ask("run.start", agent=agent.id, prompt="go", idem="i")

        assert word == refused.word
        assert "replayed" not in told

    async def test_a_limit_that_needs_prices(self, autojump_clock: Clock) -> None:
        """What the agent cannot hold is refused."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect()
            params = {"agent": agent.id, "prompt": "go", "idem": "i", "limits": {"max_cost": 1}}
            refused = await client.refusal("run.start", **params)

        assert "invalid_argument" == refused.word


class TestSteer:
    async def test_a_message(self, autojump_clock: Clock) -> None:
        """It is queued once, however often it is sent, and told to all."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper())
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            run = (await client.ask("run.start", agent=agent.id, prompt="go", idem="i"))["run"]
            await client.read_until(client.saw(agent.id, "tool_started"))
            told = [await client.ask("run.steer", run=run, text="hurry", idem="s") for _ in range(2)]
            refused = await client.refusal("run.steer", run=run, text="slower", idem="s")
            await client.read_until(client.saw(agent.id, "run_finished"))
            late = await client.refusal("run.steer", run=run, text="too late", idem="s2")

        assert [{}, {"replayed": True}] == told
        assert "idem_conflict" == refused.word
        assert "not_found" == late.word
        assert [1, 1] == [client.types(agent.id).count(f"message_{what}") for what in ("queued", "delivered")]

    async def test_a_sub_agent(self, autojump_clock: Clock) -> None:
        """Its run is reached by its own id."""
        async with open_hall() as hall:
            agent = await hall.spawn(parent(sleeper()))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.read_until(lambda: len(child_runs(client, agent.id)) > 0)
            (run,) = child_runs(client, agent.id)
            await client.ask("run.steer", run=run, text="hurry", idem="s")
            await client.read_until(client.saw(agent.id, "message_queued"))
            queued = next(event for _, event in client.events(agent.id) if event["type"] == "message_queued")

        assert (run, ["sleeper"], "hurry") == (queued["run"], queued["agent_path"], queued["text"])

    @pytest.mark.parametrize("text", ["   ", "\n"])
    async def test_a_text_that_says_nothing(self, text: str, autojump_clock: Clock) -> None:
        """It is refused."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper())
            client = await hall.connect()
            run = (await client.ask("run.start", agent=agent.id, prompt="go", idem="i"))["run"]
            refused = await client.refusal("run.steer", run=run, text=text, idem="s")

        assert "invalid_argument" == refused.word


def child_runs(client: Client, agent: str) -> list[str]:
    events = [event for _, event in client.events(agent)]
    return [event["run"] for event in events if event["type"] == "run_started" and event.get("agent_path")]


class TestCancel:
    @pytest.mark.parametrize(("mode", "end"), [("now", "run_cancelled"), ("boundary", "run_finished")])
    async def test_how(self, mode: str, end: str, autojump_clock: Clock) -> None:
        """At once, or at the run's next boundary; of an ended run nothing is left to do, and an unknown one is not found."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(30))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            run = (await client.ask("run.start", agent=agent.id, prompt="go", idem="i"))["run"]
            await client.read_until(client.saw(agent.id, "tool_started"))
            told = [await client.ask("run.cancel", run=run, mode=mode, reason="enough") for _ in range(2)]
            await client.read_until(client.saw(agent.id, end))
            at = trio.current_time()
            told.append(await client.ask("run.cancel", run=run, mode=mode))
            refused = await client.refusal("run.cancel", run="run-unknown")

        assert [{}] * 3 == told
        assert "not_found" == refused.word
        assert (at < 5) == (mode == "now")

    async def test_one_that_ended_long_ago(self, autojump_clock: Clock) -> None:
        """It is known still when the log has forgotten its events."""
        async with open_hall(event_log_bytes=500) as hall:
            agent = await hall.spawn(talker(*["x" * 400] * 5))
            client = await hall.connect()
            runs = []
            for number in range(5):
                told = await client.ask("run.start", agent=agent.id, prompt="go", idem=f"i{number}")
                runs.append(told["run"])
                await client.read_for(1)
            told = await client.ask("run.cancel", run=runs[0])

            assert agent.stream.oldest > 10
            assert {} == told

    async def test_a_sub_agent(self, autojump_clock: Clock) -> None:
        """Its run alone: its caller goes on; and when it has ended, nothing is left to do."""
        async with open_hall() as hall:
            agent = await hall.spawn(parent(sleeper()))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.read_until(lambda: len(child_runs(client, agent.id)) > 0)
            (run,) = child_runs(client, agent.id)
            await client.ask("run.cancel", run=run, mode="now")
            await client.read_until(client.saw(agent.id, "run_finished"))
            told = await client.ask("run.cancel", run=run)
            ends = [
                (event["type"], event.get("agent_path")) for _, event in client.events(agent.id) if "summary" in event
            ]

        assert [("run_cancelled", ["sleeper"]), ("run_finished", None)] == ends
        assert {} == told


class TestSubmit:
    @pytest.mark.parametrize("nested", [False, True])
    async def test_results(self, nested: bool, autojump_clock: Clock) -> None:
        """In parts, as they come; what is not waited for is refused as a whole."""
        async with open_hall() as hall:
            spec = pauser("c1", "c2")
            agent = await hall.spawn(spec)
            if nested:
                agent = await hall.spawn(patient(agent))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.read_until(client.saw(agent.id, "run_paused"))
            run = next(event["run"] for _, event in client.events(agent.id) if event["type"] == "run_paused")
            wrong = await client.refusal("tools.submit", run=run, results={"c1": 1, "c9": 1})
            told = [await client.ask("tools.submit", run=run, results={"c1": {"seen": True}})]
            listed = (await client.ask("request.list"))["requests"]
            again = await client.refusal("tools.submit", run=run, results={"c1": 2})
            told.append(await client.ask("tools.submit", run=run, results={"c2": "x"}))
            await client.read_until(client.saw(agent.id, "run_resumed"))
            empty = (await client.ask("request.list"))["requests"]
            results = [event["text"] for _, event in client.events(agent.id) if event["type"] == "tool_finished"]

        assert ["invalid_argument"] * 2 == [wrong.word, again.word]
        assert [{}, {}] == told
        assert [("tools", agent.id, ["c2"], nested)] == [
            (one["kind"], one["agent"], [call["id"] for call in one["calls"]], bool(one["agent_path"]))
            for one in listed
        ]
        assert [] == empty
        assert ['{"seen":true}', "x"] == results[:2]


class TestStop:
    async def test_at_the_boundary(self, autojump_clock: Clock) -> None:
        """The run in hand ends in order, and no other begins."""
        async with open_hall() as hall:
            agent = await hall.spawn(sleeper(30))
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.read_until(client.saw(agent.id, "tool_started"))
            told = await client.ask("agent.stop", agent=agent.id, reason="enough")
            refused = await client.refusal("run.start", agent=agent.id, prompt="go", idem="i2")
            await client.read_until(client.saw(agent.id, "agent_stopped"))
            last = client.events(agent.id)[-1][1]

        assert {} == told
        assert "draining" == refused.word
        assert ["run_finished", "agent_stopped"] == client.types(agent.id)[-2:]
        assert "enough" == last["reason"]

    async def test_now(self, autojump_clock: Clock) -> None:
        """The run in hand is cancelled, and what was asked is closed because the agent ends."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            await client.ask("agent.attach", agent=agent.id)
            await client.ask("run.start", agent=agent.id, prompt="go", idem="i")
            await client.read_until(client.saw(agent.id, "continuation_required"))
            await client.ask("agent.stop", agent=agent.id, mode="now")
            await client.read_until(client.saw(agent.id, "agent_stopped"))
            resolved = next(event for _, event in client.events(agent.id) if event["type"] == "continuation_resolved")

        assert "agent_ended" == resolved["outcome"]


class TestRoles:
    @pytest.mark.parametrize("roles", [("observe",), ("decide",), ("observe", "decide")])
    async def test_driving_needs_operate(self, roles: Any, autojump_clock: Clock) -> None:
        """No other role implies it; looking is what every role may."""
        async with open_hall() as hall:
            agent = await hall.spawn(AgentSpec(model=Scripted([])))
            client = await hall.connect("eve", *roles)
            commands: dict[str, dict[str, Any]] = {
                "run.start": {"agent": agent.id, "prompt": "x", "idem": "i"},
                "run.cancel": {"run": "r"},
                "run.steer": {"run": "r", "text": "x", "idem": "i"},
                "tools.submit": {"run": "r", "results": {}},
                "agent.stop": {"agent": agent.id},
                "agent.spawn": {"spec": {"template": "t"}, "idem": "i"},
            }
            words = [(await client.refusal(method, **params)).word for method, params in commands.items()]
            listed = await client.ask("agent.list")
            await client.ask("agent.attach", agent="*")
            await client.ask("request.list")

        assert ["forbidden"] * 6 == words
        assert 1 == len(listed["agents"])

    @pytest.mark.parametrize("roles", [("operate",), ("admin",)])
    async def test_who_may(self, roles: Any, autojump_clock: Clock) -> None:
        """`operate`, and `admin` that holds all."""
        async with open_hall() as hall:
            agent = await hall.spawn(talker("one"))
            client = await hall.connect("ada", *roles)
            told = await client.ask("run.start", agent=agent.id, prompt="x", idem="i")

        assert "run" in told
