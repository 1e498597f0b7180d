"""The source of the product, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "actors")


def modules(*folders: str) -> list[Path]:
    """Every module of these folders of the checkout, in order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """The dotted name of a module: `actors.kit` for its `__init__`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that is imported, anywhere in the file, as an absolute name with its line."""
    package = list(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            if node.module and not (node.level and len(stem) < 2):
                yield ".".join(stem), node.lineno
            else:
                for alias in node.names:
                    yield ".".join([*stem, alias.name]), node.lineno
