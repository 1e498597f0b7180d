"""The guide holds: each of its programs runs as it stands, offline, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))


class Program(NamedTuple):
    """A block of Python, with the block of text under it if there is one."""

    page: str
    line: int
    """Of its first line in the page, so that a traceback points there."""
    source: str
    output: str | None


def programs(page: Path) -> list[Program]:
    text = page.read_text(encoding="utf-8")
    block = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
    return [
        Program(str(page), text.count("\n", 0, found.start(1)) + 1, found[1], found[2])
        for found in block.finditer(text)
    ]


PROGRAMS = [program for page in PAGES for program in programs(page)]
NAMES = [f"{Path(program.page).name}:{program.line}" for program in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_prints_what_stands_under_it(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who copies it sees the same; each has all it needs, and starts trio itself where it needs it."""
    code = compile("\n" * (program.line - 1) + program.source, program.page, "exec")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(code, namespace)
    printed = capsys.readouterr()

    assert (program.output or "", "") == (printed.out, printed.err)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_python_is_run(page: Path) -> None:
    """None is passed over for the way it is fenced."""
    text = page.read_text(encoding="utf-8")

    assert len(re.findall(r"```\s*py", text)) == len(programs(page)) > 0


@pytest.mark.slow
def test_the_programs_pass_the_type_checker(tmp_path: Path) -> None:
    """What a reader copies is typed as strictly as the rest."""
    files = [tmp_path / f"program_{number}.py" for number in range(len(PROGRAMS))]
    for file, program in zip(files, PROGRAMS, strict=True):
        file.write_text(program.source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (f"Success: no issues found in {len(files)} source files\n", 0) == (done.stdout, done.returncode)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "state-machines.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading that is in it."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8"))
    dead = [(name, heading) for name, heading in links if not leads_somewhere(page.parent / name, heading)]

    assert [] == dead
    assert links


def leads_somewhere(path: Path, heading: str) -> bool:
    if not path.exists():
        return False
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
    return not heading or heading in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
