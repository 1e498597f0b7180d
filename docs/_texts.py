"""The texts that stand under fields and values in the source: what the interpreter itself does not keep."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from protocol.wire.schema import plain

Texts = dict[str, str]
Classes = Mapping[str, tuple[list[str], Texts]]


def field_texts(paths: Iterable[Path], schemas: Mapping[str, Any]) -> Texts:
    """By `Class.field`, for every property of `schemas`; a class has also what stands in the ones it is made from.

    Raises `ValueError` if the modules at `paths` have two classes of one name.
    """
    classes: dict[str, tuple[list[str], Texts]] = {}
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                if node.name in classes:
                    raise ValueError(f"{path}: there is another class {node.name}")
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                classes[node.name] = (bases, dict(_texts_in(node.body)))
    return {
        f"{name}.{field}": text
        for name in sorted(schemas)
        for field in schemas[name].get("properties", ())
        if (text := _text_of(name, field, classes))
    }


def value_texts(path: Path, name: str | None = None) -> Texts:
    """By name, for the values of a module, or of a class in it."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if name is None:
        return dict(_texts_in(body))
    return next(dict(_texts_in(node.body)) for node in body if isinstance(node, ast.ClassDef) and node.name == name)


def _text_of(name: str, field: str, classes: Classes) -> str:
    bases, texts = classes.get(name, ([], {}))
    if field in texts:
        return texts[field]
    return next((text for base in bases if (text := _text_of(base, field, classes))), "")


def _texts_in(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Each name that is given a type or a value, and the text directly below. A name's last underscore is Python's."""
    for node, below in itertools.pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if (
            isinstance(target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield target.id.rstrip("_"), plain(" ".join(inspect.cleandoc(below.value.value).split()))


def about(method: str, schemas: Mapping[str, Any]) -> str:
    """What a command does, in a line."""
    taken = schemas["Params"]["properties"][method]
    text: str = taken.get("description") or schemas[taken["$ref"].rpartition("/")[2]]["description"]
    return text.splitlines()[0]


def texts_module(texts: Texts) -> str:
    """The module that keeps them for the product, which reads no source."""
    lines = "".join(f"    {_quoted(key)}: {_quoted(text)},\n" for key, text in sorted(texts.items()))
    return f'''\
"""What stands under the fields in the source, by `Class.field`. Written by `docs/wire.py`: change it there."""

from __future__ import annotations

__all__ = ("FIELD_TEXTS",)

FIELD_TEXTS: dict[str, str] = {{
{lines}}}
"""Descriptions of fields, for the schema."""
'''


def _quoted(text: str) -> str:
    """As the formatter writes it: double quotes, unless single ones save a backslash."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
