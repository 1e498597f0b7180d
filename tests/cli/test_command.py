"""The command from its arguments to its exit status, without a terminal: in this process where that tells as much."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Protocol

import attrs
import pytest

from actors.cli import main
from protocol.codec import decode_event
from protocol.events import ContinuationResolved, RunFailed, RunFinished

from ._command import COMMAND, PATIENCE_SECONDS, environment, onward
from ._server import Answer, call_delta, serving, status, streaming

AUDIT = ("run", "Audit this folder", "--tools", "files:.")
MODEL = ("--model", "openai:some-model", "--base-url")


@attrs.frozen
class Done:
    """What a run of the command came to."""

    returncode: int
    stdout: str
    stderr: str


class Here(Protocol):
    """Runs the command in this process."""

    def __call__(self, *argv: str, cwd: Path | None = None, key: str | None = None) -> Done: ...


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command in this process, its descriptors captured; it starts no quicker, but pays for no imports."""

    def run(*argv: str, cwd: Path | None = None, key: str | None = None) -> Done:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        if key is not None:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        if cwd is not None:
            monkeypatch.chdir(cwd)
        capfd.readouterr()
        return Done(main(argv), *capfd.readouterr())

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of 200 files, three of which have lines with a mark."""
    for number in range(200):
        folder = tmp_path / f"d{number % 7}"
        folder.mkdir(exist_ok=True)
        mark = "FIXME: x\n" if number in {3, 50, 199} else ""
        (folder / f"f{number}.txt").write_text(mark + "line\n" * number)
    return tmp_path


def events_of(stdout: str) -> tuple[list[Any], dict[str, Any]]:
    """The lines as events of the protocol, with their numbers in order; and the result beside the last one."""
    lines = [json.loads(line) for line in stdout.splitlines()]
    numbers = [line.pop("seq") for line in lines]
    result = lines[-1].pop("result")

    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return [decode_event(json.dumps(line)) for line in lines], result


@pytest.mark.peer
@pytest.mark.slow
def test_audit_over_200_files(tree: Path) -> None:
    """The audit hits the limit again and again, finishes when it may go on, and counts what wc and grep count."""
    done = onward(*AUDIT, "--max-tool-iterations", "3", "--on-limit", "approve", cwd=tree)

    wc = subprocess.run("cat d*/*.txt | wc -lc", shell=True, cwd=tree, capture_output=True, text=True, check=True)
    lines, size = map(int, wc.stdout.split())
    assert (done.returncode, done.stderr.count("limit: 3 of 3")) == (0, 8)
    assert f"Audit of .: 200 files in 8 folders; {lines:,} lines, {size:,} bytes." in done.stdout
    assert "Lines with TODO or FIXME: 3\n" in done.stdout
    assert "200 lines        1,004 bytes  d3/f199.txt" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("on_limit", "code", "said"),
    [
        ("ask", 0, "There is no terminal to ask on: declined."),
        ("decline", 0, "declined"),
        ("finalize", 0, "last model call, with tools off"),
        ("stop", 3, "Stopped without an answer: 2 of 2 tool iterations used."),
    ],
)
def test_what_happens_at_the_limit(here: Here, tree: Path, on_limit: str, code: int, said: str) -> None:
    """Each way of meeting the limit ends as it says; without a terminal, asking is declining."""
    done = here(*AUDIT, "--max-tool-iterations", "2", "--on-limit", on_limit, cwd=tree)

    assert code == done.returncode
    assert said in done.stderr
    assert ("Partial audit" in done.stdout) is (code == 0)
    assert "2 tool iterations" in done.stderr.splitlines()[-1]


def test_json_lines(here: Here, tree: Path) -> None:
    """With --json there is one event of the protocol per line and nothing else; the result stands beside the last."""
    done = here(*AUDIT, "--max-tool-iterations", "2", "--json", cwd=tree)

    events, result = events_of(done.stdout)
    summary = events[-1].summary
    resolved = [event for event in events if isinstance(event, ContinuationResolved)]
    assert done.returncode == 0
    assert events[0].type == "run_started"
    assert isinstance(events[-1], RunFinished)
    assert [event.outcome for event in resolved] == ["declined"]
    assert summary.text == result["text"]
    assert result["answered"]
    assert len(result["messages"]) == 9
    assert len({event.run for event in events}) == 1
    assert "no terminal" in done.stderr


def test_json_of_a_failure(here: Here) -> None:
    """A failed run ends in `run_failed`, with its error and what it had come to."""
    with serving(
        streaming({"content": "Let me see."}, call_delta("nothing", {})), status(500, "out of order")
    ) as server:
        done = here("run", "Hello", *MODEL, server.url, "--json")

    events, result = events_of(done.stdout)
    assert done.returncode == 1
    assert isinstance(events[-1], RunFailed)
    assert events[-1].error.code == "model_server_error"
    assert result["text"] == "Let me see."
    assert result["stopped_by"] == "failure"
    assert "500" in done.stderr


def test_answer_on_stdout_and_the_rest_on_stderr(here: Here) -> None:
    """What is piped on is the answer alone."""
    with serving(streaming({"content": "Forty"}, {"content": "-two."})) as server:
        done = here("run", "Hello", *MODEL, server.url)

    assert (done.returncode, done.stdout) == (0, "Forty-two.\n")
    assert done.stderr.splitlines()[0] == "Model: openai:some-model"
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(401, '{"error": {"message": "bad key sk-secret-1"}}'), "401"),
        (status(429, "slow down"), "429"),
        (status(500, "oops"), "500"),
        (status(200, "<html>hello</html>", "text/html"), "OpenAI-compatible"),
        (streaming({"content": "cut of"}, finish="length"), "ended with 'length'"),
        (streaming({"content": "x"}, finish="content_filter"), "ended with 'content_filter'"),
        (streaming(), "ended with 'empty'"),
    ],
)
def test_failures_of_a_server(here: Here, answer: Answer, said: str) -> None:
    """What a server does wrong is said in words, with status 1, no traceback and no secret."""
    with serving(answer) as server:
        done = here("run", "Hello", *MODEL, server.url, key="sk-secret-1")

    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "sk-secret-1" not in done.stderr + done.stdout
    assert "cost unknown" in done.stderr


def test_dead_server(here: Here) -> None:
    """A server that is not there: which address, and what to try."""
    done = here("run", "Hello", *MODEL, "http://127.0.0.1:9/v1")

    assert done.returncode == 1
    assert "http://127.0.0.1:9/v1" in done.stderr
    assert "Start the server, or correct --base-url." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("run", ""), "the prompt is empty"),
        (("run", "x", "--model", "nope"), "there is no model 'nope'"),
        (("run", "x", "--model", "openai:gpt"), "needs a key in OPENAI_API_KEY"),
        (("run", "x", *MODEL, "127.0.0.1:80"), "base_url must be an http or https address"),
        (("run", "x", "--max-llm-calls", "0"), "--max-llm-calls must be 1 or more"),
    ],
)
def test_wrong_use(here: Here, argv: tuple[str, ...], said: str) -> None:
    """Wrong use is told on stderr, with status 2 and nothing on stdout."""
    done = here(*argv)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("onward: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_limits_that_do_not_go_together_are_noted(here: Here, tree: Path) -> None:
    """Limits that leave no call for the gate are used as they are, and it is said why it will not ask."""
    done = here(*AUDIT, "--max-tool-iterations", "3", "--max-llm-calls", "3", cwd=tree)

    assert done.returncode == 3
    assert "note: the gate cannot be asked" in done.stderr
    assert "3 of 3 model calls" in done.stderr


@pytest.mark.peer
@pytest.mark.slow
def test_help_is_quick() -> None:
    """Help imports nothing that only a run needs."""
    loaded = subprocess.run(
        [COMMAND[0], "-X", "importtime", "-m", "actors.cli", "--help"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr

    modules = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}
    heavy = {
        "httpx",
        "trio_websocket",
        "actors.models.planner",
        "actors.models.openai",
        "actors.gateway",
        "actors.client",
    }
    assert modules & heavy == set()
    assert "actors.cli" in modules


@pytest.mark.peer
@pytest.mark.slow
def test_reader_that_leaves() -> None:
    """A reader that has seen enough, as `head` has, ends the command quietly."""
    command = subprocess.Popen(
        [*COMMAND, *AUDIT, "--on-limit", "approve", "--json"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert command.stdout is not None
    assert command.stderr is not None
    first = command.stdout.readline()
    command.stdout.close()
    said = command.stderr.read().decode()
    command.stderr.close()

    assert command.wait(PATIENCE_SECONDS) == 1
    assert b"run_started" in first
    assert "Traceback" not in said
    assert "Broken" not in said


@pytest.mark.peer
@pytest.mark.slow
def test_a_full_disk_is_told() -> None:
    """Output that cannot be written ends the run, in words."""
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} run list --tools files:. >/dev/full"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "onward: the output cannot be written: No space left on device\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.parametrize(("closed", "status"), [(">&-", 0), ("2>&-", 0), ("<&-", 0), ("--model=x 2>&-", 2)])
def test_closed_streams(closed: str, status: int) -> None:
    """A standard stream that is closed is a stream to nowhere, and never one of the process's own files."""
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} run list --tools files:. {closed}"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert ("pyproject.toml" in done.stdout) is (closed in {"2>&-", "<&-"})


