"""`onward run --serve`: a run that others follow, and a question that is put to all."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from actors.cli import main

from ._command import COMMAND, PATIENCE_SECONDS, environment, terminal
from ._served import ASK, LISTENING, address_of, tree_of

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
AUDIT = ("run", "Audit this folder", "--tools", "files:.", "--max-tool-iterations", "1", "--serve", "0")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of 40 files, ten of them in `tests`."""
    return tree_of(tmp_path)


def test_whoever_is_first_decides(tree: Path) -> None:
    """The question stands on both terminals; the answer of one takes it off the other, which is told."""
    with terminal(*AUDIT, cwd=tree) as own:
        url = address_of(own)
        own.wait_for(ASK)
        with terminal("attach", url) as other:
            other.wait_for("agent: runs, 1 open question")
            other.wait_for(ASK)
            other.type("s skip tests")
            own.wait_for("approved by local: skip tests")
            own.wait_for("(2 in all). The model wants 8 more calls:")
            own.wait_for(ASK)
            other.wait_for(ASK)
            own.type("d that will do")
            own.wait_for("declined: that will do")
            other.wait_for("declined: that will do")
            other.wait_for("the agent has stopped: its run is over")
            ends = own.end(), other.end()

    assert (0, 0) == ends
    assert own.seen.count(ASK) == other.seen.count(ASK) == 2
    for screen in (own, other):
        assert "Partial audit of ." in screen.seen
        assert "Skipped as asked: tests." in screen.seen
        assert "Traceback" not in screen.seen
    assert "The server has ended." in other.seen


def test_without_a_terminal_clients_decide(tree: Path) -> None:
    """It is said that the run waits for them; the answer on stdout is as without --serve."""
    run = subprocess.Popen(
        [*COMMAND, *AUDIT],
        cwd=tree,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    said = ""
    while "waits for a decision" not in said:
        said += run.stderr.readline()
    found = LISTENING.search(said)
    assert found is not None
    with terminal("attach", found[1]) as screen:
        screen.wait_for(ASK)
        screen.type("d")
        screen.wait_for("the agent has stopped")
        code = screen.end()
    out, err = run.communicate(timeout=PATIENCE_SECONDS)

    assert (0, 0) == (code, run.returncode)
    assert "waits for a decision: 1 of 1 tool iterations, 2 calls; 600 s left" in said
    assert "declined by local" in err
    assert "Partial audit of ." in out
    assert "There is no terminal" not in said + err


def test_a_port_that_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is run, and it is said why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code = main(["run", "Hello", "--serve", str(taken.getsockname()[1])])
    out, err = capfd.readouterr()

    assert (2, "") == (code, out)
    assert "Address already in use" in err
    assert "Traceback" not in err
