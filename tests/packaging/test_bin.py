"""The scripts in `bin/`: what they find, make and say, in a checkout of their own. No network is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.peer]

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "onward"
version = "1"
"""

# A build backend without dependencies: it installs a command that tells what it was given.
BACKEND = """
import pathlib, zipfile

FILES = {
    "told.py": "import sys\\ndef main():\\n    print(sys.argv[1:])\\n    return 7\\n",
    "onward-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: onward\\nVersion: 1\\n",
    "onward-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "onward-1.dist-info/entry_points.txt": "[console_scripts]\\nonward = told:main\\n",
}

def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(pathlib.Path(folder) / "onward-1-py3-none-any.whl", "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        wheel.writestr("onward-1.dist-info/RECORD", "".join(f"{name},,\\n" for name in FILES))
    return "onward-1-py3-none-any.whl"
"""


@attrs.frozen
class Checkout:
    """A checkout with the real scripts and a small package."""

    root: Path

    def run(self, *command: str | Path, path: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script of it from somewhere else."""
        return subprocess.run(
            command, cwd="/", env=self.environment(path, env), capture_output=True, text=True, check=False
        )

    def environment(self, path: str | None, env: dict[str, str]) -> dict[str, str]:
        """No network for pip, no settings of this process's Python."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "ONWARD"))}
        return {**kept, "PIP_NO_INDEX": "1", "PATH": path or os.environ["PATH"], **env}

    def pretend_installed(self, profile: str = "user") -> None:
        """A .venv whose `onward` is a stub, as if it had been made from the present pyproject.toml."""
        programs = self.root / ".venv" / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        if not (programs / "python").exists():
            (programs / "python").symlink_to(sys.executable)
        script(programs / "onward", 'printf "<%s>" "$@"; exit 7')
        pyproject = (self.root / "pyproject.toml").read_text()
        (self.root / ".venv" / f"onward-{profile}.stamp").write_text(f"{self.root}\n{pyproject}")


def script(path: Path, body: str) -> Path:
    """A shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout in a folder whose name has a space."""
    root = tmp_path / "a checkout"
    root.mkdir()
    shutil.copytree(ROOT / "bin", root / "bin")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    return Checkout(root.resolve())


def bare_path(folder: Path, *programs: str) -> str:
    """A PATH with what the scripts need, and these."""
    folder.mkdir()
    for name in ("sh", "dirname", "basename", "readlink", "cat", *programs):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize("profile", ["user", "dev"])
def test_an_installed_command_is_started_at_once(checkout: Checkout, tmp_path: Path, profile: str) -> None:
    """Nothing is said; arguments and status pass through; links lead to the checkout, not beside themselves."""
    checkout.pretend_installed(profile)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "absolute").symlink_to(checkout.root / "bin" / "onward")
    (tmp_path / "links" / "relative").symlink_to("absolute")
    starts = [checkout.root / "bin" / "onward", tmp_path / "links" / "absolute", tmp_path / "links" / "relative"]
    done = [checkout.run(start, "run", "two words", "") for start in starts]

    assert [(one.returncode, one.stdout, one.stderr) for one in done] == [(7, "<run><two words><>", "")] * 3


def test_no_python(checkout: Checkout, tmp_path: Path) -> None:
    """Without a Python it says which is needed, where it comes from and how to name one."""
    done = checkout.run(checkout.root / "bin" / "onward", path=bare_path(tmp_path / "path"))

    assert done.returncode == 1
    assert "onward: Python 3.11 or newer is needed; on the PATH there is no python3 at all." in done.stderr
    assert "ONWARD_PYTHON=" in done.stderr


def test_old_python(checkout: Checkout, tmp_path: Path) -> None:
    """A Python that is too old is named; a newer one under its own name is found beside it."""
    path = bare_path(tmp_path / "path")
    script(tmp_path / "path" / "python3", 'if [ "$1" = --version ]; then echo Python 3.9.1; else exit 1; fi')
    old = checkout.run(checkout.root / "bin" / "onward", path=path)
    script(tmp_path / "path" / "python3.12", '[ "$1" = -c ] || echo "$@"')
    found = checkout.run(checkout.root / "bin" / "onward", path=path)

    assert "on the PATH there is Python 3.9.1." in old.stderr
    assert found.stdout == f"{checkout.root}/bin/_setup.py user\n"


def test_named_python(checkout: Checkout, tmp_path: Path) -> None:
    """ONWARD_PYTHON goes before the PATH, and must be a Python that will do."""
    mine = script(tmp_path / "mine", '[ "$1" = -c ] || echo "mine $*"')
    used = checkout.run(checkout.root / "bin" / "test", ONWARD_PYTHON=str(mine))
    bad = checkout.run(checkout.root / "bin" / "onward", ONWARD_PYTHON="/bin/false")

    assert used.stdout.startswith(f"mine {checkout.root}/bin/_setup.py dev\n")
    assert bad.returncode == 1
    assert "ONWARD_PYTHON is '/bin/false', which is no Python 3.11 or newer" in bad.stderr


