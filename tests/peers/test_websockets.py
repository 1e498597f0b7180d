"""The library `websockets` on asyncio, by hand: another reader of RFC 6455, another event loop."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.peers._node import run_program
from tests.peers._scenarios import NAMES, open_stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]
PROGRAM = Path(__file__).parent / "raw_websockets.py"


@pytest.mark.parametrize("name", NAMES)
async def test_websockets_plays_it(name: str) -> None:
    """A program of a hundred lines sees all that happens, once and in order, and its commands count."""
    async with open_stage(name) as stage:
        printed = await run_program([sys.executable, PROGRAM], json.dumps(stage.given))

        assert stage.expected() == stage.came_to(printed)
