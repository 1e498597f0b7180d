"""Over TLS: a server is believed for its certificate alone."""

from __future__ import annotations

import ssl

import pytest
import trustme

from actors import open_runtime
from actors.client import Unreachable, connect
from actors.gateway import open_gateway

pytestmark = [pytest.mark.peer, pytest.mark.slow]


async def test_a_certificate_is_checked() -> None:
    """With the authority that issued it the client gets in; without, nothing is sent, and it says why."""
    authority = trustme.CA()
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(serving)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with open_runtime() as runtime, open_gateway(runtime, port=0, ssl_context=serving) as gateway:
        url = f"wss://localhost:{next(iter(gateway.ports))}"
        async with connect(url, token=gateway.token, ssl_context=trusting) as client:
            await client.ping()
        with pytest.raises(Unreachable, match="certificate verify failed"):
            async with connect(url, token=gateway.token):
                pass

    assert "local" == client.welcome.principal
