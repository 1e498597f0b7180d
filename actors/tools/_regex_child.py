"""The program that matches regular expressions for `search`: a process of its own, because a bad one never ends.

Python's `re` holds the interpreter while it matches, so that one pattern could stop every task of the host; a process
can be killed. Run as a script, it reads JSON lines: first the pattern, then a file's size and what follows are its
bytes. It answers each with a JSON line.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    try:
        pattern = re.compile(settings["pattern"], re.IGNORECASE if settings["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as error:
        _answer({"error": str(error)})
        return
    _answer({})
    while header := sys.stdin.buffer.readline():
        size, keep = json.loads(header)
        lines = sys.stdin.buffer.read(size).decode("utf-8", "replace").split("\n")
        if not lines[-1]:
            lines.pop()  # what a last newline ends is no line more
        found = [number for number, line in enumerate(lines, 1) if pattern.search(line)]
        _answer([len(found), found[:keep]])


def _answer(value: Any) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
