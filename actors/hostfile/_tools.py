"""Tools of a host file: those that are built in, and one's own by import path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from protocol.errors import SpecError
from protocol.text import guess

from ..agent import AgentSpec
from ..tools import Tool, as_tool, files
from ._faults import BAD, Reading
from ._imports import Unread
from ._places import Place
from ._values import OBJECT

__all__ = ("make_tools", "near_folder", "tools_of")


def tools_of(given: Sequence[tuple[Place, Any]], known: Mapping[str, Any], reading: Reading) -> list[Tool | Unread]:
    """The tools that an agent lists: by words, or by tables."""
    found: list[Tool | Unread] = []
    for place, item in given:
        made = _of_word(item, known, place, reading) if isinstance(item, str) else make_tools(item, place, reading)
        found += made or []
    return found


def _of_word(word: str, known: Mapping[str, Any], place: Place, reading: Reading) -> Any:
    if word in known:
        return known[word]
    kind, colon, rest = word.partition(":")
    if colon and kind == "files":
        return _files(rest, place, reading)
    if colon:
        read = OBJECT.read(word, place, reading)
        return None if read is BAD else _own(read, None, place, reading)
    reading.fault(
        place,
        f"there is no tool set {word!r}{guess(word, known)}; a tool is files:FOLDER, package.module:name, or one of"
        f" [tools]: {', '.join(known) or 'none'}",
    )
    return None


def make_tools(values: Mapping[str, Any], place: Place, reading: Reading) -> list[Tool | Unread] | None:
    """The tools of a table; `None` if it is wrong."""
    given = [key for key in ("files", "import") if key in values]
    if reading.is_faulty(place):
        return None
    if len(given) != 1:
        kinds = 'files = "FOLDER", or import = "package.module:name"'
        reading.fault(place, f"lacks its tools: {kinds}" if not given else f"has two kinds of tools: give {kinds}")
        return None
    if given == ["files"]:
        if "arguments" in values:
            reading.fault((*place, "arguments"), "goes with import")
        made = _files(values["files"], (*place, "files"), reading)
    else:
        made = _own(values["import"], values.get("arguments"), (*place, "import"), reading)
    return None if made is None else _changed(made, values, place, reading)


def _files(name: str, place: Place, reading: Reading) -> list[Tool | Unread] | None:
    if not name.strip():
        reading.fault(place, "lacks its folder, as in files:.")
        return None
    root = reading.path(name)
    try:
        if root.is_dir():
            return [*files(root)]
        near = near_folder(root)
        hint = f" (did you mean {near.name}?)" if near is not None else ""
        said = f"{root} is a file, not a folder" if root.exists() else f"there is no folder {root}{hint}"
    except (SpecError, OSError, ValueError) as error:
        said = str(error)
    reading.fault(place, said)
    return None


def near_folder(path: Path) -> Path | None:
    """A folder that is there, beside one that is not and is called almost so."""
    try:
        names = [item.name for item in path.parent.iterdir() if item.is_dir()]
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, names, 1)
    return path.with_name(near[0]) if near else None


def _own(found: Any, arguments: Mapping[str, Any] | None, place: Place, reading: Reading) -> list[Tool | Unread] | None:
    if isinstance(found, Unread):
        return [found]
    if arguments is not None:
        if not callable(found):
            reading.fault(place, f"must be a function that makes the tools; it is a {type(found).__name__}")
            return None
        try:
            found = found(**arguments)
        except Exception as error:  # noqa: BLE001  somebody else's code
            reading.fault(place, f"made no tools: {type(error).__name__}: {error}")
            return None
    items = list(cast("Iterable[Any]", found)) if isinstance(found, (list, tuple)) else [found]
    made: list[Tool | Unread] = []
    for item in items:
        if isinstance(item, AgentSpec):
            reading.fault(place, "is an agent, and no tool: see sub_agents")
            return None
        try:
            made.append(as_tool(item))
        except SpecError as error:
            reading.fault(place, str(error))
            return None
    return made


def _changed(
    tools: list[Tool | Unread], values: Mapping[str, Any], place: Place, reading: Reading
) -> list[Tool | Unread] | None:
    """Those that are wanted, with what the table says of them."""
    named = {tool.name: tool for tool in tools if isinstance(tool, Tool)}
    if len(named) != len(tools):
        return tools  # not imported: nothing is known of them
    is_right = True
    for key in ("only", "needs_approval", "ends_run"):
        for name in values[key] if isinstance(values.get(key), list) else ():
            if name not in named:
                is_right = False
                reading.fault(
                    (*place, key), f"there is no tool {name!r}{guess(name, named)}; there are: {', '.join(named)}"
                )
    if not is_right:
        return None
    only: Sequence[str] = values.get("only", list(named))
    return [_with(named[name], values) for name in dict.fromkeys(only)]


def _with(tool: Tool, values: Mapping[str, Any]) -> Tool:
    changes: dict[str, Any] = {}
    for key in ("needs_approval", "ends_run"):
        given = values.get(key)
        if isinstance(given, bool):
            changes[key] = given
        elif given is not None and tool.name in given:
            changes[key] = True  # of the others, what they say themselves holds
    if "timeout_seconds" in values:
        changes["timeout_seconds"] = values["timeout_seconds"]
    return attrs.evolve(tool, **changes) if changes else tool
