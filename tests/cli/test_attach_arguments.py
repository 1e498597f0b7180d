"""`onward attach`: its arguments, and what is said when it is not let in."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trio

from actors.cli import main
from actors.cli._arguments import parse
from actors.cli._attach_arguments import AttachArguments
from actors.cli._connection_words import trouble_words
from actors.cli._usage import UsageError
from actors.client import Disconnected, ReplyLost, Unreachable

pytestmark = pytest.mark.usefixtures("runtime_folder")


def attach(*argv: str) -> AttachArguments:
    """What arguments ask for."""
    found = parse(["attach", *argv])
    assert isinstance(found, AttachArguments)
    return found


def test_defaults() -> None:
    """The server that `onward serve` starts by default, from now on."""
    assert AttachArguments(url="http://127.0.0.1:8765") == attach()


def test_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option is taken as it was given; the token is in no repr."""
    monkeypatch.setenv("OUR_TOKEN", " a-token-of-ours \n")
    found = attach(
        *("wss://a.example:1", "--agent", "a", "--prompt", "Hello", "--from", "start", "--json"),
        *("--token-env", "OUR_TOKEN", "--tls-ca", "ca.pem"),
    )
    expected = AttachArguments(
        url="wss://a.example:1",
        agent="a",
        prompt="Hello",
        since="start",
        json=True,
        token="a-token-of-ours",
        tls_ca=Path("ca.pem"),
    )

    assert expected == found
    assert "a-token-of-ours" not in repr(found)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--from", "stat"), "--from 'stat' is unknown (did you mean start?): head or start"),
        (("--prompt", " "), "--prompt is empty"),
        (("--token-env", "UNSET_TOKEN"), "the environment variable UNSET_TOKEN is not set, or empty"),
        (("--token-env", "X", "--token-file", "x"), "--token-file and --token-env: give one of them"),
        (("127.0.0.1:8765",), "URL '127.0.0.1:8765' is no address; one is http://127.0.0.1:8765"),
        (("http://[::1",), "Invalid IPv6 URL; one is http://127.0.0.1:8765"),
        (("http://127.0.0.1:1/#ticket=secret-of-one",), "which is for browsers; here it is http://127.0.0.1:1/, with"),
        (("http://secret-of-one@127.0.0.1:1",), "here it is http://127.0.0.1:1, with"),
        (("--token", "secret"), "unrecognized arguments: --token"),
    ],
)
def test_wrong_use(argv: tuple[str, ...], said: str) -> None:
    """What is wrong is told, and what would be right; a secret in the address is not told again."""
    with pytest.raises(UsageError) as caught:
        attach(*argv)

    assert said in str(caught.value)
    assert "secret-of-one" not in str(caught.value)


@pytest.mark.parametrize(
    ("flag", "text", "said"),
    [
        ("--token-file", None, "cannot be read: No such file or directory"),
        ("--token-file", "# nothing\n\n", "holds no token: it is the first word of a line"),
        ("--token-file", "na\u00efve-token-of-ours", "a token is ASCII without spaces"),
        ("--tls-ca", None, "holds no certificates to trust: No such file or directory"),
        ("--tls-ca", "nothing", "holds no certificates to trust"),
    ],
)
def test_files_that_cannot_be_used(
    flag: str, text: str | None, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is said which file, and what it lacks; nothing is connected to."""
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    code = main(["attach", "http://127.0.0.1:9", flag, str(path)])
    err = capfd.readouterr().err

    assert code == 2
    assert said in err
    assert "Traceback" not in err


def caused(error: Exception, cause: BaseException) -> Exception:
    """`raise error from cause`, caught."""
    error.__cause__ = cause
    return error


WRONG_CERTIFICATE = ssl.SSLCertVerificationError(1, "certificate verify failed: unable to get local issuer certificate")
REFUSED = ExceptionGroup("all attempts failed", [ConnectionRefusedError(111, "Connection refused")])


@pytest.mark.parametrize(
    ("error", "has_token", "said"),
    [
        (Unreachable("x answered 401", status=401), True, "The server does not know this token."),
        (Unreachable("x answered 401", status=401), False, "It wants a token: --token-file FILE, or --token-env"),
        (Unreachable("x answered 403", status=403), True, "lets this token, or this kind of client, do nothing"),
        (Unreachable("x answered 404", status=404), True, "Is that the address of an Onward gateway?"),
        (Unreachable("x answered 421", status=421), True, "onward serve --host NAME"),
        (Unreachable("x answered 501", status=501), True, "Is that the address of an Onward gateway?"),
        (Unreachable("x answered 503", status=503), True, "try again"),
        (caused(Unreachable("no connection"), WRONG_CERTIFICATE), True, "--tls-ca FILE names a certificate"),
        (
            caused(Unreachable("no"), caused(trio.BrokenResourceError(), ssl.SSLError(1, "wrong version number"))),
            True,
            "Does the server speak TLS? Without it, its address begins with http://",
        ),
        (caused(Unreachable("no"), caused(OSError("all"), REFUSED)), True, "no connection: Connection refused\nIs the"),
        (Unreachable("dropped during the upgrade"), True, "If the server speaks TLS, its address begins with https://"),
        (Disconnected("closed (4526)", code=4526), True, "another version of the protocol than this client"),
        (Disconnected("closed (4501)", code=4501), True, "The token was revoked"),
    ],
)
def test_what_would_help(error: Exception, has_token: bool, said: str) -> None:
    """Each way of not getting in says what to do about it."""
    assert said in trouble_words(error, has_token=has_token, is_secure=False)


def test_what_nothing_helps_against_is_told_alone() -> None:
    """No hint is made up."""
    assert trouble_words(ReplyLost("too slow"), has_token=True, is_secure=True) == "too slow"
    assert trouble_words(Unreachable("too slow"), has_token=True, is_secure=True) == "too slow"
