"""`onward serve`: who gets in, what is said, and how it ends."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from subprocess import CompletedProcess

import attrs
import pytest
import trio
import trustme

from actors import open_runtime
from actors.cli import main
from actors.cli._arguments import parse
from actors.cli._listening_options import Listening
from actors.cli._made_token import find_made_token, kept
from actors.cli._serve_arguments import ServeArguments
from actors.cli._settings import AgentSettings
from actors.cli._usage import UsageError

from ._command import onward

pytestmark = pytest.mark.usefixtures("runtime_folder")
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A token file."""
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{TOKEN} operate,decide tester\n")
    path.chmod(0o600)
    return path


def served(*argv: str) -> ServeArguments:
    """What arguments ask for."""
    found = parse(["serve", *argv])
    assert isinstance(found, ServeArguments)
    return found


def test_defaults() -> None:
    """One agent without tools, on this machine."""
    expected = ServeArguments(agents=(AgentSettings(),), listening=Listening(host="127.0.0.1", port=8765))

    assert expected == served()


@pytest.mark.parametrize(
    ("bind", "host", "port"),
    [
        ("8000", "127.0.0.1", 8000),
        ("0", "127.0.0.1", 0),
        ("0.0.0.0:80", "0.0.0.0", 80),
        ("[::1]:80", "::1", 80),
        ("[::1]", "::1", 8765),
        ("agents.example.org", "agents.example.org", 8765),
        (":80", "127.0.0.1", 80),
    ],
)
def test_addresses(bind: str, host: str, port: int) -> None:
    """A port, a host, or both."""
    found = served("--bind", bind).listening

    assert (host, port) == (found.host, found.port)


def test_who_gets_in_is_taken_as_it_is_given() -> None:
    """Files, names and origins."""
    found = served(
        *("--token-file", "t", "--tls-cert", "c", "--tls-key", "k"),
        *("--host", "a.example", "--host", "b.example", "--origin", "https://c.example"),
    )
    expected = Listening(
        token_file=Path("t"),
        tls_cert=Path("c"),
        tls_key=Path("k"),
        hosts=("a.example", "b.example"),
        origins=("https://c.example",),
    )

    assert expected == found.listening


def test_agents_of_a_file(tmp_path: Path) -> None:
    """A file says all of them."""
    path = tmp_path / "agents.toml"
    path.write_text('[[agents]]\nname = "a"\n[[agents]]\nname = "b"\n')

    found = served(str(path))

    assert found.host is not None
    assert ((), ["a", "b"]) == (found.agents, [spec.name for spec in found.host.spawned])