def interrupted(times: int) -> tuple[int, str, str]:
    """A run whose model hangs in the middle of its answer, interrupted; status, stdout, stderr."""
    with serving(streaming({"content": "Thinking"}, hang=True)) as server:
        command = subprocess.Popen(
            [*COMMAND, "run", "Hello", *MODEL, server.url],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert command.stdout is not None
        assert command.stderr is not None
        os.read(command.stdout.fileno(), 100)
        command.send_signal(signal.SIGINT)
        said = command.stderr.readline() + command.stderr.readline()
        if times == 2:
            command.send_signal(signal.SIGINT)
        else:
            server.release.set()
        out, err = command.communicate(timeout=PATIENCE_SECONDS)
    return command.returncode, out.decode(), (said + err).decode()


@pytest.mark.peer
@pytest.mark.slow
def test_interrupted_once() -> None:
    """Ctrl-C lets the step in hand finish; one that is the answer is an answer."""
    code, _, said = interrupted(1)

    assert "Ctrl-C: the run ends after the step in hand. Once more: at once." in said
    assert code == 0


@pytest.mark.peer
@pytest.mark.slow
def test_interrupted_twice() -> None:
    """The second Ctrl-C ends it at once, with status 130 and no traceback."""
    began = time.monotonic()
    code, _, said = interrupted(2)

    assert code == 130
    assert "Cancelled: interrupted twice by Ctrl-C." in said
    assert "Traceback" not in said
    assert time.monotonic() - began < PATIENCE_SECONDS


@pytest.mark.peer
@pytest.mark.slow
def test_interrupted_between_steps(tree: Path) -> None:
    """Ctrl-C during a step that is no answer ends the run behind it, with status 130."""
    hanging = streaming(call_delta("list_dir", {"path": "."}), hang=True, finish="tool_calls")
    with serving(hanging, streaming({"content": "never asked for"})) as server:
        command = subprocess.Popen(
            [*COMMAND, "run", "Hello", *MODEL, server.url, "--tools", f"files:{tree}", "--json"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert server.asked.wait(PATIENCE_SECONDS)
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        said = command.stderr.readline() + command.stderr.readline()
        server.release.set()
        out, err = command.communicate(timeout=PATIENCE_SECONDS)

    events, result = events_of(out.decode())
    assert command.returncode == 130
    assert len(server.requests) == 1
    assert events[-1].summary.stopped_by == "caller"
    assert result["counters"]["tool_calls"] == 1
    assert b"Ctrl-C" in said
    assert b"Stopped: interrupted by Ctrl-C." in err
