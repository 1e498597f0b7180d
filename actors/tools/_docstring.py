"""What a docstring in Google style says to a model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

__all__ = ("argument_texts", "first_paragraph")

_SECTION = re.compile(r"(args|arguments|parameters|params|keyword args|keyword arguments):\s*", re.IGNORECASE)
_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?\s*:(?:\s+(?P<text>.*))?")


def first_paragraph(docstring: str | None) -> str:
    """The docstring up to its first blank line, on one line; `""` if there is none."""
    lines: list[str] = []
    for line in _lines(docstring):
        if not line.strip() or _SECTION.fullmatch(line.strip()):
            break
        lines.append(line.strip())
    return " ".join(lines)


def argument_texts(docstring: str | None) -> dict[str, str]:
    """Per argument, what the `Args:` section says of it, on one line."""
    texts: dict[str, list[str]] = {}
    name = ""
    entry_indent = 0
    for line in _section(_lines(docstring)):
        text = line.strip()
        indent = _indent(line)
        entry = _ENTRY.fullmatch(text)
        # An entry stands at the first one's indent; what stands deeper goes on with the entry before.
        if entry and (not texts or indent <= entry_indent):
            name, entry_indent = entry["name"], indent
            texts[name] = [entry["text"] or ""]
        elif name:
            texts[name].append(text)
    return {name: " ".join(parts).strip() for name, parts in texts.items()}


def _section(lines: Iterable[str]) -> Iterable[str]:
    """The non-blank lines that stand below the header and deeper than it."""
    header: int | None = None
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if header is None:
            if _SECTION.fullmatch(line.strip()):
                # How deep the first line of a docstring stands is not known: what follows has an indent of its own.
                header = _indent(line) if number else -1
        elif _indent(line) > header:
            yield line
        else:
            return


def _lines(docstring: str | None) -> list[str]:
    return inspect.cleandoc(docstring).splitlines() if docstring else []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
