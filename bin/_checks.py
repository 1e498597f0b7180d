# ruff: file-ignore[implicit-namespace-package, suspicious-subprocess-import, subprocess-without-shell-equals-true]  a script that runs the programs it names itself
"""Every check of the checkout, in the order of how fast they fail; the tests come last.

Without arguments all of it. With arguments only the tests, and the arguments are pytest's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"actors", "protocol"}
CODE = ["actors", "protocol", "bin", "tests", "examples", "benchmarks", "docs"]
NOT_OURS = {
    "ASYNC109": "a deadline in a parameter's name belongs to the callee here, as its name says",
    "ASYNC114": "it wants a list of every startable function; the type checkers hold start() to its signature",
    "ASYNC127": "which HTTP client stands behind the one module that names it is decided in docs/decisions",
    "ASYNC900": "async generators are made by @asynccontextmanager and fixtures alone; ASYNC101 and 119 hold that",
    "ASYNC910": "what need not wait may return at once; the public face alone promises to checkpoint",
    "ASYNC911": "see ASYNC910",
    "ASYNC912": "see ASYNC910",
    "ASYNC913": "see ASYNC910",
}
NOT_IN_TESTS = {
    "ASYNC124": "a fake is async by the interface that it fakes, whether it waits or not",
}


class CheckError(Exception):
    """A check found something; its own words stand above."""


def say(text: str) -> None:
    """Tell the person who waits, in the order of things."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a program, its output straight through. Raises `CheckError` if it fails."""
    status = subprocess.run(command, cwd=cwd, env=env, check=False).returncode
    if status:
        shown = " ".join(str(part) for part in command[:4])
        raise CheckError(f"{shown}{' ...' if command[4:] else ''} ended with status {status}")


def python(*arguments: str) -> None:
    """Run a module or script with the Python of .venv."""
    run(sys.executable, *arguments)


def existing(names: Sequence[str]) -> list[str]:
    """Those of the folders that are there and hold Python."""
    return [name for name in names if any((ROOT / name).rglob("*.py"))]


def lint() -> None:
    """Ruff, its rules and its formatting."""
    python("-m", "ruff", "check", *existing(CODE))
    python("-m", "ruff", "format", "--check", *existing(CODE))


def lint_async() -> None:
    """flake8-async: what is easily done wrong with nurseries, cancel scopes and channels. A process for each core."""
    started: list[subprocess.Popen[bytes]] = []
    cores = os.cpu_count() or 1
    for names, ignored in ((["actors", "protocol", "examples"], NOT_OURS), (["tests"], NOT_OURS | NOT_IN_TESTS)):
        files = [str(path.relative_to(ROOT)) for name in names for path in sorted((ROOT / name).rglob("*.py"))]
        options = ["--enable=ASYNC", f"--disable={','.join(ignored)}"]
        for first in range(min(cores, len(files))):
            command = [sys.executable, "-m", "flake8_async", *options, *files[first::cores]]
            started.append(subprocess.Popen(command, cwd=ROOT))
        faults = [process.wait() for process in started]
        if any(faults):
            raise CheckError(f"flake8-async ended with status {max(faults)}")


def check_mypy() -> None:
    """mypy, strict; the tests too."""
    python("-m", "mypy")


def check_pyright() -> None:
    """pyright, strict."""
    python("-m", "pyright")


def check_wheel() -> None:
    """Build the wheel, look into it, install it into an empty environment and run it in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="onward-wheel-") as name:
        folder = Path(name)
        python("-m", "build", "--wheel", "--outdir", str(folder / "dist"))
        (wheel,) = (folder / "dist").glob("*.whl")
        look_into(wheel)
        smoke_test(wheel, folder)


def look_into(wheel: Path) -> None:
    """The wheel owns exactly the two packages, and both say that they are typed."""
    names = zipfile.ZipFile(wheel).namelist()
    owned = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    if owned != PACKAGES:
        raise CheckError(f"{wheel.name} owns {sorted(owned)}; it must own exactly {sorted(PACKAGES)}")
    missing = {f"{package}/py.typed" for package in PACKAGES} - set(names)
    if missing:
        raise CheckError(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    say(f"{wheel.name}: {len(names)} files, owns {', '.join(sorted(owned))}")


def smoke_test(wheel: Path, folder: Path) -> None:
    """What a user does first, away from the checkout."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    empty = folder / "empty"
    empty.mkdir()
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    run(programs / "onward", "--version", cwd=empty, env=bare)
    run(programs / "onward", "run", "Audit this folder", "--tools", "files:.", cwd=empty, env=bare)


def check_first_use() -> None:
    """What the README promises of a fresh checkout: started twice at once, through a link, from somewhere else."""
    with tempfile.TemporaryDirectory(prefix="onward-first-use-") as name:
        folder = Path(name)
        checkout = folder / "fresh checkout"
        for file in checked_in():
            (checkout / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, checkout / file)
        (folder / "linked").symlink_to(checkout / "bin" / "onward")
        audit = ["run", "Audit this folder", "--tools", f"files:{checkout}", "--max-tool-iterations", "3"]
        command = [str(folder / "linked"), *audit, "--on-limit", "approve"]
        pipe = subprocess.PIPE
        starts = [subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
        ends = [start.communicate() for start in starts]
        statuses = [start.returncode for start in starts]
        if statuses != [0, 0] or "Audit of .: " not in ends[0][0] or ends[0][0] != ends[1][0]:
            said = "\n".join(text for end in ends for text in end)
            raise CheckError(f"two first starts at once ended with {statuses} and said:\n{said}")


def checked_in() -> list[str]:
    """The files of the checkout, those not yet committed included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def run_tests(*arguments: str) -> str:
    """Run pytest; return its closing line. Raises `CheckError` with that line if a test fails."""
    measured = [] if arguments else ["-m", "coverage", "run", "--parallel-mode"]
    shared = [] if arguments else ["-n", "auto", "--dist", "worksteal"]
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    command = [sys.executable, *measured, "-m", "pytest", *colour, *shared, *arguments]
    closing = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace") as tests:
        assert tests.stdout is not None
        for line in tests.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            closing = line.strip() or closing
    if tests.returncode:
        raise CheckError(closing)
    return closing


def measure() -> None:
    """Report what the tests did not reach."""
    python("-m", "coverage", "combine", "--quiet")
    python("-m", "coverage", "report")


def check_all() -> int:
    """All checks, whatever the earlier ones found; the tests' closing line is the last but the verdict's."""
    faults: list[str] = []
    closing: list[str] = []
    steps: list[tuple[str, Callable[[], object]]] = [
        ("ruff", lint),
        ("flake8-async", lint_async),
        ("mypy", check_mypy),
        ("pyright", check_pyright),
        ("wheel", check_wheel),
        ("first use", check_first_use),
        ("tests", lambda: closing.append(run_tests())),
        ("coverage", measure),
    ]
    for name, step in steps:
        say(f"== {name}")
        began = time.monotonic()
        try:
            step()
        except CheckError as error:
            faults.append(f"{name}: {error}")
            say(f"== {name} FAILED: {error}")
        else:
            say(f"== {name} passed in {time.monotonic() - began:.0f} s")
    say("\n".join(["", *(f"FAILED {fault}" for fault in faults), *closing]))
    return 1 if faults else 0


def main() -> int:
    """The exit status: 0 if everything passed."""
    try:
        if sys.argv[1:]:
            run_tests(*sys.argv[1:])
            return 0
        return check_all()
    except CheckError:
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
