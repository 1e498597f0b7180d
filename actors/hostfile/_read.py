"""A host file: agents, and all that they share, in TOML. It is read as a whole before anything is started."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from protocol.model import Model

from ..agent import AgentSpec, Budget
from ..gateway import Template, read_token_file
from ._agents import Agents
from ._faults import BAD, Fault, HostFileError, Reading
from ._gateway import GatewaySettings, make_gateway, make_templates
from ._host_tables import HOST, RUNTIME
from ._imports import find_beside
from ._models import make_budgets, make_model, make_prices
from ._odd import note_oddities
from ._places import Lines
from ._secrets import refuse_secrets
from ._tools import make_tools

__all__ = ("HostFile", "read_host_file")


@attrs.frozen(kw_only=True)
class HostFile:
    """What a host file says, made and checked. Nothing of it has been started."""

    path: Path
    agents: Mapping[str, AgentSpec]
    """All of them, by name, in the order of the file."""
    spawned: tuple[AgentSpec, ...]
    """Those that are there from the start; the others are for agents and templates."""
    models: Mapping[str, Model]
    budgets: Mapping[str, Budget]
    templates: Mapping[str, Template]
    gateway: GatewaySettings
    runtime: Mapping[str, Any]
    """Options of `open_runtime()`."""
    warnings: tuple[Fault, ...]
    """What is not wrong, but odd."""

    def gateway_options(self) -> dict[str, Any]:
        """Options of `open_gateway()`. Raises `SpecError` where token file or certificate have changed for the worse."""
        return {**self.gateway.options(), "templates": self.templates}


def read_host_file(path: str | os.PathLike[str], *, imports: bool = True) -> HostFile:
    """Read a host file; whatever it names is seen from its folder.

    It reads the files that it names (tokens, keys, certificates, prompts) and environment variables, looks for folders,
    and imports the modules that it names, which runs them; they may stand beside it, for its folder is put at the end of
    `sys.path`. Nothing is connected, opened for writing, or listened on. Without `imports` nothing is imported: what is
    read so is good for a look, and for nothing else.

    Raises `HostFileError` with all that is wrong, each with its line and key.
    """
    place = Path(path)
    text = _text(place)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = f"is no TOML: {error}" if isinstance(error, tomllib.TOMLDecodeError) else "nests or counts too far"
        raise HostFileError(place, (Fault(0, "", said),)) from None
    if imports:
        find_beside(place)
    reading = Reading(place.parent, imports)
    refuse_secrets(data, reading)
    found = _host(HOST.read(data, (), reading), data, place, reading)
    lines = Lines(text)
    if reading.faults or found is None:
        raise HostFileError(place, reading.told(reading.faults, lines))
    return attrs.evolve(found, warnings=reading.told(reading.notes, lines))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        said = f"cannot be read: {error.strerror}"
    except ValueError:
        said = "is no text in UTF-8"
    raise HostFileError(path, (Fault(0, "", said),))


def _host(values: Mapping[str, Any], data: Mapping[str, Any], path: Path, reading: Reading) -> HostFile | None:
    if "agents" in values and not values["agents"] and data["agents"] == []:
        reading.fault(("agents",), "must hold one [[agents]] or more")
    models: dict[str, Any] = {
        name: make_model(table, ("models", name), reading) if name in values.get("models", {}) else BAD
        for name, table in _tables(values, data, "models")
    }
    tools: dict[str, Any] = {
        name: make_tools(table, ("tools", name), reading) if name in values.get("tools", {}) else None
        for name, table in _tables(values, data, "tools")
    }
    budgets = make_budgets(values.get("budgets", {}), reading)
    agents = Agents(
        reading=reading,
        models=models,
        tools=tools,
        budgets={name: budgets.get(name) for name, _ in _tables(values, data, "budgets")},
        prices=make_prices(values.get("prices"), ("prices",), reading),
    )
    agents.make(values.get("agents", []))
    templates = make_templates(values.get("templates", {}), agents.made, reading)
    gateway = make_gateway(values.get("gateway", {}), agents.made, reading)
    options, _ = RUNTIME.parameters(values.get("runtime", {}), ("runtime",))
    shared = values.get("runtime", {}).get("budget")
    if shared is not None:
        if shared in agents.budgets:
            options["budget"] = budgets.get(shared)
        else:
            names = ", ".join(agents.budgets) or "none"
            reading.fault(("runtime", "budget"), f"there is no budget {shared!r}; there are: {names}")
    if reading.faults:
        return None
    made = {name: spec for name, spec in agents.made.items() if spec is not None}
    people = None if gateway.token_file is None else read_token_file(gateway.token_file).values()
    note_oddities(data, made, budgets, people, reading)
    return HostFile(
        path=path,
        agents=made,
        spawned=tuple(made[table["name"]] for _, table in values["agents"] if table.get("spawn", True)),
        models=models,
        budgets=budgets,
        templates=templates,
        gateway=gateway,
        runtime=options,
        warnings=(),
    )


def _tables(values: Mapping[str, Any], data: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    """The named tables of a kind, those that are wrong too: who names one of them is not told that there is none."""
    given = data.get(key)
    names = list(cast("dict[str, Any]", given)) if isinstance(given, dict) else []
    return [(name, values.get(key, {}).get(name)) for name in names]
