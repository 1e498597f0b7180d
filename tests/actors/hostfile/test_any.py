"""Whatever a host file holds: it is read, or told what is wrong with it, and a place has its line."""

from __future__ import annotations

import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.hostfile import HostFileError, read_host_file
from actors.hostfile._host_tables import HOST
from actors.hostfile._kinds import Choice, Either, Kind, ListOf, MapOf, OrNone, Placed, Plain
from actors.hostfile._places import Lines, written
from actors.hostfile._table import Table

from .conftest import OWN, SCHEMA, own_modules

WORDS = (
    "a", "b", "rules", "openai:x", "ollama:x", "files:.", "files:x", "own:add", "own:NUMBER", "broken:x", "none", "ask",
    "http://127.0.0.1:1/v1", "HOME", "tokens", "0.0.0.0", "[::1]:0", "", " ", "\u0000", "\u202e", "x" * 300, "~nobody/x",
    "search", "llm_calls", "http://[", "max_llm_calls", "sk-0123456789012345678901",
)  # fmt: skip
SINGLE = st.one_of(
    st.sampled_from(WORDS),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**63, -(2**63), 10**30, 10**400]),
    st.floats(width=32),
    st.dates(),
    st.times(),
    st.datetimes(),
)
ANY = st.recursive(
    SINGLE,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", "model", "x", "")), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def host_tables(draw: st.DrawFn) -> dict[str, Any]:
    """A host file's table."""
    found: dict[str, Any] = drawn(draw, HOST)
    found.setdefault("agents", [{"name": "a"}])
    return found


def drawn(draw: st.DrawFn, kind: Kind) -> Any:
    """A value of a kind, most of the time of its form; and now and then anything."""
    if kind is not HOST and draw(st.integers(0, 19)) == 0:
        return draw(ANY)
    match kind:
        case Table():
            keys = draw(st.lists(st.sampled_from(kind.keys), max_size=4, unique_by=lambda key: key.name))
            table = {key.name: drawn(draw, key.kind) for key in keys}
            for key in kind.keys:
                if key.needed and draw(st.integers(0, 9)):
                    table.setdefault(key.name, drawn(draw, key.kind))
            return {**table, **({} if draw(st.integers(0, 19)) else {draw(st.sampled_from(("", "x", "api_key"))): "y"})}
        case ListOf():
            return [drawn(draw, kind.item) for _ in range(draw(st.integers(0, 3)))]
        case MapOf():
            names = draw(st.lists(st.sampled_from(("a", "b", "a b", "")), max_size=2, unique=True))
            return {name: drawn(draw, kind.item) for name in names}
        case Either():
            return drawn(draw, draw(st.sampled_from(kind.kinds)))
        case Placed() | OrNone():
            return drawn(draw, kind.kind)
        case Choice():
            return draw(st.sampled_from(list(kind.words)))
        case Plain(form=form) if form is bool:
            return draw(st.booleans())
        case Plain(form=form) if form is str:
            return draw(st.sampled_from(WORDS))
        case Plain(form=form) if form is dict:
            return draw(st.dictionaries(st.sampled_from(("a", "by", "token")), SINGLE, max_size=2))
        case _:
            return draw(st.integers(-1, 3) | st.floats(width=32))


def inline(value: Any) -> str:
    """A value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
        case dict():
            return "{" + ", ".join(f"{inline(key)} = {inline(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(inline, value)) + "]"
        case int() | float():
            return str(value)
        case _:
            return str(value.isoformat())


def document(table: dict[str, Any]) -> str:
    """A table as a TOML document, a line for each key."""
    return "".join(f"{inline(key)} = {inline(value)}\n" for key, value in table.items())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A folder for all examples, with modules of one's own."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "own.py").write_text(OWN)
    (folder / "broken.py").write_text("1 / 0\n")
    with own_modules():
        yield folder


def read(path: Path, text: str) -> None:
    """It is read, and fits the schema; or every fault has a place in it."""
    path.write_text(text, encoding="utf-8")
    try:
        read_host_file(path)
        SCHEMA.validate(tomllib.loads(text))
    except HostFileError as error:
        lines = text.count("\n") + 1

        assert error.faults
        assert [] == [fault for fault in error.faults if not 0 <= fault.line <= lines]
        assert len(set(error.faults)) == len(error.faults)
        assert "0123456789012345678901" not in str(error)


@pytest.mark.slow
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(table=host_tables())
def test_whatever_the_keys_hold(place: Path, table: dict[str, Any]) -> None:
    """Nothing but a `HostFileError` comes of it, each of whose faults stands on a line of the file; no key is shown."""
    read(place / "keys.toml", document(table))


@settings(deadline=None)
@given(text=st.text(st.characters(codec="utf-8")))
def test_whatever_the_text_is(place: Path, text: str) -> None:
    """TOML or not."""
    read(place / "text.toml", text)


FILLERS = (
    "",
    "# x",
    "system = '''a\n\nb'''",
    "tools = [\n  # y\n]",
    'model = """\nname = "x"\n"""',
    "hooks.on_step = 1",
)


@given(st.lists(st.sampled_from(FILLERS), unique=True), st.lists(st.sampled_from(FILLERS), unique=True))
def test_the_line_is_that_of_the_key(before: list[str], behind: list[str]) -> None:
    """Whatever stands before and behind it, and over however many lines."""
    head = "\n".join(["[[agents]]", "name = 'a'", *before, ""])
    rest = "\n".join([one for one in behind if one not in before])
    text = f"{head}wrong = {{ a = [1,\n 2] }}\n{rest}\n"
    lines = Lines(text)

    assert tomllib.loads(text)
    assert head.count("\n") + 1 == lines.line_of(("agents", 0, "wrong"))
    assert head.count("\n") + 1 == lines.line_of(("agents", 0, "wrong", "a"))
    assert (1, 2) == (lines.line_of(("agents", 0)), lines.line_of(("agents", 0, "name")))
    assert head.count("\n") + 1 == lines.line_of(("agents", 0, "wrong", "not", "there"))


def test_a_place_is_written_as_in_the_file() -> None:
    """With dots and numbers, and quotes where a key needs them."""
    assert "agents[0].limits.max_llm_calls" == written(("agents", 0, "limits", "max_llm_calls"))
    assert "prices.'openai:x'" == written(("prices", "openai:x"))
