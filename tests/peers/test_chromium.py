"""The client in JavaScript plays scenarios in a page of the gateway, in a real browser: ticket, cookie, its rules."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.peers._node import NODE, PROGRAMS, run_program
from tests.peers._scenarios import NAMES, Stage, open_stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> str:
    """The browser of this machine. Debian's package is `chromium`."""
    found = [path for name in BROWSERS if (path := shutil.which(name))]

    assert found, f"none of {', '.join(BROWSERS)} is on the PATH: install the package chromium"
    return found[0]


def page_of(stage: Stage) -> str:
    """The address that a person is given."""
    return f"http://localhost:{stage.proxy.port}/#ticket={stage.gateway.ticket()}"


@pytest.mark.parametrize("name", NAMES)
async def test_a_page_plays_it(browser: str, name: str) -> None:
    """A page gets in by its ticket once, keeps it nowhere, sees all that happens, and no rule of its own stops it."""
    async with open_stage(name) as stage:
        given = {**stage.given, "page": page_of(stage)}
        printed = await run_program([NODE, PROGRAMS / "chromium.mjs", browser], json.dumps(given))
        seen = json.loads(printed)
        page = seen.pop("page")
        complaints = seen.pop("complaints")

        assert stage.expected() == stage.came_to(json.dumps(seen))
        assert ([True, False], "", "") == (page["tickets"], page["hash"], page["cookie"])
        assert ["connecting", "live"] == page["states"][:2]
        assert "over" == page["states"][-1]
        assert [] == complaints
