"""`onward serve` and `onward attach` as processes of their own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import attrs

from ._command import ROOT, Terminal, terminal

ASK = "approve, steer, discard or decline? "
LISTENING = re.compile(r"Serving at (\S+)")


@attrs.define(eq=False)
class Served:
    """A server on a terminal."""

    screen: Terminal
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def address_of(screen: Terminal) -> str:
    """Wait until a command says where it serves."""
    screen.wait_for("in a browser:")
    found = LISTENING.search(screen.seen)
    assert found is not None
    return found[1]


@contextlib.contextmanager
def serve(
    *arguments: str, bind: str = "0", cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> Generator[Served]:
    """Start `onward serve` on a terminal of its own."""
    with terminal("serve", "--bind", bind, *arguments, cwd=cwd, env=env) as screen:
        url = address_of(screen)
        screen.wait_for("Ctrl-C ends it.")
        yield Served(screen, url)


def tree_of(folder: Path) -> Path:
    """Fill a folder with 40 files, ten of them in `tests`."""
    for number in range(40):
        below = folder / ("tests" if number % 4 == 0 else "src")
        below.mkdir(exist_ok=True)
        (below / f"f{number:02}.txt").write_text("line\n" * number)
    return folder


def command(number: int, method: str, **params: Any) -> dict[str, Any]:
    """A command of the wire."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
