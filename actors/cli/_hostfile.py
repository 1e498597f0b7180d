"""A host file: agents in TOML. What is wrong is told with its line and its key.

TOML tells no places of what it has read. A key stands in the shortest beginning of the text that is whole and has it, and
begins behind the longest one that is whole and has it not: that is found when something is wrong, and not before.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from protocol.errors import SpecError
from protocol.limits import Limits

from ._settings import AgentSettings, folder_of, model_of, on_limit_of
from ._usage import UsageError, guess

__all__ = ("read_host_file",)

Place: TypeAlias = tuple[str | int, ...]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LIMITS = ("max_tool_iterations", "max_llm_calls", "max_tool_calls", "max_total_tokens", "wall_clock_seconds")


@attrs.frozen
class _Fault(Exception):
    """What is wrong, and where."""

    place: Place
    text: str


def read_host_file(path: Path) -> tuple[AgentSettings, ...]:
    """The agents that a host file lists. Raises `UsageError`."""
    text = _read(path)
    try:
        return _agents(tomllib.loads(text), path.parent)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    except _Fault as fault:
        raise UsageError(f"{path}, line {_line_of(text, fault.place)}: {_words(fault.place)}{fault.text}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text in UTF-8") from None


def _agents(data: Mapping[str, Any], folder: Path) -> tuple[AgentSettings, ...]:
    for key in data:
        if key != "agents":
            raise _Fault((key,), f"is unknown{guess(key, ['agents'])}; a host file holds [[agents]]")
    tables: object = data.get("agents")
    if not isinstance(tables, list) or not tables:
        raise _Fault(("agents",), "a host file holds one [[agents]] or more")
    found: dict[str, AgentSettings] = {}
    for number, table in enumerate(cast("list[object]", tables)):
        agent = _agent(table, ("agents", number), folder)
        if agent.name in found:
            raise _Fault(("agents", number, "name"), f"there is an agent {agent.name!r} already")
        found[agent.name] = agent
    return tuple(found.values())


def _agent(table: object, place: Place, folder: Path) -> AgentSettings:
    if not isinstance(table, dict):
        raise _Fault(place, "an agent is a table: [[agents]]")
    fields: dict[str, Any] = {}
    for key, value in cast("dict[str, object]", table).items():
        read = _READERS.get(key)
        if read is None:
            raise _Fault((*place, key), f"is unknown{guess(key, _READERS)}; there are: {', '.join(_READERS)}")
        try:
            fields.update(read(value, folder))
        except UsageError as error:
            raise _Fault((*place, key), str(error)) from None
        except _Fault as fault:
            raise _Fault((*place, key, *fault.place), fault.text) from None
    if "name" not in fields:
        raise _Fault(place, 'lacks its name: name = "auditor"')
    agent = AgentSettings(**fields)
    for key in ("base_url", "api_key_env"):
        if key in fields and agent.is_rules:
            raise _Fault((*place, key), 'is for a model server; it goes with a model such as "openai:NAME"')
    return agent


def _name(value: object, _folder: Path) -> dict[str, Any]:
    name = _text(value)
    if not _NAME.fullmatch(name):
        raise UsageError(f"a name has 1 to 64 letters, digits, _ or -; it is {name!r}")
    return {"name": name}


def _tools(value: object, folder: Path) -> dict[str, Any]:
    if not isinstance(value, list):
        raise UsageError(f'tools are a list, such as ["files:."]; it is {value!r}')
    specs = cast("list[object]", value)
    if len(specs) > 1:
        raise UsageError(f"there is one kind of tools, files:DIR, and one folder for it; these are {len(specs)}")
    return {"root": folder_of("tools", _text(specs[0]), base=folder)} if specs else {}


def _limits(value: object, _folder: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"limits are a table, such as {{ max_tool_iterations = 3 }}; it is {value!r}")
    limits = cast("dict[str, Any]", value)
    for key, number in limits.items():
        if key not in _LIMITS:
            raise _Fault((key,), f"is unknown{guess(key, _LIMITS)}; there are: {', '.join(_LIMITS)}")
        try:
            Limits(**{key: number})
        except SpecError as error:
            raise _Fault((key,), str(error)) from None
    return limits


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"must be a text that is not empty; it is {value!r}")
    return value


_READERS: dict[str, Callable[[object, Path], dict[str, Any]]] = {
    "name": _name,
    "model": lambda value, _: {"model": model_of(_text(value))},
    "base_url": lambda value, _: {"base_url": _text(value)},
    "api_key_env": lambda value, _: {"api_key_env": _text(value)},
    "tools": _tools,
    "system": lambda value, _: {"system": _text(value)},
    "gate": lambda value, _: {"on_limit": on_limit_of("gate", _text(value))},
    "limits": _limits,
}
"""The keys of an agent, and what each says of its settings."""


def _words(place: Place) -> str:
    """A place as it is written: `agents[0].limits.max_llm_calls: `."""
    said = "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]).lstrip(".")
    return f"{said}: "


def _line_of(text: str, place: Place) -> int:
    """The line on which a key begins; of one that is not there, the last line."""
    lines = text.splitlines(keepends=True)
    without = 0
    for number in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        if _holds(data, place):
            return without + 1
        without = number
    return max(1, len(lines))


def _holds(data: object, place: Place) -> bool:
    for part in place:
        try:
            data = cast("Any", data)[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
