"""The client in JavaScript: its types, its own tests, and every scenario in node."""

from __future__ import annotations

import json

import pytest

from tests.peers._node import CLIENT, MODULES, NODE, PROGRAMS, run_program
from tests.peers._scenarios import NAMES, open_stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]
STRICT = [
    "--noEmit",
    "--allowJs",
    "--checkJs",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom,dom.iterable",
]


@pytest.mark.parametrize("socket", ["node", "ws"])
@pytest.mark.parametrize("name", NAMES)
async def test_the_module_plays_it(name: str, socket: str) -> None:
    """With node's own WebSocket and with npm's, it sees all that happens, once and in order, and its commands count."""
    async with open_stage(name) as stage:
        printed = await run_program([NODE, PROGRAMS / "play_node.mjs", socket], json.dumps(stage.given))

        assert stage.expected() == stage.came_to(printed)


async def test_its_own_tests_pass() -> None:
    """Against a server that does what the real one does not."""
    printed = await run_program([NODE, "--test", "--test-reporter=tap", PROGRAMS / "onward.test.mjs"])

    assert "# fail 0" in printed.splitlines()
    assert "# pass 0" not in printed.splitlines()


async def test_its_types_are_right() -> None:
    """TypeScript, at its strictest, agrees with its annotations and with the types of the protocol."""
    compiler = MODULES / "typescript" / "bin" / "tsc"

    assert "" == await run_program([NODE, compiler, *STRICT, CLIENT / "onward.mjs"])


async def test_it_needs_nothing() -> None:
    """It imports no other module: a page that has this file has the client."""
    lines = (CLIENT / "onward.mjs").read_text(encoding="utf-8").splitlines()

    assert [] == [line for line in lines if line.startswith("import ") or ' from "' in line and "export" in line]
