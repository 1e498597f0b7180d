"""SIGUSR1: the tasks of a process that serves, on its stderr."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from actors.cli._made_token import find_made_token

from ._command import COMMAND, PATIENCE_SECONDS, ROOT, environment, terminal
from ._served import ASK, serve

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
HANGS = """
import signal, os, time, trio
from actors.cli._task_tree import tree_on_signal

def hang():
    os.write(1, b"hangs")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass

async def main():
    with tree_on_signal(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever, name="the one that waits")
            await trio.lowlevel.checkpoint()
            hang()

trio.run(main)
"""


def test_a_server_shows_its_tasks_and_goes_on() -> None:
    """Agents and the gateway by name; no token; and it serves as before, to its end."""
    with serve() as server:
        token = find_made_token(server.port)
        server.screen.process.send_signal(signal.SIGUSR1)
        server.screen.wait_for("agent/host")
        server.screen.wait_for("Gateway.run")
        server.screen.process.send_signal(signal.SIGTERM)
        status = server.screen.end()

    assert token is not None
    assert token not in server.screen.seen
    assert 0 == status


def test_a_run_with_a_gateway_shows_its_tasks() -> None:
    """While it waits for a decision."""
    with terminal(
        *("run", "Audit this folder", "--tools", "files:.", "--max-tool-iterations", "1", "--serve", "0"), cwd=ROOT
    ) as own:
        own.wait_for(ASK)
        own.process.send_signal(signal.SIGUSR1)
        own.wait_for("arbiter")
        own.type("d")
        status = own.end()

    assert 0 == status


def test_a_loop_that_hangs_is_shown_too() -> None:
    """The line that holds everybody up stands on top."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert b"hangs" == process.stdout.read(5)
    process.send_signal(signal.SIGUSR1)
    lines = [process.stderr.readline().decode()]
    while lines[-1] and "the one that waits" not in lines[-1]:
        lines.append(process.stderr.readline().decode())
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)

    assert "tasks" in lines[0]
    assert lines[1].startswith("running now: <string>:")
    assert lines[1].endswith(" hang\n")
    assert "the one that waits" in lines[-1]


def test_a_server_logs_json_where_there_is_no_terminal() -> None:
    """Behind what it says to people at its start, each line is an object: those of a connection have its id."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--bind", "0"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    address = ""
    for line in process.stderr:
        if line.startswith("Serving at "):
            address = line.split()[-1]
        if "Ctrl-C" in line:
            break
    done = subprocess.run(
        [*COMMAND, "attach", address, "--prompt", "hello"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=PATIENCE_SECONDS)[1]
    lines = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    said = [line["event"] for line in lines]

    assert 0 == done.returncode, done.stderr
    assert ["connection opened", "run started", "run ended", "connection closed"] == said
    assert lines[0]["connection"] == lines[3]["connection"]
    assert lines[1]["run"] == lines[2]["run"]
    assert "hello" not in rest
