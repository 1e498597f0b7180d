"""`/metrics`: who may see it, what it says, and that a scraper can read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from actors import AgentSpec, tool
from actors.gateway import Access, Principal
from actors.gateway._metrics import Exposition, metrics_page
from actors.models.scripted import Scripted, call, reply
from protocol.errors import ModelError, RunError
from protocol.usage import Usage
from protocol.wire import CloseCode
from tests.actors.gateway.cast import asker
from tests.actors.gateway.raw import BEARER, TOKEN, a_client, a_gateway, head
from tests.actors.gateway.test_pace import fill, slow_client
from tests.actors.gateway.wired import Hall, open_hall

Clock = trio.testing.MockClock
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """What a scraper makes of a page. No sample stands twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


async def scrape(hall: Hall) -> Samples:
    return read(await metrics_page(hall.gateway))


def at(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


@given(st.dictionaries(st.sampled_from(["a", "b"]), st.text(st.characters(exclude_categories=["Cs"]))))
def test_whatever_a_label_holds_is_read_back(labels: dict[str, str]) -> None:
    """Quotes, backslashes and ends of lines included."""
    page = Exposition()
    page.add("x", "gauge", "Some text.", [(labels, 1.5)])
    (family,) = text_string_to_metric_families(page.text())

    assert [(labels, 1.5)] == [(sample.labels, sample.value) for sample in family.samples]
    assert ("x", "gauge", "Some text.") == (family.name, family.type, family.documentation)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((), 401),
        ((("Authorization", "Bearer another-token-0001"),), 401),
        ((("Authorization", "Bearer token-without-roles"),), 403),
        ((BEARER, ("Origin", "https://evil.example")), 403),
        ((BEARER,), 200),
    ],
)
async def test_whoever_may_observe_may_see_it(
    headers: tuple[tuple[str, str], ...], status: int, autojump_clock: Clock
) -> None:
    """It asks for a token, as the WebSocket does, and pages of other origins get nothing."""
    tokens = Access.of({TOKEN: Principal("tester"), "token-without-roles": Principal("nobody", frozenset())})
    async with a_gateway(tokens=tokens) as gateway, a_client(gateway) as client:
        answer = await client.ask(head("/metrics", *headers))

    assert status == answer.status
    assert (status == 200) == (b"onward_agents" in answer.body)


async def test_where_no_token_is_asked_for_none_is_asked_for(autojump_clock: Clock) -> None:
    """A gateway that is open to all of its machine shows it to them."""
    async with a_gateway(tokens=None, open_to_all=True) as gateway, a_client(gateway) as client:
        answer = await client.ask(head("/metrics"))

    assert (200, "text/plain; version=0.0.4; charset=utf-8") == (answer.status, answer.headers["content-type"])


async def test_head_and_post(autojump_clock: Clock) -> None:
    """HEAD has no body, and POST is not taken."""
    async with a_gateway() as gateway:
        async with a_client(gateway) as client:
            top = await client.ask(head("/metrics", BEARER, method="HEAD"))
        async with a_client(gateway) as client:
            refused = await client.ask(head("/metrics", BEARER, method="POST"))

    assert (200, b"", 405) == (top.status, top.body, refused.status)


async def test_agents_by_what_they_do(autojump_clock: Clock) -> None:
    """Idle, running, waiting for somebody; and what waits."""

    async def slow() -> None:
        await trio.sleep(50)

    async with open_hall() as hall:
        await hall.spawn(AgentSpec(name="idle", model=Scripted([])))
        busy = await hall.spawn(
            AgentSpec(name="busy", model=Scripted([reply("", call("slow")), "done"]), tools=[tool(slow)])
        )
        asks = await hall.spawn(asker())
        await busy.start("go")
        await asks.start("go")
        waiting = asks.begin("more", if_busy="queue")
        await trio.sleep(1)
        found = await scrape(hall)
        waiting.scope.cancel()

    states = [at(found, "onward_agents", state=state) for state in ("idle", "running", "waiting", "stopped")]
    assert [1, 1, 1, 0] == states
    assert (1, 1) == (at(found, "onward_open_requests"), at(found, "onward_queued_runs"))


