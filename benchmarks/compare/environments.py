"""Virtual environments of their own for those who are compared, and what is in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

import attrs

from .peers import ONWARD, Subject

__all__ = ("Environment", "prepare", "quiet")

_STAMP = "requirements.txt"
_TOOLS = {"pip", "setuptools"}
"""What a fresh environment may hold; nobody needs it to run."""
_QUIET = {
    "AGNO_TELEMETRY": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "NO_PROXY": "127.0.0.1",
    "PYTHONWARNINGS": "ignore",
}


@attrs.frozen
class Environment:
    """An environment that is there."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def installed(self) -> list[Distribution]:
        """What was installed, without pip."""
        places = [str(place) for place in self.folder.glob("lib/python*/site-packages")]
        return [one for one in distributions(path=places) if one.name.lower() not in _TOOLS]

    def size_mb(self) -> float:
        """The size of all that, compiled modules included."""
        return sum(_size(one) for one in self.installed()) / 1e6


def prepare(subjects: Iterable[Subject], folder: Path) -> dict[str, Environment]:
    """The environments of the subjects, by name, in `folder`: made where they are not there as they should be.

    Onward's is made anew each time, for the checkout changes. Raises `subprocess.CalledProcessError` if pip fails.
    """
    found: dict[str, Environment] = {}
    for subject in subjects:
        environment = Environment(folder.resolve() / subject.environment)
        if environment not in found.values():
            _make(environment, subject)
        found[subject.name] = environment
    return found


def quiet() -> dict[str, str]:
    """The environment variables of measured programs: nothing of this one's Python, no proxy, no telemetry."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and not name.lower().endswith("_proxy") and name != "VIRTUAL_ENV"
    }
    return kept | _QUIET


def _make(environment: Environment, subject: Subject) -> None:
    folder = environment.folder
    stamp = "\n".join((sys.version, *subject.requires))
    if subject.requires != ONWARD.requires and _read(folder / _STAMP) == stamp:
        return
    sys.stderr.write(f"installing {' '.join(subject.requires)}\n")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    pip: list[str | Path] = [environment.python, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, *subject.requires], check=True, stdout=sys.stderr, env=own)
    (folder / _STAMP).write_text(stamp, "utf-8")


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _size(one: Distribution) -> int:
    paths = [Path(str(one.locate_file(file))) for file in one.files or ()]
    return sum(path.stat().st_size for path in paths if path.exists())
