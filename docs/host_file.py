"""Writes the reference of host files, for people and for editors, from the tables in `actors/hostfile`.

python docs/host_file.py            write what has changed
python docs/host_file.py --check    write nothing; status 1 if something would be written
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script: what it writes is this checkout's, and it may be started from anywhere

from actors.hostfile import host_file_schema  # noqa: E402
from docs._write import write_or_check  # noqa: E402

HEAD = """\
# Host files

All keys of the file that `onward serve FILE` serves and `onward check FILE` checks. Written by `docs/host_file.py` from the
tables in `actors/hostfile`, by which the file is read: change those, run it, and commit both. [The
guide](../guide/host-file.md) says how it is used; [the JSON Schema](host-file.schema.json) is the same for editors, which
take it from the first line of a file:

```toml
#:schema host-file.schema.json
```

`onward check --schema` writes it.

Paths are seen from the file. Where a limit may be `"none"`, that is none.
"""
WRITTEN = {
    "Agent": "[[agents]]",
    "Approval": "[agents.approval]",
    "Budget": "[budgets.NAME]",
    "Compact": "[agents.compact]",
    "Finalization": "[agents.finalization]",
    "ForcedTool": "tool_choice = { ... }",
    "Gate": "[agents.gate]",
    "Gateway": "[gateway]",
    "GatewayLimits": "[gateway.limits]",
    "Handoff": "[[agents.handoffs]]",
    "Hooks": "[agents.hooks]",
    "Limits": "[agents.limits]",
    "Model": "[models.NAME]",
    "Price": '[prices."KIND:NAME"]',
    "Profile": "[models.NAME.profile]",
    "Runtime": "[runtime]",
    "RuntimeLimits": "[runtime.limits]",
    "StopWhen": "[agents.stop_when]",
    "SubAgent": "[[agents.sub_agents]]",
    "Template": "[templates.NAME]",
    "Tool": "[tools.NAME]",
    "Within": "[agents.gate.within]",
}
"""How each table is written."""


def documents() -> dict[str, str]:
    """Every document by its path in the checkout."""
    schema = host_file_schema()
    return {
        "docs/reference/host-file.md": page(schema),
        "docs/reference/host-file.schema.json": msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
        + "\n",
    }


def page(schema: dict[str, Any]) -> str:
    """The page for people: the file, then its tables in the order in which it names them."""
    parts = [HEAD, *_table("The file", schema)]
    for title in _order(schema):
        parts += _table(f"`{WRITTEN.get(title, title)}`", schema["$defs"][title])
    return "\n".join(parts)


def _order(schema: dict[str, Any]) -> list[str]:
    found: list[str] = []
    waiting = [schema]
    while waiting:
        for title in _named(waiting.pop(0)["properties"]):
            if title not in found:
                found.append(title)
                waiting.append(schema["$defs"][title])
    return found


def _named(value: Any) -> Iterator[str]:
    """The tables that a schema refers to."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for below in value.values():
            yield from _named(below)
    elif isinstance(value, list):
        for below in value:
            yield from _named(below)


def _table(title: str, schema: dict[str, Any]) -> list[str]:
    needed = schema.get("required", [])
    rows = [
        f"| `{name}`{' (needed)' if name in needed else ''} | {_words(key)} | {_cell(key['description'])} |"
        for name, key in schema["properties"].items()
    ]
    return [f"## {title}", "", "| key | holds | |", "|---|---|---|", *rows, ""]


def _words(schema: dict[str, Any]) -> str:
    """A kind of values, in few words."""
    match schema:
        case {"$ref": ref}:
            title = ref.rpartition("/")[2]
            return f"a table, `{WRITTEN.get(title, title)}`"
        case {"anyOf": kinds}:
            return " or ".join(dict.fromkeys(_words(kind) for kind in kinds))
        case {"enum": words}:
            return ", ".join(f"`{word}`" for word in words)
        case {"const": word}:
            return f"`{word}`"
        case {"type": "array", "items": items}:
            return f"a list: {_words(items)}"
        case {"additionalProperties": dict() as items}:
            return f"tables by name: {_words(items)}" if "$ref" in items else f"a table: {_words(items)}"
        case {"pattern": pattern} if ":" in pattern:
            return "`package.module:name`"
        case {"type": "object"}:
            return "a table of JSON values"
        case {"type": kind}:
            return {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}[
                kind
            ]
        case _:
            return "anything"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write or check the documents below `root`; the exit status."""
    return write_or_check(documents(), arguments, root, script="docs/host_file.py", usage=__doc__ or "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
