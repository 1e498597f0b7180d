"""npm's `ws`, by hand: the protocol can be spoken from what it says of itself, with nothing of the product."""

from __future__ import annotations

import json

import pytest

from tests.peers._node import NODE, PROGRAMS, run_program
from tests.peers._scenarios import NAMES, open_stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]


@pytest.mark.parametrize("name", NAMES)
async def test_ws_plays_it(name: str) -> None:
    """A program of a hundred lines sees all that happens, once and in order, and its commands count."""
    async with open_stage(name) as stage:
        printed = await run_program([NODE, PROGRAMS / "raw_ws.mjs"], json.dumps(stage.given))

        assert stage.expected() == stage.came_to(printed)
