"""The wheel and the sdist: what they own, and what they say of themselves."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built from this checkout without a network."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


@pytest.fixture
def wheel(built: Path) -> zipfile.ZipFile:
    """The wheel."""
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


def read(wheel: zipfile.ZipFile, name: str) -> str:
    """A file of the wheel's metadata."""
    (path,) = [path for path in wheel.namelist() if path.endswith(f".dist-info/{name}")]
    return wheel.read(path).decode()


def test_the_wheel_owns_two_names(wheel: zipfile.ZipFile) -> None:
    """It installs `actors` and `protocol` and nothing beside them."""
    owned = {name.split("/", maxsplit=1)[0] for name in wheel.namelist() if ".dist-info/" not in name}

    assert owned == {"actors", "protocol"}


def test_the_wheel_holds_all_of_them(wheel: zipfile.ZipFile) -> None:
    """Every module of the checkout is in it, those for pages too, and both packages say that they are typed."""
    kinds = ("*.py", "*.mjs", "*.d.ts")
    modules = [path for package in ("actors", "protocol") for kind in kinds for path in (ROOT / package).rglob(kind)]
    expected = {path.relative_to(ROOT).as_posix() for path in modules} | {"actors/py.typed", "protocol/py.typed"}

    assert expected == {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    """`onward` is the one command."""
    entries = configparser.ConfigParser()
    entries.read_string(read(wheel, "entry_points.txt"))

    assert dict(entries["console_scripts"]) == {"onward": "actors.cli:main"}


def test_what_the_wheel_needs(wheel: zipfile.ZipFile) -> None:
    """Eight dependencies, each with a floor, and Python 3.11; what an extra needs is not among them."""
    metadata = Parser().parsestr(read(wheel, "METADATA"))
    wanted = metadata.get_all("Requires-Dist", [])
    needs = [need for need in wanted if "extra ==" not in need]

    assert metadata["Requires-Python"] == ">=3.11"
    assert sorted(need.split(">", maxsplit=1)[0].split("<", maxsplit=1)[0] for need in needs) == [
        "attrs",
        "h11",
        "httpx",
        "msgspec",
        "structlog",
        "trio",
        "trio-websocket",
        "wsproto",
    ]
    assert [need for need in wanted if ">=" not in need] == []
    assert metadata.get_all("Provides-Extra") == ["otel", "prices"]


def test_the_sdist_can_be_tested(built: Path) -> None:
    """The sdist holds the sources, the tests and the scripts."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {"/".join(name.split("/")[1:]) for name in sdist.getnames()}

    assert {"actors/__init__.py", "protocol/py.typed", "tests/test_readme.py", "bin/test", "pyproject.toml"} <= names
