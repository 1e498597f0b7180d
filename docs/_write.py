"""What the scripts of this folder have in common: documents are written where they differ, or it is said that they do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ("write_or_check",)


def write_or_check(documents: Mapping[str, str], arguments: list[str], root: Path, *, script: str, usage: str) -> int:
    """Write the documents below `root` that are not there as they should be; with `--check`, only name them.

    The exit status: 0, or 1 where `--check` found one, or 2 for other arguments.
    """
    if arguments not in ([], ["--check"]):
        print(usage, file=sys.stderr)
        return 2
    wanted = {root / name: text for name, text in documents.items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(path.relative_to(root))
    if arguments:
        if stale:
            print(f"not as the code says: run python {script}", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    return 0
