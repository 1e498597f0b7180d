# ruff: file-ignore[implicit-namespace-package]  a script
"""Run `benchmarks/NAME.py` or `benchmarks/NAME/`, or say which there are."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def main() -> int:
    """Run the benchmark that is named first; the rest of the arguments is its own."""
    found = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if not path.stem.startswith("_")}
    found |= {path.parent.name: path for path in sorted(FOLDER.glob("*/__main__.py"))}
    if len(sys.argv) < 2:
        for name, path in found.items():
            about = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
            sys.stdout.write(f"{name:<24}{about}\n")
        return 0
    name = sys.argv[1]
    if name not in found:
        sys.stderr.write(f"bench: there is no benchmark {name!r}; there are: {', '.join(found) or 'none'}\n")
        return 2
    sys.argv = [str(found[name]), *sys.argv[2:]]
    sys.path.insert(0, str(FOLDER))
    runpy.run_path(str(found[name]), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