def test_options_win_over_a_file(tmp_path: Path, tokens: Path) -> None:
    """One that is given stands in place of the file's; the key of the file goes with its certificate."""
    made = trustme.CA().issue_cert("a.example")
    made.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    path = tmp_path / "agents.toml"
    path.write_text(
        "[gateway]\nbind = '[::1]:1'\ntoken_file = 'tokens'\nhosts = ['a.example']\norigins = ['https://a.example']\n"
        "tls_cert = 'both.pem'\ntls_key = 'both.pem'\nsees = { tester = ['a'] }\n"
        "limits = { connections = 3, depth = 5 }\n[templates.t]\nagent = 'a'\n[[agents]]\nname = 'a'\n"
    )
    plain = served(str(path)).listening
    given = served(
        *(str(path), "--bind", "2", "--token-file", "t", "--host", "b.example", "--origin", "https://b.example"),
        *("--tls-cert", "c.pem"),
    ).listening

    assert ("::1", 1, tokens, ("a.example",), ("https://a.example",)) == (
        plain.host,
        plain.port,
        plain.token_file,
        plain.hosts,
        plain.origins,
    )
    assert (tmp_path / "both.pem", tmp_path / "both.pem") == (plain.tls_cert, plain.tls_key)
    assert Listening(
        host="127.0.0.1",
        port=2,
        token_file=Path("t"),
        hosts=("b.example",),
        origins=("https://b.example",),
        tls_cert=Path("c.pem"),
        sees={"tester": ["a"]},
        more=plain.more,
    ) == attrs.evolve(given, more=plain.more)
    assert (3, 5, ["t"]) == (
        given.more["door_limits"].connections,
        given.more["limits"].depth,
        list(given.more["templates"]),
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--bind", "1.2.3.4:x"), "--bind '1.2.3.4:x' is no address; one is 127.0.0.1:8765 or [::1]:8765"),
        (("--bind", "::1"), "'::1' is no address"),
        (("--bind", "127.0.0.1:65536"), "a port is a number from 0 (any free one) to 65535; it is '65536'"),
        (("--tls-key", "k"), "--tls-key goes with --tls-cert"),
        (("agents.toml", "--model", "openai:x"), "agents.toml says what the agents are: options such as --model"),
        (("nowhere.toml",), "nowhere.toml cannot be read: No such file or directory"),
        (("--bind", "0.0.0.0:0"), "--bind 0.0.0.0 can be reached by others: say who gets in by --token-file FILE"),
        (("--token-file", "nowhere"), "the token file nowhere cannot be read"),
        (("--tls-cert", "nowhere"), "--tls-cert nowhere: there is no such file"),
        (("--bind", "0", "--host", "a b"), "'a b' is no name"),
        (("--model", "openai:x"), "needs a key in OPENAI_API_KEY"),
        (("--journal", ""), "--journal needs the path of a file, such as onward.db"),
        (("--journal", "nowhere/onward.db"), "--journal nowhere/onward.db: the journal nowhere/onward.db cannot be"),
    ],
)
def test_wrong_use(
    argv: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What cannot be served is refused before anything listens, with status 2."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    code = main(["serve", *argv])
    out, err = capfd.readouterr()

    assert (2, "") == (code, out)
    assert said in err
    assert "Traceback" not in err
    assert "Serving" not in err


def test_a_port_that_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    """It is said which, and what would be free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = main(["serve", "--bind", f"{port}"])

    assert code == 2
    assert f"port {port} of '127.0.0.1' cannot be listened on: Address already in use" in capfd.readouterr().err


def test_an_open_token_file(tokens: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file that others can read is refused, and its tokens are not shown."""
    tokens.chmod(0o644)
    code = main(["serve", "--bind", "0", "--token-file", str(tokens)])
    err = capfd.readouterr().err

    assert code == 2
    assert f"can be read by others: chmod 600 {tokens}" in err
    assert TOKEN not in err


def test_files_that_are_no_certificate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is said which file, and what it should hold."""
    (tmp_path / "cert.pem").write_text("nothing")
    code = main(["serve", "--bind", "0", "--tls-cert", str(tmp_path / "cert.pem")])

    assert code == 2
    assert "cert.pem: no certificate in PEM with the key that belongs to it" in capfd.readouterr().err


def test_a_journal(tmp_path: Path) -> None:
    """It goes with a file of agents, or without."""
    path = tmp_path / "agents.toml"
    path.write_text('[[agents]]\nname = "a"\n')

    assert [None, Path("o.db"), Path("o.db")] == [
        served(*argv).journal for argv in ((), ("--journal", "o.db"), (str(path), "--journal", "o.db"))
    ]


@pytest.mark.slow
@pytest.mark.peer
def test_a_journal_that_is_in_use(tmp_path: Path) -> None:
    """It is said before anything listens, with status 2."""
    path = tmp_path / "onward.db"

    async def serve_beside() -> CompletedProcess[str]:
        async with open_runtime(journal=path):
            return await trio.to_thread.run_sync(onward, "serve", "--bind", "0", "--journal", str(path))

    done = trio.run(serve_beside)

    assert (2, "") == (done.returncode, done.stdout)
    assert (
        f"--journal {path}: the journal {path} is in use by another process: end it, or use another file" in done.stderr
    )
    assert "Serving" not in done.stderr


# The token that is made.


def test_a_made_token_is_for_its_user_alone(runtime_folder: Path) -> None:
    """It is found by the port as long as it is kept, in a file that nobody else can read."""
    with kept(TOKEN, 1234) as path:
        mode = stat.S_IMODE(path.stat().st_mode)
        found, other = find_made_token(1234), find_made_token(1235)

    assert (0o600, TOKEN, None) == (mode, found, other)
    assert runtime_folder in path.parents
    assert find_made_token(1234) is None
    assert not path.exists()


def test_a_token_that_stays() -> None:
    """The server that comes back takes it up; one that does not, takes it away."""
    with kept(TOKEN, 1234, stays=True):
        pass
    between = find_made_token(1234)
    with kept(TOKEN, 1234):
        pass

    assert (TOKEN, None) == (between, find_made_token(1234))


def test_of_two_servers_the_later_one_counts() -> None:
    """One that ends does not take the other's token away."""
    with kept("the-later-one", 1234) as path:
        with kept(TOKEN, 1234):
            path.write_text("the-later-one\n")
        found = find_made_token(1234)

    assert found == "the-later-one"


def test_a_folder_that_is_open_keeps_nothing(runtime_folder: Path) -> None:
    """Neither is a token put there, nor believed."""
    (runtime_folder / "onward").mkdir()
    (runtime_folder / "onward" / "token-1").write_text(TOKEN)
    (runtime_folder / "onward" / "token-1").chmod(0o600)
    (runtime_folder / "onward").chmod(0o777)

    assert find_made_token(1) is None
    with (
        pytest.raises(UsageError, match=r"is open to others, and can keep no token: give --token-file"),
        kept(TOKEN, 2),
    ):
        pass


def test_a_link_in_place_of_the_folder_is_not_followed(runtime_folder: Path, tmp_path: Path) -> None:
    """Whoever made it may be somebody else."""
    tmp_path.chmod(0o700)
    (runtime_folder / "onward").symlink_to(tmp_path)

    with pytest.raises(UsageError, match="can keep no token"), kept(TOKEN, 2):
        pass


def test_without_a_folder_of_the_user_it_is_one_of_our_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where XDG_RUNTIME_DIR says nothing, the folder for temporary files has one for this user."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with kept(TOKEN, 1234) as path:
        found = find_made_token(1234)

    assert found == TOKEN
    assert path.parent == tmp_path / f"onward-{os.getuid()}"
