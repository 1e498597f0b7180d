"""Four tools that look at files below one directory and nowhere else. Their results can be checked with wc and grep."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec

from protocol.errors import ToolError
from protocol.text import clean

from ._pages import read_page, tally
from ._root import Root, open_root
from ._search import Settings, search_tree
from ._tool import Tool, tool

__all__ = ("files",)

_MOST_ENTRIES = 1000
_MOST_CHARS = 50_000
_ENTRY_CHARS = 45  # what stands around a name in the JSON of an entry

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Matches = Annotated[int, msgspec.Meta(ge=1, le=1000)]


def files(root: str | os.PathLike[str]) -> tuple[Tool, ...]:
    """The tools `list_dir`, `read_text`, `count_lines` and `search`, confined to the directory `root`.

    No path leads out: not by `..`, not an absolute one, not by a link inside the tree. Pipes, sockets and devices are
    never opened. All results are objects that stay below 100 000 characters of JSON, unless most of a text must be
    escaped. What goes wrong is a `ToolError` whose text names paths relative to `root`, and never `root` itself.

    Raises `SpecError` if `root` is no directory.
    """
    tree = open_root(root)
    return (_list_dir(tree), _read_text(tree), _count_lines(tree), _search(tree))


def _list_dir(tree: Root) -> Tool:
    @tool
    def list_dir(path: str = ".") -> dict[str, Any]:
        """List a directory: the name and kind of each entry, sorted by name, and the size of files in bytes.

        Args:
            path: the directory, relative to the root; "." is the root itself.
        """
        place = tree.place(path)
        if tree.look(place).kind == "file":
            raise ToolError(f"{str(place)!r} is a file; read_text shows its lines, count_lines its size")
        entries = tree.entries(place)
        shown: list[dict[str, Any]] = []
        chars = 0
        for entry in entries[:_MOST_ENTRIES]:
            chars += len(entry.name) + _ENTRY_CHARS
            if chars > _MOST_CHARS:
                break
            size = entry.size if entry.kind == "file" else None
            shown.append({"name": clean(entry.name), "kind": entry.kind, "bytes": size})
        return {"path": str(place), "entries": shown, "more": len(entries) - len(shown)}

    return list_dir


def _read_text(tree: Root) -> Tool:
    @tool
    def read_text(path: str, start_line: _Count = 1, max_lines: _Count = 400) -> dict[str, Any]:
        """Read lines of a text file. To go on, call again with start_line = start_line + lines, up to total_lines.

        Args:
            path: the file, relative to the root.
            start_line: the first line to read; lines are numbered from 1.
            max_lines: how many lines at most; fewer come where they are long.
        """
        place = tree.place(path)
        with tree.open(place) as (file, size):
            found = tally(file, size)
            if found.binary:
                raise ToolError(f"{str(place)!r} is a binary file of {found.size} bytes, which is not shown")
            if start_line > max(found.lines, 1):
                raise ToolError(f"{str(place)!r} has {found.lines} lines; there is no line {start_line}")
            page = read_page(file, found, start_line=start_line, max_lines=max_lines, max_chars=_MOST_CHARS)
        return {
            "path": str(place),
            "text": page.text,
            "start_line": start_line,
            "lines": page.lines,
            "total_lines": found.lines,
        }

    return read_text


def _count_lines(tree: Root) -> Tool:
    @tool
    def count_lines(path: str) -> dict[str, Any]:
        """Count the lines and the bytes of a file, as `wc -l` and `wc -c` do: a line is what a newline ends.

        Args:
            path: the file, relative to the root; a binary one will do.
        """
        place = tree.place(path)
        with tree.open(place) as (file, size):
            found = tally(file, size)
        return {"path": str(place), "lines": found.newlines, "bytes": found.size}

    return count_lines


def _search(tree: Root) -> Tool:
    @tool(
        description="Search files for lines that hold a text. `total` counts all such lines, `matches` shows the first. "
        "Not searched are binary files, links, and directories whose name begins with a dot (.git, .venv); `skipped` "
        "says how many."
    )
    def search(
        pattern: str,
        path: str = ".",
        *,
        regex: bool = False,
        ignore_case: bool = False,
        name_glob: str = "*",
        include_hidden: bool = False,
        max_matches: _Matches = 100,
    ) -> dict[str, Any]:
        """Search files for lines that hold a text.

        Args:
            pattern: the text to look for, on one line.
            path: the file or directory to search, relative to the root.
            regex: take the pattern as a Python regular expression.
            ignore_case: let upper and lower case match each other.
            name_glob: search only files whose name matches, such as "*.py".
            include_hidden: search directories whose name begins with a dot, too.
            max_matches: how many matching lines are shown at most; `total` counts all.
        """
        settings = Settings(
            pattern=pattern,
            regex=regex,
            ignore_case=ignore_case,
            name_glob=name_glob,
            include_hidden=include_hidden,
            max_matches=max_matches,
        )
        return search_tree(tree, path, settings)

    return search
