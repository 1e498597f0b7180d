"""The keys of a host file itself: its tables, the runtime's options, the gateway and its templates."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from ..gateway import DoorLimits
from ..runtime import open_runtime
from ._agent_tables import AGENT
from ._faults import BAD, Reading
from ._kinds import Kind, ListOf, MapOf, Placed, Schema
from ._model_tables import BUDGET, MODEL, PRICES
from ._places import Place
from ._table import Key, Table
from ._tool_tables import TOOL
from ._values import (
    COUNT,
    FILE,
    FLAG,
    FUNCTION,
    NAME,
    NEW_FILE,
    POSITIVE,
    REFERENCE,
    SECONDS,
    TEXT,
    choice,
    optional,
    texts,
)

__all__ = ("DOOR_KEYS", "GATEWAY", "HOST", "RUNTIME", "TEMPLATE", "kind_of", "runtime_table")

_RUNTIME_KEYS: Mapping[str, tuple[Kind | None, str]] = {
    "journal": (NEW_FILE, "The file in which agents are kept, so that they come back. Default: none is kept."),
    "tool_threads": (None, "How many synchronous tools run at a time. Default 40."),
    "event_log_bytes": (None, "What each agent keeps of its events for clients that were away. Default 4 MiB."),
    "stop_grace_seconds": (SECONDS, "How long runs have to end in order when it stops. Default 5."),
    "budget": (REFERENCE, "What all agents draw on together: the name of one of [budgets]."),
}
"""Options of `open_runtime()` that have a kind or a text of their own; the others come with those of their types."""


def kind_of(hint: Any) -> Kind | None:
    """The kind of an option, by its type; `None` for one that no file can give."""
    if get_origin(hint) in {Union, types.UnionType}:
        kinds = [kind_of(one) for one in get_args(hint) if one is not type(None)]
        if len(kinds) != 1 or kinds[0] is None:
            return None
        return optional(kinds[0])
    if get_origin(hint) is Literal:
        return choice(*get_args(hint))
    if isinstance(hint, type) and attrs.has(hint):
        return _made(hint)
    return {int: COUNT, float: POSITIVE, bool: FLAG, str: TEXT}.get(hint)


@attrs.frozen(kw_only=True)
class _Made(Kind):
    """An object that a table says the fields of."""

    table: Table
    make: Any
    form: type | tuple[type, ...] = dict

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The object."""
        found = self.table.read(value, place, reading)
        return BAD if found is BAD else reading.make(self.make, *self.table.parameters(found, place), place)

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """That of the table."""
        return self.table.schema(tables)


def _made(kind: type) -> Kind | None:
    hints = typing.get_type_hints(kind)
    kinds = {field.alias or field.name: kind_of(hints[field.name]) for field in attrs.fields(kind) if field.init}
    keys = [Key(name, one, f"As `{kind.__name__}({name}=)`.") for name, one in kinds.items() if one is not None]
    table = Table(title=kind.__name__, what=f"a table with the fields of {kind.__name__}", keys=tuple(keys))
    return _Made(what=table.what, table=table, make=kind) if keys else None


def runtime_table(function: Any) -> Table:
    """The options of a function that opens a runtime, as a table: what it takes by keyword, and a file can give."""
    plain = inspect.unwrap(function)
    hints = typing.get_type_hints(plain)
    keys: list[Key] = []
    for name in inspect.signature(plain).parameters:
        kind, text = _RUNTIME_KEYS.get(name, (None, f"As `open_runtime({name}=)`."))
        kind = kind or kind_of(hints[name])
        if kind is not None:
            keys.append(Key(name, kind, text, to="" if name == "budget" else None))
    return Table(title="Runtime", what="options of the runtime: a table, [runtime]", keys=tuple(keys))


RUNTIME = runtime_table(open_runtime)
"""[runtime]"""

DOOR_KEYS = frozenset(field.name for field in attrs.fields(DoorLimits))
"""Those of `gateway.limits` that hold at the door; the others hold for a connection."""

