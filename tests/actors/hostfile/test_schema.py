"""The schema of host files and their reference: of the tables that the file is read by, and as they are checked in."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from actors.hostfile import host_file_schema
from docs.host_file import WRITTEN, documents, main, page

from .conftest import SCHEMA

ROOT = Path(__file__).resolve().parents[3]
A = '[[agents]]\nname = "a"\n'


def test_it_is_a_schema() -> None:
    """Of the dialect that it names; every reference leads somewhere, and every definition is used."""
    schema = host_file_schema()
    text = str(schema)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == set(re.findall(r"#/\$defs/(\w+)", text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agents = 3",
        A + "modle = 'x'",
        A + "gate = 'aks'",
        A + "limits = { max_llm_calls = 0 }",
        A + "limits = { max_llm_calls = 'many' }",
        A + "gate = { timeout_seconds = -1 }",
        A + "tools = 'files:.'",
        A + "sub_agents = [{}]",
        A + "temperature = true",
        A + "finalization = { budget = 3 }",
        A + "hooks = { on_step = 'x' }",
        "[models.'a b']\nmodel = 'rules'\n" + A,
        "prices = { x = { input = 1 } }\n" + A,
        "runtime = { tool_threads = 'many' }\n" + A,
        "gateway = { limits = { depth = 0 } }\n" + A,
    ],
)
def test_what_the_reader_refuses_for_its_form_does_not_fit(text: str) -> None:
    """An editor marks what `onward check` would refuse."""
    found: dict[str, Any] = tomllib.loads(text)

    assert not SCHEMA.is_valid(found)


def test_every_key_is_in_the_page() -> None:
    """Of every table, under its heading."""
    schema = host_file_schema()
    said = page(schema)

    assert [] == [title for title in schema["$defs"] if f"## `{WRITTEN[title]}`" not in said]
    assert [] == [
        (title, name)
        for title, table in schema["$defs"].items()
        for name in table["properties"]
        if f"| `{name}`" not in said.partition(f"## `{WRITTEN[title]}`")[2].partition("\n## ")[0]
    ]


@pytest.mark.slow
@pytest.mark.peer
def test_what_is_checked_in_is_what_the_tables_say(tmp_path: Path) -> None:
    """Whoever changes a table writes the documents anew: `python docs/host_file.py`, started from anywhere."""
    command = [sys.executable, str(ROOT / "docs" / "host_file.py"), "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ("", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_documents_that_have_drifted_are_found_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not as the tables say, and one that is missing: named, and then put right."""
    main([], tmp_path)
    page_, schema = [tmp_path / name for name in documents()]
    page_.write_text("old", encoding="utf-8")
    schema.unlink()
    capsys.readouterr()
    status = main(["--check"], tmp_path)
    said = capsys.readouterr()

    assert (1, sorted(documents())) == (status, said.out.splitlines())
    assert "run python docs/host_file.py" in said.err
    assert (0, 0) == (main([], tmp_path), main(["--check"], tmp_path))
