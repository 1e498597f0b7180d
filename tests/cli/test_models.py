"""`onward models`: what is found, what is said of it, and what is kept to oneself."""

from __future__ import annotations

import json
import shlex
import socket
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler
from typing import Any

import attrs
import pytest

from actors.cli import main
from actors.cli._models import lines_of
from actors.cli._style import PLAIN
from actors.cli._survey import MAX_NAMES, FoundModel, KeyState, LocalServer, Survey, find_local, survey
from actors.models.named import KINDS, Kind
from tests.cli._command import onward
from tests.cli._server import Answer, Body, Server, serving, status

KEY = "sk-very-secret"
OLLAMA = KINDS["ollama"]


def models(*entries: Any) -> Answer:
    """A list of models."""
    return status(200, json.dumps({"object": "list", "data": list(entries)}))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """No keys, and no server at the usual addresses: they are given a port that nothing listens on."""
    for kind in KINDS.values():
        for name in kind.key_variables:
            monkeypatch.delenv(name, raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        kinds = {name: attrs.evolve(kind, base_url=address) if kind.is_local else kind for name, kind in KINDS.items()}
        monkeypatch.setattr("actors.cli._survey.KINDS", kinds)
        yield


async def found_at(answer: Answer, kind: Kind = OLLAMA) -> LocalServer:
    with serving(answer) as server:
        found = await find_local(kind, base_url=server.url)
        return attrs.evolve(found, base_url="URL") if found.base_url == server.url else found


@pytest.mark.slow
async def test_models_of_a_server_with_their_commands() -> None:
    """Each can be typed as it stands; the address is said where it is not the usual one."""
    with serving(models({"id": "llama3.2:1b"}, {"id": "two words; rm -rf"})) as server:
        found = await find_local(OLLAMA, base_url=server.url)
        usual = await find_local(attrs.evolve(OLLAMA, base_url=server.url))
    commands = [shlex.split(model.command) for model in found.models]

    assert ("running", "ollama", "Ollama", server.url) == (found.state, found.kind, found.title, found.base_url)
    assert ["llama3.2:1b", "two words; rm -rf"] == [model.name for model in found.models]
    assert ["onward", "run", "PROMPT", "--model", "ollama:llama3.2:1b", "--base-url", server.url] == commands[0]
    assert "ollama:two words; rm -rf" == commands[1][4]
    assert "onward run PROMPT --model ollama:llama3.2:1b" == usual.models[0].command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "kind"), [("vllm", "vllm"), ("llamacpp", "llama.cpp"), ("library", "ollama"), ("", "ollama")]
)
async def test_a_server_that_names_itself_is_believed(owner: str, kind: str) -> None:
    """Rather than its port."""
    found = await found_at(models({"id": "m", "owned_by": owner}))

    assert kind == found.kind
    assert f"--model {kind}:m --base-url" in found.models[0].command


@pytest.mark.slow
async def test_names_are_bounded_and_harmless() -> None:
    """What could drive a terminal, cannot be typed, or is too long or one too many is counted, not shown."""
    bad = ["a\x1b[2J", "b\nc", "d\u202e", " e", "f" * 201, "\ud800"]
    found = await found_at(models(*[{"id": name} for name in bad], *[{"id": f"m{n}"} for n in range(MAX_NAMES + 5)]))

    assert [f"m{n}" for n in range(MAX_NAMES)] == [model.name for model in found.models]
    assert len(bad) + 5 == found.more


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (status(401, "{}"), "wants_key"),
        (status(404, "Not found"), "other"),
        (status(500, ""), "other"),
        (status(200, "<html>"), "other"),
        (status(200, '{"data": 3}'), "other"),
        (models(), "running"),
    ],
)
async def test_what_answers_is_told_apart(answer: Answer, state: str) -> None:
    """Nothing that listens there makes the command fail."""
    found = await found_at(answer)

    assert (state, ()) == (found.state, found.models)


@pytest.mark.slow
async def test_a_server_that_does_not_answer_costs_two_seconds_at_most() -> None:
    """Silence is not waited for."""

    def never(_handler: BaseHTTPRequestHandler, server: Server, _body: Body) -> None:
        server.release.wait(20)

    with serving(never) as server:
        found = await find_local(OLLAMA, base_url=server.url)

    assert "silent" == found.state


@pytest.mark.usefixtures("here")
async def test_keys_are_found_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is told, never its value; a second name of a key counts; nothing is absent without a word."""
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("DEEPSEEK_API_KEY", " ")
    found = await survey()
    keys = {key.kind: key.found for key in found.keys}

    assert ("GOOGLE_API_KEY", None, None) == (keys["gemini"], keys["deepseek"], keys["openai"])
    assert {name for name, kind in KINDS.items() if not kind.is_local} == keys.keys()
    assert {"absent"} == {server.state for server in found.local}
    assert KEY not in repr(found)


@pytest.mark.usefixtures("here")
def test_the_command_shows_it(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """As lines, all of it on stdout, with status 0 and no secret."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    code = main(["models"])
    out, err = capfd.readouterr()

    assert (0, "") == (code, err)
    assert "ANTHROPIC_API_KEY is set: onward run PROMPT --model anthropic:NAME\n" in out
    assert "no key in GEMINI_API_KEY or GOOGLE_API_KEY\n" in out
    assert 5 == out.count("nothing listens\n")
    assert KEY not in out


@pytest.mark.usefixtures("here")
def test_the_command_writes_json(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """One object on one line, with the same."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    code = main(["models", "--json"])
    out, err = capfd.readouterr()
    told = json.loads(out)
    kinds = {kind["kind"]: kind for kind in told["kinds"]}

    assert (0, "", 1) == (code, err, out.count("\n"))
    assert {"kinds", "local"} == told.keys()
    assert {
        "kind": "openai",
        "title": "OpenAI, Chat Completions",
        "variables": ["OPENAI_API_KEY"],
        "found": "OPENAI_API_KEY",
        "command": "onward run PROMPT --model openai:NAME",
    } == kinds["openai"]
    assert {"kind", "title", "base_url", "state", "models", "more"} == told["local"][0].keys()
    assert KEY not in out


def test_lines() -> None:
    """Models stand under their server, ten at most; the rest is counted."""
    listed = tuple([FoundModel(name=f"m{n}", command=f"use m{n}") for n in range(12)])
    key = KeyState(kind="openai", title="OpenAI", variables=("OPENAI_API_KEY",), found=None, command="")
    server = LocalServer(kind="vllm", title="vLLM", base_url="http://a/v1", state="running", models=listed, more=3)
    shut = LocalServer(kind="ollama", title="Ollama", base_url="http://b/v1", state="wants_key")
    lines = lines_of(Survey(keys=(key,), local=(server, shut)), PLAIN)

    assert "  vllm    http://a/v1  running" in lines
    assert [f"    use m{n}" for n in range(10)] == [line for line in lines if line.startswith("    use")]
    assert "    ... and 5 more" in lines
    assert any(line.startswith("  ollama  http://b/v1  answers, but wants its key: --api-key-env") for line in lines)
    assert "  openai  OpenAI; no key in OPENAI_API_KEY" in lines


@pytest.mark.peer
@pytest.mark.slow
def test_the_process() -> None:
    """It ends well wherever it runs, whatever listens there."""
    done = onward("models", "--json")

    assert (0, "") == (done.returncode, done.stderr)
    assert json.loads(done.stdout)["kinds"]