_GATEWAY_LIMITS = Table(
    title="GatewayLimits",
    what="how much clients may do: a table, such as { connections = 100 }",
    keys=(
        Key("connections", COUNT, "Connections in all. Default 2000."),
        Key("connections_per_address", COUNT, "From one address. Default 256."),
        Key("connections_per_principal", COUNT, "Of one token's holder. Default 128."),
        Key("handshakes_per_second", POSITIVE, "Connections opened in a second, on average. Default 50."),
        Key("handshakes_burst", COUNT, "Connections opened at once. Default 100."),
        Key("head_seconds", SECONDS, "Until a request is there. Default 5."),
        Key("message_bytes", COUNT, "The biggest command. Default 65536."),
        Key("message_fragments", COUNT, "The most fragments of one command. Default 64."),
        Key("text_bytes", COUNT, "The longest text of a person. Default 8192."),
        Key("frame_bytes", COUNT, "The biggest frame that is sent. Default 1048576."),
        Key("queue_bytes", COUNT, "What may wait for a client before it is cut off. Default 1048576."),
        Key("commands_per_second", POSITIVE, "Commands of one connection in a second, on average. Default 20."),
        Key("commands_burst", COUNT, "Commands of one connection at once. Default 40."),
        Key("depth", COUNT, "The deepest JSON. Default 64."),
    ),
)
GATEWAY = Table(
    title="Gateway",
    what="where clients come in, and who: a table, [gateway]",
    keys=(
        Key("bind", TEXT, "HOST:PORT to listen on; port 0: any free one. Default 127.0.0.1:8765.", to=""),
        Key("token_file", FILE, "Who gets in: lines of TOKEN [ROLE,ROLE...] [NAME]. Default: who started it."),
        Key(
            "sees",
            MapOf(what="lists of agents by the names of the token file", name=TEXT, item=texts("a list of agents")),
            "Which agents somebody may see, by the names of the token file. Default: all.",
            to="",
        ),
        Key("tls_cert", FILE, "Certificate chain, for TLS."),
        Key("tls_key", FILE, "Its private key. Default: in the file of the certificate."),
        Key("hosts", texts("a list of names"), "Names that it is reached by, beside `localhost` and addresses."),
        Key("origins", texts("a list of origins"), "Origins of foreign pages that may connect."),
        Key("limits", _GATEWAY_LIMITS, "How much clients may do.", to=""),
    ),
)
"""[gateway]"""

TEMPLATE = Table(
    title="Template",
    what='what clients may make agents from: a table, such as { agent = "worker" }',
    keys=(
        Key("agent", REFERENCE, "The agent that it makes more of, by its name.", to=""),
        Key("import", FUNCTION, "In place of `agent`: a function of your own that makes a spec.", to=""),
        Key("overrides", texts("a list of settings"), "Which settings a client may give; limits only lower.", to=""),
    ),
)
"""[templates.NAME]"""


def _named(what: str, item: Kind) -> MapOf:
    return MapOf(what=what, name=NAME, item=item)


HOST = Table(
    title="HostFile",
    what="a host file",
    keys=(
        Key(
            "agents",
            ListOf(what="tables, [[agents]]", item=Placed(kind=AGENT)),
            "The agents.",
            needed=True,
        ),
        Key("models", _named("tables, [models.NAME]", MODEL), "Models that agents name."),
        Key("prices", PRICES, "What models cost, for limits in US dollars."),
        Key("budgets", _named("tables, [budgets.NAME]", BUDGET), "What several agents draw on together."),
        Key("tools", _named("tables, [tools.NAME]", TOOL), "Tools that agents name."),
        Key("templates", _named("tables, [templates.NAME]", TEMPLATE), "What clients may make agents from."),
        Key("runtime", RUNTIME, "Options of the runtime."),
        Key("gateway", GATEWAY, "Where clients come in, and who."),
    ),
)
"""All of it."""
