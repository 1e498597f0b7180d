"""Writes what tells the wire to people and to programs: the page, JSON Schema, AsyncAPI and TypeScript.

    python docs/wire.py            write what has changed
    python docs/wire.py --check    write nothing; status 1 if something would be written

All of it comes from the types in `protocol/`; the texts of fields, which the interpreter does not keep, from their source.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script: what it writes is this checkout's, and it may be started from anywhere

from docs._asyncapi import asyncapi  # noqa: E402
from docs._texts import field_texts, texts_module  # noqa: E402
from docs._typescript import typescript  # noqa: E402
from docs._wire_page import wire_page  # noqa: E402
from docs._write import write_or_check  # noqa: E402
from protocol.wire.schema import wire_schema  # noqa: E402


def documents() -> dict[str, str]:
    """Every document by its path in the checkout."""
    texts = field_texts(sources(), wire_schema({})["$defs"])
    schema = wire_schema(texts)
    return {
        "actors/client/js/protocol.d.ts": typescript(schema),
        "docs/reference/onward.v1.asyncapi.json": _json(asyncapi(schema)),
        "docs/reference/onward.v1.schema.json": _json(schema),
        "docs/reference/wire.md": wire_page(schema),
        "protocol/wire/_field_texts.py": texts_module(texts),
    }


def sources() -> list[Path]:
    """The modules of what goes over the wire."""
    protocol = ROOT / "protocol"
    wire = [protocol / "wire" / f"{name}.py" for name in ("commands", "errors", "notifications", "replies", "words")]
    used = [protocol / f"{name}.py" for name in ("limits", "result", "turns", "usage")]
    return [*sorted((protocol / "events").glob("*.py")), *used, *wire]


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write or check the documents below `root`; the exit status."""
    return write_or_check(documents(), arguments, root, script="docs/wire.py", usage=__doc__ or "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