async def test_what_has_been_done_is_counted(autojump_clock: Clock) -> None:
    """Runs by their end, model calls, tokens and tool calls; that the agents are gone changes nothing."""

    async def look() -> None:
        await trio.lowlevel.checkpoint()

    async def fails() -> None:
        raise ValueError("no")

    used = Usage(10, 5, None, 7, 3, complete=True)
    turns: list[Any] = [reply("", call("look"), call("fails"), call("nothing"), usage=used), "done", ModelError("no")]
    async with open_hall() as hall:
        agent = await hall.spawn(AgentSpec(name="ann", model=Scripted(turns), tools=[tool(look), tool(fails)]))
        for _ in range(2):
            run = await agent.start("go")
            await run.wait_ended()
        other = await hall.spawn(asker())
        run = await other.start("go")
        await trio.sleep(1)
        run.cancel()
        await run.wait_ended()
        for one in (agent, other):
            one.stop()
            await one.stopped.wait()
        await trio.testing.wait_all_tasks_blocked()
        found = await scrape(hall)

    assert {
        ("onward_runs_total", end, by): 1
        for end, by in [("finished", "model"), ("failed", "failure"), ("cancelled", "cancel")]
    } == {
        (name, dict(labels)["end"], dict(labels)["stopped_by"]): value
        for (name, labels), value in found.items()
        if name == "onward_runs_total"
    }
    assert (4, 1) == tuple(at(found, "onward_model_calls_total", outcome=word) for word in ("ok", "failed"))
    assert (10, 5, 7) == tuple(
        at(found, "onward_tokens_total", type=kind) for kind in ("uncached_input", "cache_read", "output")
    )
    assert None is at(found, "onward_tokens_total", type="cache_write")
    assert (2, 2) == tuple(at(found, "onward_tool_calls_total", status=status) for status in ("ok", "error"))
    assert 0 == at(found, "onward_agents", state="idle")


async def test_connections_and_why_they_ended(autojump_clock: Clock) -> None:
    """Those that are open; of the others, who closed them and with which code, a client's own only where it is a usual one."""
    async with open_hall() as hall:
        clients = [await hall.connect() for _ in range(5)]
        await clients[0].socket.aclose(1000)
        await clients[1].socket.aclose(4321)
        await clients[2].drop()
        hall.access.revoke("ada")
        await hall.connect("kim")
        await trio.sleep(30)
        found = await scrape(hall)
        closed = {
            dict(labels)["by"] + dict(labels)["code"]: value
            for (name, labels), value in found.items()
            if "closed" in name
        }

    assert 1 == at(found, "onward_gateway_connections")
    assert 5 == sum(closed.values())
    assert {"client1000", "clientother", f"server{CloseCode.UNAUTHENTICATED}"} <= set(closed)
    assert "client4321" not in closed
    assert 2 == closed[f"server{CloseCode.UNAUTHENTICATED}"]


async def test_clients_that_lag(autojump_clock: Clock) -> None:
    """Whoever has half of what may wait for him still to read."""
    async with open_hall() as hall:
        agent = await hall.spawn(AgentSpec(name="ann", model=Scripted([])))
        await slow_client(hall, agent)
        fill(agent, 400_000)
        before = await scrape(hall)
        fill(agent, 300_000)
        after = await scrape(hall)

    assert (0, 1) == tuple(at(found, "onward_gateway_lagging_clients") for found in (before, after))


async def test_plain_answers_by_status(autojump_clock: Clock) -> None:
    """Pages and refusals."""
    async with a_gateway() as gateway:
        for path in ("/healthz", "/healthz", "/nothing"):
            async with a_client(gateway) as client:
                await client.ask(head(path))
        found = read(await metrics_page(gateway))
    statuses = {dict(labels)["status"]: value for (name, labels), value in found.items() if "http" in name}

    assert {"200": 2, "404": 1} == statuses


async def test_the_journal(tmp_path: Path) -> None:
    """Commits and lag where there is one; without one nothing is said of it."""
    async with open_hall(journal=tmp_path / "onward.db") as hall:
        agent = await hall.spawn(AgentSpec(name="ann", model=Scripted(["done"])))
        async with agent.run("go") as run:
            await run.result()
        await hall.runtime.flushed()
        quiet = await scrape(hall)
        agent.stream.append(agent.stream.read(0)[1][0][0])
        await trio.lowlevel.checkpoint()
        late = await scrape(hall)
    async with open_hall() as hall:
        without = await scrape(hall)

    assert (at(quiet, "onward_journal_commits_total") or 0) >= 1
    assert 0 == at(quiet, "onward_journal_lag_seconds")
    assert (at(late, "onward_journal_lag_seconds") or 0) > 0
    assert [] == [name for name, _ in without if "journal" in name]


async def test_no_name_stands_on_the_page(autojump_clock: Clock) -> None:
    """Of no agent, tool, model or person: whoever sees some agents only learns of no other."""

    async def secret_tool() -> None:
        await trio.lowlevel.checkpoint()

    model = Scripted([reply("", call("secret_tool")), "done"], name="secret:model")
    async with open_hall() as hall:
        agent = await hall.spawn(AgentSpec(name="secret-agent", model=model, tools=[tool(secret_tool)]))
        await hall.connect("secret-person")
        run = await agent.start("secret prompt")
        await run.wait_ended()
        with pytest.raises(RunError):
            async with agent.run("secret prompt") as failing:
                await failing.result()
        text = await metrics_page(hall.gateway)

    assert "secret" not in text
