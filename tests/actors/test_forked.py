"""A process that is forked from one that hosts agents, or may."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os
import actors
from protocol.ids import new_id

print(new_id("run"), flush=True)
for _ in range(2):
    child = os.fork()
    if not child:
        print(new_id("run"), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.peer
def test_brothers_make_different_ids() -> None:
    """So that what one has written down is told from what another one writes behind it, in the same journal."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    boots = [line.split("-")[1] for line in done.stdout.splitlines()]

    assert (0, "") == (done.returncode, done.stderr)
    assert 3 == len(boots) == len(set(boots))
