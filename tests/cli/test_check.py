"""`onward check`: what is wrong with a host file, and what it would serve."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import trio

from actors.cli import _listening_options, _settings, main
from actors.hostfile import _agents, _gateway, host_file_schema

from ._served import serve

pytestmark = pytest.mark.usefixtures("runtime_folder")
WHOLE = """
[runtime]
journal = "onward.db"
[budgets.team]
max_llm_calls = 2000
[[agents]]
name = "auditor"
tools = ["files:.", "own:add"]
budget = "team"
limits = { max_tool_iterations = 3, wall_clock_seconds = 2.5 }
[[agents]]
name = "helper"
gate = "approve"
spawn = false
[templates.more]
agent = "auditor"
overrides = ["system", "max_tokens"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder with a module of one's own, which leaves a mark when it is run; it is found in this test alone."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("own", None)
    (tmp_path / "own.py").write_text(
        "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
        "async def add(a: int) -> int:\n    '''Add.'''\n    return a\n"
    )
    yield tmp_path
    sys.modules.pop("own", None)


def checked(folder: Path, text: str, *options: str) -> int:
    """The exit status for a text."""
    path = folder / "host.toml"
    path.write_text(text)
    return main(["check", str(path), *options])


def test_what_would_be_served(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A row for each agent, then what they share, where clients come in, and what is odd; status 0."""
    status = checked(folder, WHOLE)
    out, err = capfd.readouterr()

    assert (0, "") == (status, err)
    assert [
        "auditor",
        "rules-v1",
        "list_dir, read_text, count_lines, search, 1 more",
        "3 rounds, 2.5 s; budget team",
        "ask",
    ] == [cell.strip() for cell in out.splitlines()[1].split("  ") if cell]
    assert ["helper", "rules-v1", "-", "20 rounds", "always; not spawned"] == [
        cell.strip() for cell in out.splitlines()[2].split("  ") if cell
    ]
    assert [
        "budget team: 2,000 model calls",
        "template more: clients may set max_tokens, system",
        "gateway http://127.0.0.1:8765, for whoever starts it",
        f"journal {folder}/onward.db",
        f"note: {folder}/host.toml, line 14: agents[1].spawn: no agent and no template uses it, so that it never comes to be",
    ] == out.splitlines()[3:]


def test_nothing_is_started(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No journal is made, and a port that is taken does not matter; own tools are imported, unless that is not wanted."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = WHOLE + f"[gateway]\nbind = '{taken.getsockname()[1]}'\n"
        without = checked(folder, text, "--no-import"), (folder / "ran").exists()
        status = checked(folder, text), (folder / "ran").exists()

    assert ((0, False), (0, True)) == (without, status)
    assert not (folder / "onward.db").exists()
    assert "own:add" not in capfd.readouterr().err


def test_what_is_wrong(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All of it on stderr, each with file, line and key; status 2."""
    status = checked(folder, "[[agents]]\nname = 'a'\ngate = 'aks'\nmodle = 'x'\n")
    out, err = capfd.readouterr()
    path = folder / "host.toml"

    assert (2, "") == (status, out)
    assert err.startswith(f"onward: {path}, line 3: agents[0].gate: must be one of ask, approve,")
    assert err.splitlines()[1].startswith(
        f"{path}, line 4: agents[0].modle: is unknown (did you mean model?); there are:"
    )


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They are shown as what they are."""
    status = checked(folder, '[[agents]]\nname = "a"\nsystem_file = "\\u001b[31m"\n')

    assert 2 == status
    assert "\x1b" not in capfd.readouterr().err


def test_as_json(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One object, right or wrong, with the same status as without."""
    right = checked(folder, WHOLE, "--json")
    served: dict[str, Any] = json.loads(capfd.readouterr().out)
    wrong = checked(folder, "[[agents]]\nname = 3\n", "--json")
    refused: dict[str, Any] = json.loads(capfd.readouterr().out)

    assert (0, True, []) == (right, served["ok"], served["faults"])
    assert {
        "name": "auditor",
        "model": "rules-v1",
        "tools": ["list_dir", "read_text", "count_lines", "search", "add"],
        "approval": [],
        "limits": {"max_tool_iterations": 3, "wall_clock_seconds": 2.5},
        "gate": "ask",
        "budget": "team",
        "spawned": True,
    } == served["agents"][0]
    assert {"more": ["max_tokens", "system"]} == served["templates"]
    assert {"team": {"max_llm_calls": 2000}} == served["budgets"]
    assert {"host": "127.0.0.1", "port": 8765, "tls": False} == served["gateway"]
    assert {"journal": "onward.db"} == {key: Path(value).name for key, value in served["runtime"].items()}
    assert [14] == [warning["line"] for warning in served["warnings"]]
    assert (2, False) == (wrong, refused["ok"])
    assert [(2, "agents[0].name")] == [(fault["line"], fault["key"]) for fault in refused["faults"]]


def test_the_schema(capfd: pytest.CaptureFixture[str]) -> None:
    """For editors: written to stdout, and without a file."""
    status = main(["check", "--schema"])
    out = capfd.readouterr().out

    assert (0, host_file_schema()) == (status, json.loads(out))
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


@pytest.mark.parametrize("argv", [("check",), ("check", "x.toml", "--schema")])
def test_wrong_use(argv: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    """One of the two."""
    assert 2 == main(argv)
    assert "give a host file, or --schema" in capfd.readouterr().err


@pytest.mark.peer
@pytest.mark.slow
async def test_a_host_file_is_served(folder: Path) -> None:
    """Agents, templates and what each may see are there for clients; its journal is kept; options of the command win."""
    (folder / "tokens").write_text("a-token-of-the-tests operate,decide anna\nanother-token-of-a-guest observe guest\n")
    (folder / "tokens").chmod(0o600)
    (folder / "host.toml").write_text(
        WHOLE + "[gateway]\nbind = '127.0.0.1:1'\ntoken_file = 'tokens'\nsees = { guest = ['auditor'] }\n"
    )
    with serve(str(folder / "host.toml")) as server:
        from actors.client import connect

        async with connect(server.url, token="a-token-of-the-tests") as anna:
            spawned = await anna.spawn("more", name="another")
            seen = sorted([agent.name for agent in await anna.agents()])
        async with connect(server.url, token="another-token-of-a-guest") as guest:
            theirs = [agent.name for agent in await guest.agents()]
        server.screen.press(b"\x03")
        status = await trio.to_thread.run_sync(server.screen.end)

    assert ("another", ["another", "auditor"], ["auditor"]) == (spawned.name, seen, theirs)
    assert (0, True) == (status, (folder / "onward.db").exists())
    assert "Kept in " in server.screen.seen
    assert "agents[1].spawn: no agent and no template uses it" in server.screen.seen.replace("\r\n", "")


def test_defaults_are_those_of_the_command_line() -> None:
    """An agent that only has a name is what `onward serve` hosts without a file, at the same address."""
    assert (_settings.DEFAULT_MAX_TOOL_ITERATIONS, _listening_options.DEFAULT_PORT) == (
        _agents.DEFAULT_MAX_TOOL_ITERATIONS,
        _gateway.DEFAULT_PORT,
    )