def test_first_use_and_what_follows(checkout: Checkout) -> None:
    """Two first starts at once make .venv once; later ones are silent; a changed pyproject.toml installs again."""
    command: list[str | Path] = [checkout.root / "bin" / "onward", "run", "x"]
    env = checkout.environment(None, {"ONWARD_PYTHON": sys.executable})
    starts = [
        subprocess.Popen(command, cwd="/", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    firsts = [start.communicate() for start in starts]
    second = checkout.run(*command)
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    third = checkout.run(*command)

    said = "".join(err for _, err in firsts)
    assert [out for out, _ in firsts] == ["['run', 'x']\n"] * 2, said
    assert said.count("making ") == 1
    assert said.count("installing onward and what it needs to run") == 1
    assert said.count("another start is at work on .venv; waiting for it") == 1
    assert (second.returncode, second.stdout, second.stderr) == (7, "['run', 'x']\n", "")
    assert "installing onward" in third.stderr
    assert "making" not in third.stderr
    assert third.stdout == "['run', 'x']\n"


def test_moved_checkout_installs_again(checkout: Checkout) -> None:
    """A .venv that was made elsewhere is not trusted."""
    checkout.pretend_installed()
    moved = Checkout(checkout.root.with_name("moved"))
    checkout.root.rename(moved.root)
    mine = script(moved.root / "python", '[ "$1" = -c ] || echo "$@"')
    done = moved.run(moved.root / "bin" / "onward", ONWARD_PYTHON=str(mine))

    assert f"{moved.root}/bin/_setup.py user\n" in done.stdout


def test_a_failed_install_is_told_and_can_be_repeated(checkout: Checkout) -> None:
    """When pip fails its words are shown, then what it needs; nothing counts as installed."""
    (checkout.root / "backend.py").write_text("raise SystemExit('broken backend')")
    command = [checkout.root / "bin" / "onward"]
    failed = checkout.run(*command, ONWARD_PYTHON=sys.executable)
    (checkout.root / "backend.py").write_text(BACKEND)
    repeated = checkout.run(*command, ONWARD_PYTHON=sys.executable)

    assert failed.returncode == 1
    assert "pip install --editable . failed; its reason stands above." in failed.stderr
    assert "broken backend" in failed.stderr
    assert 'Traceback (most recent call last):\n  File "' + str(checkout.root) not in failed.stderr
    assert repeated.returncode == 7
    assert "making" not in repeated.stderr


def setup(checkout: Checkout, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """`_setup.py` by itself."""
    return checkout.run(sys.executable, checkout.root / "bin" / "_setup.py", *arguments)


def test_setup_refuses_what_it_cannot_use(checkout: Checkout) -> None:
    """A .venv with an old Python is somebody's own: it is named, not removed."""
    programs = checkout.root / ".venv" / "bin"
    programs.mkdir(parents=True)
    script(programs / "python", "echo 3 9")
    old = setup(checkout, ["user"])
    wrong = setup(checkout, ["nobody"])

    assert old.returncode == 1
    assert f"{checkout.root}/.venv holds Python 3.9; 3.11 or newer is needed." in old.stderr
    assert (programs / "python").exists()
    assert (wrong.returncode, "usage: _setup.py user|dev" in wrong.stderr) == (2, True)


def test_bench(checkout: Checkout) -> None:
    """Without a name the benchmarks are listed with what they measure; a name runs one, an unknown one is told."""
    checkout.pretend_installed("dev")
    (checkout.root / "benchmarks").mkdir()
    (checkout.root / "benchmarks" / "_shared.py").write_text("WORD = 'shared'")
    (checkout.root / "benchmarks" / "quick.py").write_text(
        '"""How quick it is.\n\nMore."""\nimport sys, _shared\nprint(_shared.WORD, __name__, sys.argv[1:])\n'
    )
    (checkout.root / "benchmarks" / "wide").mkdir()
    (checkout.root / "benchmarks" / "wide" / "__main__.py").write_text('"""How wide it is."""\nprint(__name__)\n')
    listed = checkout.run(checkout.root / "bin" / "bench")
    ran = checkout.run(checkout.root / "bin" / "bench", "quick", "--rounds", "2")
    package = checkout.run(checkout.root / "bin" / "bench", "wide")
    unknown = checkout.run(checkout.root / "bin" / "bench", "slow")

    assert (listed.returncode, listed.stdout) == (
        0,
        f"{'quick':<24}How quick it is.\n{'wide':<24}How wide it is.\n",
    )
    assert (ran.returncode, ran.stdout) == (0, "shared __main__ ['--rounds', '2']\n")
    assert (package.returncode, package.stdout) == (0, "__main__\n")
    assert unknown.returncode == 2
    assert "there is no benchmark 'slow'; there are: quick, wide" in unknown.stderr


@pytest.mark.parametrize(("option", "status"), [("--version", 0), ("--no-such-option", 1)])
def test_checks_with_arguments_are_the_tests_alone(option: str, status: int) -> None:
    """Arguments of `bin/test` go to pytest, and its verdict is the exit status."""
    done = subprocess.run(
        [sys.executable, ROOT / "bin" / "_checks.py", option], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert status == done.returncode
    assert "==" not in done.stdout
