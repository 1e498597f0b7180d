"""`onward attach` as a process, against `onward serve` as another: what people see and do, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import trio
import trio_websocket
import trustme

from ._command import COMMAND, PATIENCE_SECONDS, environment, onward, terminal
from ._served import ASK, serve, tree_of
from ._server import serving, status, streaming

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
TOKEN = "a-token-of-the-tests"
AUDIT = ("--tools", "files:.", "--max-tool-iterations", "1")
HANG = streaming({"content": "Thinking"}, hang=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of 40 files, ten of them in `tests`."""
    (tmp_path / "tree").mkdir()
    return tree_of(tmp_path / "tree")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A token file: one that may do all, and one that may look."""
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN} admin boss\nthe-token-of-a-guest observe guest\n")
    path.chmod(0o600)
    return path


def test_two_people(tree: Path) -> None:
    """Both see a run that one has started; whoever answers first decides, and the other is told who it was."""
    with (
        serve(*AUDIT, cwd=tree) as server,
        terminal("attach", server.url) as one,
        terminal("attach", server.url) as other,
    ):
        one.wait_for("> ")
        other.wait_for("> ")
        one.type("Audit this folder")
        one.wait_for("The model wants 2 more calls:")
        one.wait_for(ASK)
        other.wait_for("run: Audit this folder")
        other.wait_for(ASK)
        one.type("s skip tests")
        other.wait_for("approved by local: skip tests")
        other.wait_for("(2 in all). The model wants 8 more calls:")
        other.wait_for(ASK)
        one.wait_for(ASK)
        other.type("/waits")
        other.wait_for("agent: a decision: 1 of 1 tool iterations, 8 calls;")
        other.wait_for(ASK)
        other.type("x 1 2")
        one.wait_for("approved by local, 2 pending calls discarded")
        one.wait_for("discarded   count_lines(")
        one.wait_for(ASK)
        one.type("d that will do")
        other.wait_for("declined by local: that will do")
        for screen in (one, other):
            screen.wait_for("model calls |")
            screen.wait_for("> ")
        one.type("/quit")
        other.press(b"\x04")
        ends = one.end(), other.end()
        server.screen.press(b"\x03")
        ended = server.screen.end()

    assert (0, 0, 0) == (*ends, ended)
    assert "Partial audit of ." in one.seen
    assert "Partial audit of ." in other.seen
    assert "Skipped as asked: tests." in one.seen
    assert "Traceback" not in one.seen + other.seen + server.screen.seen


def test_steering_and_cancelling() -> None:
    """A run is given a message, refuses a second prompt, and is ended; between runs there is nothing to steer."""
    with (
        serving(HANG) as model,
        serve("--model", "openai:m", "--base-url", model.url) as server,
        terminal("attach", server.url) as screen,
    ):
        screen.wait_for("> ")
        screen.type("/steer look at the tests")
        screen.wait_for("agent has no run going on")
        screen.type("yes")
        screen.wait_for("Nothing waits for an answer.")
        screen.type("/cnacel")
        screen.wait_for("'/cnacel' is no command (/help lists them)")
        screen.type("/run yes")
        screen.wait_for("Thinking")
        screen.type("Another thing")
        screen.wait_for("agent has a run going on: /steer TEXT gives it a message")
        screen.type("/agents")
        screen.wait_for("agent: runs")
        screen.type("/steer look at the tests")
        screen.wait_for("steering waits for the next step: look at the tests")
        screen.type("/cancel now")
        screen.wait_for("cancelled: cancelled by local")
        screen.wait_for("> ")
        screen.press(b"\x03")
        code = screen.end()

    assert code == 130
    assert model.requests[0]["messages"] == [{"role": "user", "content": "yes"}]
    assert "steering was not read" in screen.seen


def test_who_comes_later_is_asked_what_waits(tree: Path) -> None:
    """With the seconds that are left, and with the calls as they run."""
    with serve(*AUDIT, cwd=tree) as server, terminal("attach", server.url, "--prompt", "Audit this folder") as one:
        one.wait_for(ASK)
        with terminal("attach", server.url, "--agent", "agent") as other:
            other.wait_for("agent: runs, 1 open question")
            other.wait_for("Without an answer within ")
            other.wait_for(ASK)
            other.type("d")
            other.wait_for("Partial audit of .")
            other.wait_for("> ")
        ends = one.end()

    assert ends == 0
    assert "Answered at the limit" in one.seen
    assert "discarded   list_dir(path=" in other.seen


@pytest.mark.parametrize(
    ("limit", "said", "code"),
    [("finalize", "Answered at the limit: 1 of 1", 0), ("stop", "Stopped without an answer", 3)],
)
def test_a_prompt_from_a_script(tree: Path, limit: str, said: str, code: int) -> None:
    """Without a terminal the run is shown to its end, and its end is the exit status."""
    with serve(*AUDIT, "--on-limit", limit, cwd=tree) as server:
        done = onward("attach", server.url, "--prompt", "Audit this folder")

    assert code == done.returncode
    assert said in done.stderr
    assert "Auditing ." in done.stdout
    assert ASK not in done.stderr


def test_events_for_programs(tree: Path) -> None:
    """With --json there is one event per line and nothing else; from the start, they are all there and in order."""
    with serve(*AUDIT, "--on-limit", "approve", cwd=tree) as server:
        first = onward("attach", server.url, "--prompt", "count lines in src/f01.txt", "--json")
        lines = subprocess.Popen(
            [*COMMAND, "attach", server.url, "--from", "start", "--json"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert lines.stdout is not None
        events = [json.loads(lines.stdout.readline())]
        while events[-1]["event"]["type"] != "run_finished":
            events.append(json.loads(lines.stdout.readline()))
        lines.send_signal(signal.SIGINT)
        lines.communicate(timeout=PATIENCE_SECONDS)

    seen = [line["event"]["type"] for line in map(json.loads, first.stdout.splitlines()) if "event" in line]
    types = [line["event"]["type"] for line in events]
    starts = [line["seq"] for line in events]
    assert (0, 130) == (first.returncode, lines.returncode)
    assert ("run_started", "run_finished") == (seen[0], seen[-1])
    assert types[-len(seen) :] == seen
    assert types[0] == "agent_spawned"
    assert starts[0] == 1
    assert all(event["agent"] == events[0]["agent"] for event in events)
    assert starts == [*range(1, len(starts) + 1)] or any("n" in line["event"] for line in events)


def test_several_agents(tmp_path: Path) -> None:
    """Who is meant has to be clear; each speaks under its name."""
    path = tmp_path / "agents.toml"
    path.write_text('[[agents]]\nname = "reader"\n\n[[agents]]\nname = "writer"\ntools = ["files:."]\n')
    with serve(str(path)) as server, terminal("attach", server.url) as screen:
        unclear = onward("attach", server.url, "--prompt", "Hello")
        unknown = onward("attach", server.url, "--agent", "raeder")
        screen.wait_for("> ")
        screen.type("list this folder")
        screen.wait_for("Which agent? /to NAME; there are: reader, writer")
        screen.type("/to writter")
        screen.wait_for("There is no agent 'writter'")
        screen.type("/to writer")
        screen.wait_for("Now writer is meant.")
        screen.type("list this folder")
        screen.wait_for("-- writer")
        screen.wait_for("agents.toml")
        screen.wait_for("> ")
        screen.type("/quit")
        code = screen.end()

    assert (0, 2, 2) == (code, unclear.returncode, unknown.returncode)
    assert "--prompt goes to one agent: --agent NAME says to which; there are: reader, writer" in unclear.stderr
    assert "--agent 'raeder' is not there; there are: reader, writer" in unknown.stderr
    assert "reader: rules-v1" in server.screen.seen


def test_tokens(tokens: Path, tmp_path: Path) -> None:
    """Only who shows a token gets in, and does what its roles say; no token is ever shown."""
    wrong = tmp_path / "wrong"
    wrong.write_text("some-other-token\n")
    with serve("--token-file", str(tokens)) as server:
        none = onward("attach", server.url)
        bad = onward("attach", server.url, "--token-file", str(wrong))
        good = onward("attach", server.url, "--token-file", str(tokens), "--prompt", "Hello")
        guest = onward(
            *("attach", server.url, "--token-env", "GUEST", "--prompt", "Hello"), env={"GUEST": "the-token-of-a-guest"}
        )

    said = none.stderr + bad.stderr + good.stderr + guest.stderr + server.screen.seen
    assert (1, 1, 0, 1) == (none.returncode, bad.returncode, good.returncode, guest.returncode)
    assert "answered 401" in none.stderr
    assert "It wants a token: --token-file FILE" in none.stderr
    assert "The server does not know this token." in bad.stderr
    assert "as boss (admin)" in good.stderr
    assert "run.start needs the role operate" in guest.stderr
    assert [word for word in (TOKEN, "some-other-token", "the-token-of-a-guest", "Traceback") if word in said] == []
    assert f"onward attach {server.url} --token-file {tokens}" in server.screen.seen


def test_who_may_not_decide_is_not_asked(tree: Path, tokens: Path) -> None:
    """It is shown what waits."""
    with (
        serve("--token-file", str(tokens), *AUDIT, cwd=tree) as server,
        terminal("attach", server.url, "--token-env", "GUEST", env={"GUEST": "the-token-of-a-guest"}) as guest,
        terminal("attach", server.url, "--token-file", str(tokens), "--prompt", "Audit this folder") as boss,
    ):
        boss.wait_for(ASK)
        guest.wait_for("waits for a decision: 1 of 1 tool iterations, 2 calls")
        boss.type("d")
        guest.wait_for("declined by boss")
        code = boss.end()

    assert code == 0
    assert ASK not in guest.seen


def test_tls(tmp_path: Path, tokens: Path) -> None:
    """A certificate of one's own has to be named; whoever speaks the wrong way is told so."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "cert.pem")
    )
    options = ("--tls-cert", str(tmp_path / "cert.pem"), "--token-file", str(tokens), "--host", "localhost")
    with serve(*options) as server, serve() as plain:
        token = ("--token-file", str(tokens))
        untrusted = onward("attach", server.url, *token)
        trusted = onward("attach", server.url, *token, "--tls-ca", str(tmp_path / "ca.pem"), "--prompt", "Hello")
        without = onward("attach", server.url.replace("https", "http"), *token)
        with_it = onward("attach", plain.url.replace("http", "https"))

    assert server.url.startswith("https://localhost:")
    assert (1, 0, 1, 1) == (untrusted.returncode, trusted.returncode, without.returncode, with_it.returncode)
    assert "--tls-ca FILE names a certificate that vouches for it" in untrusted.stderr
    assert "If the server speaks TLS, its address begins with https://" in without.stderr
    assert "Does the server speak TLS? Without it, its address begins with http://" in with_it.stderr
    assert "Traceback" not in untrusted.stderr + without.stderr + with_it.stderr


