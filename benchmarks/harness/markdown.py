"""What the writers of `RESULTS.md` share: tables, the machine in words, and regions that a program rewrites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ("grid", "machine", "put_region", "regions", "table", "words")

_REGION = re.compile(r"^<!-- (?P<name>[^\n]+) -->\n.*?^<!-- end of (?P=name) -->\n", re.DOTALL | re.MULTILINE)


def machine(told: Mapping[str, Any], *, quick: bool) -> str:
    """Where and when it was measured."""
    return (
        f"{told['date']}, {told['python']}, {told['system']}, {told['cpus']} cores, shared with others.\n"
        f"An empty loop of a million rounds takes {told['loop_ms']:g} ms of CPU: read absolute times by that.\n"
        + ("\n**Quick rounds: these figures prove little.**\n" if quick else "")
    )


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words."""

    def line(cells: Sequence[str]) -> str:
        return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"

    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(map(line, rows))


def table(title: str, rows: Mapping[str, Any]) -> str:
    """A table of numbers: a row for each name, with a column for each number where there are several."""
    first = next(iter(rows.values()))
    columns = list(first) if isinstance(first, dict) else []
    cells = [
        [words(name), *[f"{number:g}" for number in ([value[one] for one in columns] if columns else [value])]]
        for name, value in rows.items()
    ]
    return "\n" + grid([words(title), *(columns or [""])], cells)


def words(name: str) -> str:
    """A name as it stands in a text."""
    return name.replace("_", " ")


def regions(text: str) -> list[str]:
    """What stands between marks, each with its marks."""
    return [found.group() for found in _REGION.finditer(text)]


def put_region(text: str, name: str, body: str) -> str:
    """The text with that body between the marks of that name: instead of the old one, or at the end."""
    whole = f"<!-- {name} -->\n{body}<!-- end of {name} -->\n"
    for found in _REGION.finditer(text):
        if found["name"] == name:
            return text[: found.start()] + whole + text[found.end() :]
    return f"{text}\n{whole}"
