"""Which way imports point: down, and never out of the pure part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .source import ROOT, imports_of, modules, name_of

PURE = {"attrs", "msgspec", "protocol"} | set(sys.stdlib_module_names)
RANKS = {
    "journal": 0,
    "logs": 0,
    "kit": 1,
    "client": 2,
    "eventlog": 2,
    "models": 3,
    "prices": 3,
    "tools": 3,
    "agent": 4,
    "runtime": 5,
    "generate": 6,
    "telemetry": 6,
    "gateway": 7,
    "hostfile": 8,
    "cli": 9,
}
"""Rooms of `actors`, from the lowest: each may use those below it."""
HEAVY = (
    *("httpx", "sqlite3", "trio_websocket", "h11", "wsproto", "genai_prices", "pydantic", "httpx2"),
    *("structlog", "asyncio", "opentelemetry"),
)
"""What `import actors` must not load: a client of a remote runtime would pay for it."""
NO_TASKS = {"socket", "ssl", "threading", "subprocess", "asyncio", "selectors", "http", "urllib", "sqlite3", "os"}
"""Parts of the standard library that are I/O or tasks: no business of the pure part."""


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "actors" else None


@pytest.mark.parametrize("path", modules("protocol"), ids=name_of)
def test_the_protocol_is_pure(path: Path) -> None:
    """It imports the standard library, attrs, msgspec and itself: no trio, no I/O, nothing of `actors`."""
    outside = [(name, line) for name, line in imports_of(path) if name.split(".")[0] not in PURE]
    busy = [(name, line) for name, line in imports_of(path) if name.split(".")[0] in NO_TASKS]

    assert [] == outside
    assert [] == busy


@pytest.mark.parametrize("path", modules("actors"), ids=name_of)
def test_actors_point_down(path: Path) -> None:
    """A room uses those below it; two of one height leave each other alone; nobody uses what stands on it."""
    room = room_of(name_of(path))
    used = [(room_of(name), line) for name, line in imports_of(path) if room_of(name) not in {None, room}]
    if room is None:
        return  # the package itself: what users import

    assert room in RANKS, f"{room} is a new room: say in RANKS where it stands"
    assert [] == [(other, line) for other, line in used if other and RANKS.get(other, 99) >= RANKS[room]]


@pytest.mark.parametrize("path", modules("actors", "protocol"), ids=name_of)
def test_nothing_of_the_product_knows_its_surroundings(path: Path) -> None:
    """No test, script or example is needed by what is installed."""
    surroundings = {"tests", "bin", "benchmarks", "examples", "docs"}

    assert [] == [(name, line) for name, line in imports_of(path) if name.split(".")[0] in surroundings]


@pytest.mark.parametrize("path", modules("actors"), ids=name_of)
def test_the_package_does_not_import_itself_from_inside(path: Path) -> None:
    """Relative inside a package, so that a room can be moved; the public face is for users alone."""
    inside = [
        (name, line) for name, line in absolute_imports(path) if name.split(".")[0] == name_of(path).split(".")[0]
    ]

    assert [] == inside


def absolute_imports(path: Path) -> list[tuple[str, int]]:
    import ast

    from .source import tree_of

    found: list[tuple[str, int]] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.append((node.module, node.lineno))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", ["actors", "actors.kit", "actors.agent", "actors.telemetry", "protocol.events", "actors.models"]
)
def test_importing_is_light(package: str) -> None:
    """No HTTP client, database, WebSocket or price library comes with the import; of `protocol`, no trio either."""
    heavy = (*HEAVY, "trio") if package.startswith("protocol") else HEAVY
    program = f"import sys; had = set(sys.modules); import {package}; print(*set({heavy!r}) & set(sys.modules) - had)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ("", 0, "") == (done.stdout.strip(), done.returncode, done.stderr)


def test_one_module_names_the_http_client() -> None:
    """The client has a fault under cancellation that is worked around in one place only."""
    users = {name_of(path) for path in modules("actors") if any(name == "httpx" for name, _ in imports_of(path))}

    assert {"actors.models.wire._http"} == users


@pytest.mark.parametrize("path", modules("actors", "protocol"), ids=name_of)
def test_trio_is_imported_whole(path: Path) -> None:
    """`import trio`, never names out of it: a reader sees where a checkpoint is."""
    parts = [(name, line) for name, line in imports_of(path) if name.startswith("trio.") or name == "asyncio"]

    assert [] == [(name, line) for name, line in parts if name != "trio.testing"]
