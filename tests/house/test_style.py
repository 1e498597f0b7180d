"""The shape of the source: small modules, public names that say what they promise, tests that say what they prove."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from .source import ROOT, modules, name_of, tree_of

PUBLIC = [path for path in modules("protocol", "actors") if path.stem != "__main__"]
MOST_LINES = 400
MAY_CATCH = {
    "actors.cli._main",  # where an interrupt becomes an exit status
    "actors.runtime._open",  # which raises it again, as itself, when all has stopped
}
TEST_MODULES = [path for path in modules("tests") if path.stem.startswith("test_")]


def exported(path: Path) -> list[str]:
    """The names in a module's `__all__`."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []


@pytest.mark.parametrize("path", modules("protocol", "actors", "bin", "examples", "benchmarks"), ids=name_of)
def test_no_module_is_too_long(path: Path) -> None:
    """A module has one reason to exist; at 400 lines it has two."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", modules("protocol", "actors"), ids=name_of)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    """Its first line is a sentence for the one who opens it."""
    assert ast.get_docstring(tree_of(path))


@pytest.mark.parametrize("path", PUBLIC, ids=name_of)
def test_every_public_name_exists(path: Path) -> None:
    """What `__all__` promises can be imported, once."""
    module = importlib.import_module(name_of(path))
    names = exported(path)

    assert [] == [name for name in names if not hasattr(module, name)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", PUBLIC, ids=name_of)
def test_every_public_name_has_its_promise(path: Path) -> None:
    """Classes, functions, and their public methods and properties say what they promise."""
    module = importlib.import_module(name_of(path))
    bare = [f"{name}{member}" for name in exported(path) for member in undocumented(getattr(module, name))]

    assert [] == bare


def undocumented(value: Any) -> list[str]:
    """`[""]` if it says nothing of itself, and each public member that does not."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return []  # a type alias or a value: its text stands under it, and is read in the source
    found = [] if own_docstring(value) else [""]
    if inspect.isclass(value) and value.__module__.split(".")[0] in {"protocol", "actors"}:
        for name, member in vars(value).items():
            plain = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(plain) and not inherits_a_promise(value, name, plain):
                found.append(f".{name}")
    return found


def own_docstring(value: Any) -> str | None:
    text: str | None = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    return text


def inherits_a_promise(kind: type, name: str, function: Any) -> bool:
    """Whether it says something, or an interface above it does."""
    return bool(function.__doc__) or any(
        getattr(vars(base).get(name), "__doc__", None) for base in kind.__mro__[1:] if name in vars(base)
    )


@pytest.mark.parametrize("path", PUBLIC, ids=name_of)
def test_public_values_have_a_text(path: Path) -> None:
    """An alias or a table that users see is followed by a text that says what it is; its name alone does not."""
    body = tree_of(path).body
    public = public_names(path)
    bare = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        target = assigned_name(node)
        if target in public and not is_text(following):
            bare.append(target)

    assert [] == bare


def public_names(path: Path) -> set[str]:
    """What users see of a module: all it exports, or of a private one what its package exports."""
    if not any(part.startswith("_") for part in name_of(path).split(".")):
        return set(exported(path))
    return set(exported(path)) & set(exported(path.with_name("__init__.py")))


def assigned_name(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@pytest.mark.parametrize(
    "path", [path for path in modules("actors", "protocol") if path.stem == "__init__"], ids=name_of
)
def test_a_package_re_exports_and_nothing_else(path: Path) -> None:
    """Its `__init__` holds imports and `__all__`; code stands in the modules."""
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.If)
    others = [
        node
        for node in tree_of(path).body
        if not isinstance(node, kinds) and not (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
    ]

    assert [] == [ast.unparse(node)[:60] for node in others]


@pytest.mark.parametrize("path", modules("actors", "protocol"), ids=name_of)
def test_nothing_swallows_a_cancel(path: Path) -> None:
    """No bare `except` and no `except BaseException`; who catches a cancel or an interrupt raises it again."""
    swallowed = [
        ast.unparse(handler).splitlines()[0]
        for handler in ast.walk(tree_of(path))
        if isinstance(handler, ast.ExceptHandler) and catches_too_much(handler) and name_of(path) not in MAY_CATCH
    ]

    assert [] == swallowed


def catches_too_much(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "BaseException"
    if re.search(r"BaseException\b", caught):
        return True
    again = any(isinstance(node, ast.Raise) for node in handler.body)
    return bool(re.search(r"Cancelled|KeyboardInterrupt", caught)) and not again


@pytest.mark.parametrize("path", TEST_MODULES, ids=name_of)
def test_every_test_module_says_what_it_is_about(path: Path) -> None:
    """A reader of a failure opens the file and is told."""
    assert ast.get_docstring(tree_of(path))


@pytest.mark.parametrize("path", TEST_MODULES, ids=name_of)
def test_every_test_states_its_promise(path: Path) -> None:
    """One sentence each, in the words of the one who relies on it; a test without an assertion proves nothing."""
    tests = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]
    silent = [node.name for node in tests if not ast.get_docstring(node)]

    assert [] == silent


@pytest.mark.parametrize("path", TEST_MODULES, ids=name_of)
def test_no_test_sleeps_or_is_skipped(path: Path) -> None:
    """Time is virtual, and what is there is run."""
    source = path.read_text(encoding="utf-8")
    if path == Path(__file__):
        return

    assert [] == re.findall(r"time\.sleep\(|pytest\.skip\(|mark\.skip|mark\.xfail", source)


def test_the_repository_speaks_of_the_product_alone() -> None:
    """No machine's paths and no registries' hosts in what is shipped."""
    words = re.compile(r"/work/|/tmp/|/home/|pypi\.org|files\.pythonhosted", re.IGNORECASE)
    shipped = modules("actors", "protocol", "bin", "examples")

    assert {} == {
        str(path.relative_to(ROOT)): words.findall(path.read_text(encoding="utf-8"))
        for path in shipped
        if words.search(path.read_text(encoding="utf-8"))
    }
