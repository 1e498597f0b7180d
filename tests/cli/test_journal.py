"""`onward journal`: what a file holds, while a runtime writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import AgentSpec, open_runtime, remote
from actors.cli import main
from actors.models.scripted import Scripted
from tests.support.scripts import Bench, calls_while_on


async def write(path: Path, fn: Any = None) -> None:
    """One agent that has answered, and one that waits at its gate; `fn` is called while the file is open."""
    async with open_runtime(journal=path) as runtime:
        idle = await runtime.spawn(AgentSpec(name="clerk", model=Scripted(["Good \x1b[31mmorning."])))
        async with idle.run("Greet me") as run:
            await run.result()
        spec = AgentSpec(
            name="auditor",
            model=Scripted(calls_while_on()),
            tools=[Bench().tool()],
            max_tool_iterations=1,
            continuation=remote(timeout_seconds=60),
        )
        agent = await runtime.spawn(spec)
        waiting = await agent.start("Audit")
        while not waiting.open_requests:  # noqa: ASYNC110  in real time, a moment
            await trio.sleep(0.001)
        await runtime.flushed()
        if fn is not None:
            await trio.to_thread.run_sync(fn)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "onward.db"
    trio.run(write, path)
    return path


def said(capfd: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    capfd.readouterr()
    status = main(["journal", *map(str, arguments)])
    printed = capfd.readouterr()

    assert (0, "") == (status, printed.err)
    return printed.out.splitlines()


def test_ls_lists_agents(journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What each does, and how much there is of it."""
    first, second = said(capfd, "ls", journal)

    assert "clerk  idle" in first
    assert "2 messages" in first
    assert "auditor  waiting" in second


def test_ls_as_json(journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An object a line."""
    found = [json.loads(line) for line in said(capfd, "ls", journal, "--json")]

    assert [("clerk", "idle", None), ("auditor", "waiting", found[1]["run"])] == [
        (one["name"], one["state"], one["run"]) for one in found
    ]
    assert found[1]["run"].startswith("run-")


def test_show_an_agent(journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its runs with their ends, its open questions with the time left, its conversation, harmless to a terminal."""
    clerk = said(capfd, "show", journal, "clerk")
    auditor = said(capfd, "show", journal, "auditor")

    assert any("Greet me" in line and "1 steps, stop, by model" in line for line in clerk)
    assert "assistant  Good \\x1b[31mmorning." == clerk[-1]
    assert any("open: continuation_required" in line and "s left" in line for line in auditor)
    assert any("unfinished" in line for line in auditor)


def test_replay_shows_what_was_shown(journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The text on stdout, what happened beside it on stderr; as JSON, event by event."""
    capfd.readouterr()
    main(["journal", "replay", str(journal), "clerk"])
    printed = capfd.readouterr()
    events = [json.loads(line) for line in said(capfd, "replay", journal, "auditor", "--json")]

    assert "Good \x1b[31mmorning.\n" == printed.out, "as `onward run` writes it to a pipe"
    assert "> Greet me" in printed.err
    assert list(range(1, len(events) + 1)) == [event["seq"] for event in events]
    assert "continuation_required" == events[-1]["type"]


def test_export_is_everything(journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of one agent or of all: itself first, then its events with their times."""
    lines = [json.loads(line) for line in said(capfd, "export", journal)]
    one = [json.loads(line) for line in said(capfd, "export", journal, "clerk")]

    assert ["clerk", "auditor"] == [line["name"] for line in lines if "messages" in line]
    assert lines[: len(one)] == one
    assert all(line["at"] > 1e9 for line in one[1:])
    assert "run_finished" == one[-1]["type"]


def test_it_may_be_looked_at_while_it_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody waits for whom looks."""
    seen: list[list[str]] = []
    path = tmp_path / "onward.db"
    trio.run(write, path, lambda: seen.append(said(capfd, "ls", path)))

    assert 2 == len(seen[0])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ls", "nowhere.db"], "there is no journal nowhere.db"),
        (["show", "FILE", "nobody"], "there is no agent 'nobody'; there are: clerk ("),
        (["show", "FILE"], "AGENT"),
        (["look", "FILE"], "invalid choice"),
    ],
)
def test_wrong_use(journal: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    """What was wrong, and what there is; status 2."""
    status = main(["journal", *[str(journal) if word == "FILE" else word for word in arguments]])
    printed = capfd.readouterr()

    assert (2, "") == (status, printed.out)
    assert told in printed.err
