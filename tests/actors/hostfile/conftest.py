"""Host files of the tests, and what they name."""

from __future__ import annotations

import contextlib
import sys
import tomllib
from collections.abc import Callable, Generator
from pathlib import Path

import jsonschema
import pytest

from actors.hostfile import HostFile, HostFileError, host_file_schema, read_host_file

SCHEMA = jsonschema.Draft202012Validator(host_file_schema())

OWN = '''
"""Tools and functions of one's own."""
from actors import AgentSpec, ContinuationResponse, tool
from actors.models.planner import Planner
from actors.models.scripted import Scripted

RAN = []


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(needs_approval=True)
async def wipe() -> str:
    """Wipe."""
    return "wiped"


TOOLS = [add, wipe]


def multiplier(by):
    async def multiply(a: int) -> int:
        """Multiply."""
        return a * by
    return multiply


def decide(request):
    return ContinuationResponse("approve")


def worker(size="small"):
    return AgentSpec(name=size, model=Planner())


def script(text="Hello."):
    return Scripted([text])


MODEL = Scripted(["I am one."])
NUMBER = 3
'''


@contextlib.contextmanager
def own_modules() -> Generator[None]:
    """Reading a host file lets modules beside it be found: inside the block, and not after it."""
    before = list(sys.path)
    try:
        _forget()
        yield
    finally:
        sys.path[:] = before
        _forget()


def _forget() -> None:
    for name in ("own", "broken", "leaves"):
        sys.modules.pop(name, None)


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """A folder with a module of one's own, a folder of data, and a token file."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "prompt.md").write_text("You audit.\n")
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-the-tests operate,decide anna\nanother-token-of-the-tests observe guest\n")
    tokens.chmod(0o600)
    with own_modules():
        yield tmp_path


@pytest.fixture
def read(folder: Path) -> Callable[[str], HostFile]:
    """Reads a text as a host file; what can be read fits the schema too."""

    def reads(text: str) -> HostFile:
        path = folder / "host.toml"
        path.write_text(text)
        found = read_host_file(path)
        SCHEMA.validate(tomllib.loads(text))
        return found

    return reads


@pytest.fixture
def refused(read: Callable[[str], HostFile], folder: Path) -> Callable[[str], list[str]]:
    """What is said of a text that is no host file, a line for each fault, without the folder."""

    def refuses(text: str) -> list[str]:
        with pytest.raises(HostFileError) as caught:
            read(text)
        return str(caught.value).replace(f"{folder}/", "").splitlines()

    return refuses