def test_addresses_that_are_wrong() -> None:
    """Nothing there, and something else there."""
    with serving(status(404, "nothing here")) as other:
        nothing = onward("attach", "http://127.0.0.1:9")
        else_ = onward("attach", other.url.removesuffix("/v1"))

    assert (1, 1) == (nothing.returncode, else_.returncode)
    assert "Connection refused\nIs the server running, and is that its address?" in nothing.stderr
    assert "answered 404: nothing here" in else_.stderr
    assert "Is that the address of an Onward gateway?" in else_.stderr


async def test_a_server_of_another_version() -> None:
    """It closes with 4526, and that is not tried again."""

    async def refuse(request: trio_websocket.WebSocketRequest) -> None:
        connection = await request.accept()
        await connection.aclose(4526, "offer the subprotocol onward.v2")

    async with trio.open_nursery() as nursery:
        server = await nursery.start(trio_websocket.serve_websocket, refuse, "127.0.0.1", 0, None)
        done = await trio.to_thread.run_sync(onward, "attach", f"http://127.0.0.1:{server.port}")
        nursery.cancel_scope.cancel()

    assert done.returncode == 1
    assert "4526" in done.stderr
    assert "The server speaks another version of the protocol than this client" in done.stderr


def test_a_server_that_comes_back(tokens: Path) -> None:
    """The agent of the same name is followed again, from its first event."""
    token = ("--token-file", str(tokens))
    with (
        serve("--tools", "files:.", *token) as server,
        terminal("attach", server.url, *token, "--agent", "agent") as it,
    ):
        it.wait_for("> ")
        server.screen.press(b"\x03")
        it.wait_for("The connection broke; it is tried again.")
        gone = server.screen.end()
        with serve("--tools", "files:.", *token, bind=str(server.port)):
            done = onward("attach", server.url, *token, "--prompt", "count lines in README.md")
            it.wait_for("agent agent is not there any more")
            it.wait_for("run: count lines in README.md")
            it.wait_for("README.md")
            it.wait_for("> ")
            it.type("/quit")
            code = it.end()

    assert (0, 0, 0) == (gone, done.returncode, code)
    assert it.seen.count("run: count lines in README.md") == 1


def test_ctrl_c_while_connecting() -> None:
    """A server that says nothing does not hold it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = subprocess.Popen(
            [*COMMAND, "attach", f"http://127.0.0.1:{silent.getsockname()[1]}"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        connection, _ = silent.accept()
        began = time.monotonic()
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=PATIENCE_SECONDS)
        connection.close()

    assert command.returncode == 130
    assert time.monotonic() - began < 5  # a connection is given ten seconds
    assert b"Traceback" not in err


def test_a_reader_that_leaves() -> None:
    """As `head` does: it ends quietly."""
    with serve("--tools", "files:.") as server:
        command = subprocess.Popen(
            [*COMMAND, "attach", server.url, "--json", "--prompt", "Audit this folder"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.readline()
        command.stdout.close()
        err = command.stderr.read()
        command.stderr.close()
        code = command.wait(PATIENCE_SECONDS)

    assert code == 1
    assert b"Traceback" not in err
