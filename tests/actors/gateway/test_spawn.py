"""`agent.spawn`: agents from templates, with what the host permits and nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio.testing

from actors import AgentSpec, RuntimeLimits, open_runtime
from actors.gateway import Principal, Template, open_gateway
from actors.models.scripted import Scripted
from protocol.errors import SpecError
from protocol.wire import Role

from .cast import asker, talker
from .wired import open_hall

Clock = trio.testing.MockClock


def made(topic: str = "none", *, depth: int = 1) -> AgentSpec:
    """A factory that a host might give."""
    if not isinstance(topic, str) or depth > 3:
        raise ValueError(f"depth must be at most 3; it is {depth}")
    return AgentSpec(name=f"about-{topic}", model=Scripted(["ok"]), system=f"Speak of {topic}.")


TEMPLATES = {
    "plain": Template(talker("one", name="plain")),
    "open": Template(
        asker("open", max_llm_calls=10), overrides={"system", "temperature", "max_llm_calls", "max_tool_calls"}
    ),
    "factory": Template(made, overrides={"topic", "depth"}),
}


class TestSpawn:
    async def test_an_agent(self, autojump_clock: Clock) -> None:
        """It is there, takes runs at once, and whoever follows all sees it from its first event."""
        async with open_hall(templates=TEMPLATES) as hall:
            client, other = await hall.connect(), await hall.connect("bob")
            await other.ask("agent.attach", agent="*")
            told = await client.ask("agent.spawn", spec={"template": "plain"}, idem="i")
            started = await client.ask("run.start", agent=told["agent"], prompt="go", idem="i")
            await other.read_until(other.saw(told["agent"], "run_finished"))

        assert {"agent": told["agent"], "name": "plain"} == told
        assert {"run", "seq"} == set(started)
        assert "agent_spawned" == other.types(told["agent"])[0]

    async def test_sent_again(self, autojump_clock: Clock) -> None:
        """The same agent, once, also before the first answer has come; another spec under that key is a conflict."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            params = {"spec": {"template": "plain", "name": "a"}, "idem": "i"}
            ids = [await client.send("agent.spawn", params) for _ in range(3)]
            told = [await client.reply(id) for id in ids]
            refused = await client.refusal("agent.spawn", spec={"template": "plain", "name": "b"}, idem="i")
            other = await (await hall.connect("bob")).ask("agent.spawn", **params)
            agents = [agent.name for agent in hall.runtime.agents]

        assert [told[0], {**told[0], "replayed": True}, {**told[0], "replayed": True}] == told
        assert "idem_conflict" == refused.word
        assert other["agent"] != told[0]["agent"]
        assert ["a", "a"] == agents

    async def test_it_outlives_its_connection(self, autojump_clock: Clock) -> None:
        """The command counts once it was heard, whatever becomes of the client."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            await client.send("agent.spawn", {"spec": {"template": "plain"}, "idem": "i"})
            await trio.testing.wait_all_tasks_blocked()
            await client.drop()
            await trio.sleep(1)
            again = await (await hall.connect()).ask("agent.spawn", spec={"template": "plain"}, idem="i")
            agents = [agent.id for agent in hall.runtime.agents]

        assert [again["agent"]] == agents
        assert again["replayed"]

    async def test_overrides(self, autojump_clock: Clock) -> None:
        """What the template permits is set; limits only lower."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            wishes = [
                {"system": "Be brief.", "temperature": 0.5, "max_llm_calls": 3},
                {"max_llm_calls": 300, "max_tool_calls": 7},
                {"max_llm_calls": None},
            ]
            for number, overrides in enumerate(wishes):
                await client.ask("agent.spawn", spec={"template": "open", "overrides": overrides}, idem=f"i{number}")
            specs = [agent.spec for agent in hall.runtime.agents]

        assert [("Be brief.", 0.5, 3), (None, None, 10), (None, None, 10)] == [
            (spec.system, spec.temperature, spec.max_llm_calls) for spec in specs
        ]
        assert [None, 7, None] == [spec.max_tool_calls for spec in specs]

    async def test_a_factory(self, autojump_clock: Clock) -> None:
        """It is given the overrides by keyword, and what it refuses is refused."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            told = await client.ask(
                "agent.spawn", spec={"template": "factory", "overrides": {"topic": "tea"}, "name": "mine"}, idem="i1"
            )
            refused = await client.refusal(
                "agent.spawn", spec={"template": "factory", "overrides": {"depth": 4}}, idem="i2"
            )
            (agent,) = hall.runtime.agents

        assert ("mine", "mine", "Speak of tea.") == (told["name"], agent.name, agent.spec.system)
        assert ("invalid_argument", "depth must be at most 3; it is 4") == (refused.word, refused.text)

    @pytest.mark.parametrize(
        ("spec", "word"),
        [
            ({"template": "unknown"}, "not_found"),
            ({"template": "plain", "overrides": {"system": "x"}}, "invalid_argument"),
            ({"template": "open", "overrides": {"tools": ["rm"]}}, "invalid_argument"),
            ({"template": "open", "overrides": {"model": "x"}}, "invalid_argument"),
            ({"template": "open", "overrides": {"temperature": "hot"}}, "invalid_argument"),
            ({"template": "open", "overrides": {"max_llm_calls": True}}, "invalid_argument"),
            ({"template": "open", "overrides": {"max_llm_calls": 0}}, "invalid_argument"),
            ({"template": "open", "overrides": {"system": 8193 * "x"}}, "too_large"),
            ({"template": "factory", "overrides": {"topic": 7}}, "invalid_argument"),
            ({"template": "plain", "name": "a b"}, "-32602"),
            ({"template": "plain", "overrides": []}, "-32602"),
            ({}, "-32602"),
        ],
    )
    async def test_what_is_refused(self, spec: dict[str, Any], word: str, autojump_clock: Clock) -> None:
        """No agent is made, and the key stays free."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            refused = await client.refusal("agent.spawn", spec=spec, idem="i")
            before = len(hall.runtime.agents)
            told = await client.ask("agent.spawn", spec={"template": "plain"}, idem="i")

        assert word == refused.word
        assert 0 == before
        assert "replayed" not in told

    async def test_a_name_that_one_may_not_see(self, autojump_clock: Clock) -> None:
        """Nobody makes an agent that is not there for him, nor one in another's name."""
        async with open_hall(templates=TEMPLATES) as hall:
            roles: frozenset[Role] = frozenset({"operate"})
            client = await hall.connect(Principal("bob", roles, sees=lambda name: name.startswith("bob-")))
            words = []
            for name in (None, "eve-1"):
                spec = {"template": "plain"} if name is None else {"template": "plain", "name": name}
                words.append((await client.refusal("agent.spawn", spec=spec, idem="i")).word)
            told = await client.ask("agent.spawn", spec={"template": "plain", "name": "bob-1"}, idem="i")

        assert ["forbidden", "forbidden"] == words
        assert "bob-1" == told["name"]

    async def test_who_is_told_of_the_templates(self, autojump_clock: Clock) -> None:
        """Those who may use them."""
        async with open_hall(templates=TEMPLATES) as hall:
            told = []
            for roles in (("operate",), ("observe",)):
                client = await hall.connect("eve", *roles, hello=False)
                told.append((await client.ask("hello"))["capabilities"])

        assert [{"templates": ["factory", "open", "plain"]}, {}] == told

    async def test_a_runtime_that_closes(self, autojump_clock: Clock) -> None:
        """It takes no new agents."""
        async with open_hall(templates=TEMPLATES) as hall:
            client = await hall.connect()
            await hall.runtime.stop(grace_seconds=1)
            refused = await client.refusal("agent.spawn", spec={"template": "plain"}, idem="i")

        assert "draining" == refused.word

    async def test_a_runtime_that_is_full(self, autojump_clock: Clock) -> None:
        """The client is told what is full, and may try again under the same key when there is room."""
        async with open_hall(templates=TEMPLATES, of_host=RuntimeLimits(max_agents=1)) as hall:
            client, there = await hall.connect(), await hall.spawn(talker("one"))
            refused = await client.refusal("agent.spawn", spec={"template": "plain"}, idem="i")
            there.stop()
            await there.stopped.wait()
            await trio.testing.wait_all_tasks_blocked()
            told = await client.ask("agent.spawn", spec={"template": "plain"}, idem="i")

        assert ("busy", True) == (refused.word, refused.data["retryable"])
        assert "max_agents" in refused.text
        assert "plain" == told["name"]


class TestTemplates:
    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({"spec": talker(), "overrides": {"tools"}}, "a client cannot set tools"),
            ({"spec": talker(), "overrides": {"name", "system"}}, "a client cannot set name"),
            ({"spec": talker(), "overrides": "system"}, "must be a set of names"),
            ({"spec": "an agent"}, "AgentSpec, or a function"),
        ],
    )
    def test_what_cannot_be_right(self, given: dict[str, Any], text: str) -> None:
        """It is refused when it is made: nothing that is code can be set by a client."""
        with pytest.raises(SpecError, match=text):
            Template(**given)

    def test_settings_are_settings(self) -> None:
        """All that a client may be let set is there to be set."""
        from actors.gateway._spawn import SETTINGS

        assert SETTINGS <= {field.name for field in attrs.fields(AgentSpec)}

    async def test_what_is_no_template(self, autojump_clock: Clock) -> None:
        """A gateway does not open with it."""
        async with open_runtime() as runtime:
            with pytest.raises(SpecError, match="'t' is"):
                async with open_gateway(runtime, port=0, templates={"t": talker()}):  # type: ignore[dict-item]
                    pass
