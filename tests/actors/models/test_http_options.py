"""What can be set about the network: proxies and trusted certificates, and what is wrong with them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.models.openai import OpenAIChat
from protocol.errors import ModelError, ModelUnreachable, SpecError
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import HELLO, HI, Heard, Server, answer, stream
from tests.actors.models.conftest import MakeModel, Open, model_at


def at(**settings: Any) -> OpenAIChat:
    return OpenAIChat("m", base_url="http://model.test/v1", api_key="sk-x", **{"retries": 0, **settings})


async def test_a_proxy_that_is_named_is_used(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wins over the environment, takes its password, and stands before a server of this machine too."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server = Server([stream(*HI), stream(*HI)])
    proxy = f"http://me:pass-word@127.0.0.1:{await open_server(server)}"
    for model in (at(proxy=proxy), model_at(9, proxy=proxy)):
        assert HELLO_TURN == await model.turn(HELLO, Heard())
        await model.aclose()

    lines = [
        "POST http://model.test/v1/chat/completions HTTP/1.1",
        "POST http://127.0.0.1:9/v1/chat/completions HTTP/1.1",
    ]
    assert lines == [request.line for request in server.requests]
    assert {"Basic bWU6cGFzcy13b3Jk"} == {request.headers["proxy-authorization"] for request in server.requests}


async def test_a_proxy_that_is_not_there_is_named() -> None:
    """Which of the two could not be reached is no riddle; the password is not told."""
    with pytest.raises(ModelUnreachable, match=r"completions through the proxy http://127\.0\.0\.1:1: ") as caught:
        await at(proxy="http://me:pass-word@127.0.0.1:1").turn(HELLO, Heard())

    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(("status", "retryable"), [(403, False), (407, False), (502, True), (503, True)])
async def test_a_proxy_that_refuses_a_tunnel(status: int, retryable: bool, open_server: Open) -> None:
    """Its no would come again, its trouble may not; nothing was sent either way."""
    server = Server([answer(status)])
    model = OpenAIChat(
        "m",
        base_url="https://model.test",
        api_key="sk-x",
        retries=0,
        proxy=f"http://127.0.0.1:{await open_server(server)}",
    )
    heard = Heard()
    with pytest.raises(ModelUnreachable, match=rf": {status} X; nothing was sent\. The proxy refused\.") as caught:
        await model.turn(HELLO, heard)

    assert (retryable, []) == (caught.value.retryable, heard.events)


async def test_no_secret_of_a_proxy_is_told(open_server: Open) -> None:
    """Not even by a proxy that repeats what it was given."""
    server = Server([answer(407, {"error": {"message": "bWU6cGFzcy13b3Jk or pass-word or pass%2Dword is wrong"}})])
    port = await open_server(server)
    model = at(proxy=f"http://me:pass%2Dword@127.0.0.1:{port}")
    with pytest.raises(ModelError) as caught:
        await model.turn(HELLO, Heard())
    await model.aclose()

    assert "*** or *** or *** is wrong" in str(caught.value)
    assert "word" not in repr(model) + repr(model._client.endpoint)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:3128",
        "ftp://me:pass-word@host",
        "http://",
        "http://me:pass-word@ho st:1",
        "http://host:pass-word",
        3128,
        None,
    ],
)
def test_what_is_no_proxy_is_refused(url: Any) -> None:
    """When the model is made, without the text: a password may stand anywhere in it."""
    with pytest.raises(
        SpecError, match="^proxy must be the address of a proxy, such as http://127.0.0.1:3128"
    ) as caught:
        at(proxy=url)

    assert "pass-word" not in str(caught.value)


def test_a_proxy_may_need_a_package() -> None:
    """SOCKS is spoken by another one, which is named."""
    with pytest.raises(SpecError, match="proxy: socks5 needs the package socksio: pip install socksio"):
        at(proxy="socks5://127.0.0.1:1080")


async def test_a_transport_is_all_there_is_to_the_network(make_model: MakeModel) -> None:
    """A proxy beside one would be ignored, or would go around it."""
    with pytest.raises(SpecError, match="transport and proxy exclude each other"):
        make_model(proxy="http://127.0.0.1:3128")


@pytest.mark.parametrize(
    "value", ["socks5://me:pass-word@127.0.0.1:1", "ftp://me:pass-word@host", "http://host:pass-word"]
)
async def test_a_proxy_of_the_environment_that_cannot_be_used(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error that names the variables, and shows nothing of them."""
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(SpecError, match="HTTP_PROXY, HTTPS_PROXY and ALL_PROXY") as caught:
        await at().turn(HELLO, Heard())

    assert "pass-word" not in str(caught.value)
    assert caught.value.__suppress_context__


def missing(folder: Path) -> Any:
    return folder / "missing.pem"


def empty(folder: Path) -> Any:
    path = folder / "empty.pem"
    path.write_text("no certificate")
    return str(path)


@pytest.mark.parametrize("make", [missing, empty, lambda _folder: "a\0b"])
def test_certificates_that_cannot_be_read(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """The path and the reason are told when the model is made."""
    with pytest.raises(SpecError, match=r"^verify: .* is no file or folder of certificates in PEM form \(.+\)$"):
        at(verify=make(tmp_path))


@pytest.mark.parametrize("value", [True, False, 3])
def test_certificates_are_always_checked(value: Any) -> None:
    """There is no switch for it; whoever wants that gives a context of their own."""
    with pytest.raises(SpecError, match="^verify must be the path of trusted certificates, or an ssl.SSLContext"):
        at(verify=value)


def test_a_folder_of_certificates(tmp_path: Path) -> None:
    """As the system keeps them."""
    assert isinstance(at(verify=tmp_path)._client._tls, ssl.SSLContext)
