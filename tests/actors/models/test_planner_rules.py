"""The planner's rules: what each message is read as, and what is not guessed at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.planner._rules import Audit, Lookup, Narrowing, Wish, read_wish


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("Audit this folder", Audit(".")),
        ("audit", Audit(".")),
        ("Audit the repository.", Audit(".")),
        ("Please audit this project!", Audit(".")),
        ("Audit .", Audit(".")),
        ("survey src/", Audit("src")),
        ("audit the folder 'my docs'", Audit("my docs")),
        ("audit ./src/../src", Audit("src")),
        ("count lines in README.md", Lookup("count_lines", "README.md")),
        ("Count the lines of the file a/b.py, please.", Lookup("count_lines", "a/b.py")),
        ("How many lines does a.py have?", Lookup("count_lines", "a.py")),
        ("read a/b.txt", Lookup("read_text", "a/b.txt")),
        ("show `x y.txt`", Lookup("read_text", "x y.txt")),
        ("list", Lookup("list_dir", ".")),
        ("list the files in src", Lookup("list_dir", "src")),
        ("ls docs", Lookup("list_dir", "docs")),
        ("search for needle", Lookup("search", ".", "needle")),
        ("search for TODO in this folder", Lookup("search", ".", "TODO")),
        ("grep 'def main' in src.", Lookup("search", "src", "def main")),
        ("find x in a.txt", Lookup("search", "a.txt", "x")),
    ],
)
def test_task(prompt: str, task: Audit | Lookup) -> None:
    """A prompt of a known form is that task, whatever its case, politeness and punctuation."""
    assert Wish(task) == read_wish(prompt)


@pytest.mark.parametrize(
    ("text", "skipped", "only"),
    [
        ("skip tests", ("tests",), ()),
        ("skip tests/, docs and *.md, please", ("tests", "docs", "*.md"), ()),
        ("ignore the folder ./a/b", ("a/b",), ()),
        ("without the directories x and y", ("x", "y"), ()),
        ("only *.py", (), ("*.py",)),
        ("only .py and .md files", (), ("*.py", "*.md")),
        ("only src/*.py, but skip tests", ("tests",), ("src/*.py",)),
    ],
)
def test_narrowing(text: str, skipped: tuple[str, ...], only: tuple[str, ...]) -> None:
    """Words that narrow are read with all the names behind them."""
    assert Wish(narrowing=Narrowing(skipped, only)) == read_wish(text)


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Audit this folder, only *.py, skip tests", Wish(Audit("."), Narrowing(("tests",), ("*.py",)))),
        ("Audit src without docs", Wish(Audit("src"), Narrowing(("docs",)))),
        ("go on", Wish(resumes=True)),
        ("Please continue, but skip docs.", Wish(resumes=True, narrowing=Narrowing(("docs",)))),
        ("report now", Wish(ends=True)),
        ("That is enough!", Wish(ends=True)),
        ("skip the rest", Wish(ends=True)),
    ],
)
def test_control(text: str, wish: Wish) -> None:
    """A task may be narrowed in the same sentence; words of control are read as such."""
    assert wish == read_wish(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is the meaning of life?",
        "Read me a story",
        "find me a place to stay",
        "Write a poem, only short ones",
        "skip it",
        "search for love in the time of cholera",
        "audit my books and tell me what you think",
        "",
        "audit " * 1000,
    ],
)
def test_no_rule(text: str) -> None:
    """What matches no rule is not guessed at."""
    assert not read_wish(text).understood


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No text makes the rules fail."""
    wish = read_wish(text)

    assert wish.understood == (wish != Wish())


def test_narrowing_of_paths() -> None:
    """A name skips what has it anywhere on its way; a path skips what is below it; `only` looks at files."""
    narrowing = Narrowing(("tests", "docs/old"), ("*.py", "data/*.csv"))

    assert narrowing.passes_over("a/tests/b.py")
    assert narrowing.passes_over("docs/old/x.py")
    assert not narrowing.passes_over("docs/new/x.py")
    assert narrowing.keeps("docs/x.py")
    assert narrowing.keeps("data/x.csv")
    assert not narrowing.keeps("x.csv")
    assert not narrowing.keeps("tests/x.py")
