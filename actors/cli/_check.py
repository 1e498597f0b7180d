"""`onward check`: what is wrong with a host file, or what it would serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec
import trio

from protocol.codec import encode

from ..agent import AgentSpec, Remote
from ..hostfile import Fault, HostFile, HostFileError, host_file_schema, read_host_file, told
from ._check_arguments import CheckArguments
from ._output import Output
from ._status import ANSWERED, FAILED, WRONG_USE
from ._style import Style, harmless, style_for
from ._usage import UsageError

__all__ = ("check_command", "lines_of", "summary_of")

_MOST_TOOLS = 4
_LIMITS = (
    ("max_tool_iterations", "rounds"),
    ("max_llm_calls", "model calls"),
    ("max_tool_calls", "tool calls"),
    ("max_total_tokens", "tokens"),
    ("max_cost", "USD"),
    ("wall_clock_seconds", "s"),
)


def check_command(arguments: CheckArguments) -> int:
    """Check it; the exit status. Raises `UsageError` with all that is wrong, unless that is wanted as JSON."""
    if not arguments.file:
        return _write(msgspec.json.format(encode(host_file_schema()), indent=2), ANSWERED)
    try:
        found = read_host_file(arguments.file, imports=arguments.imports)
    except HostFileError as error:
        if not arguments.json:
            raise UsageError(harmless(str(error))) from None
        return _write(encode({"file": arguments.file, "ok": False, "faults": _dicts(error.faults)}), WRONG_USE)
    if arguments.json:
        return _write(encode({"file": arguments.file, "ok": True, "faults": [], **summary_of(found)}), ANSWERED)
    lines = lines_of(found, style_for(is_terminal=os.isatty(1)))
    return _write("\n".join(lines).encode(errors="replace"), ANSWERED)


def _write(text: bytes, status: int) -> int:
    try:
        trio.run(Output(1).write_bytes, text + b"\n")
    except OSError:
        return FAILED  # whoever read the output has left
    return status


def _dicts(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [attrs.asdict(fault) for fault in faults]


def summary_of(host: HostFile) -> dict[str, Any]:
    """What would be served, as data."""
    gateway = host.gateway
    return {
        "warnings": _dicts(host.warnings),
        "agents": [_agent(spec, host) for spec in host.agents.values()],
        "templates": {name: sorted(template.overrides) for name, template in host.templates.items()},
        "budgets": {name: _set(attrs.asdict(budget.account.limits)) for name, budget in host.budgets.items()},
        "gateway": {"host": gateway.host, "port": gateway.port, "tls": gateway.tls_cert is not None},
        "runtime": {
            name: value if isinstance(value, (int, float, bool)) else getattr(value, "name", str(value))
            for name, value in host.runtime.items()
        },
    }


def _set(limits: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in limits.items() if value is not None}


def _agent(spec: AgentSpec, host: HostFile) -> dict[str, Any]:
    return {
        "name": spec.name,
        "model": spec.model.name,
        "tools": [tool.name for tool in spec.tools],
        "approval": [tool.name for tool in spec.tools if tool.needs_approval is not False],
        "limits": _set(attrs.asdict(spec.limits())),
        "gate": _gate(spec),
        "budget": None if spec.budget is None else spec.budget.name,
        "spawned": _is_spawned(spec, host),
    }


def _is_spawned(spec: AgentSpec, host: HostFile) -> bool:
    return any(one is spec for one in host.spawned)


def lines_of(host: HostFile, style: Style) -> list[str]:
    """What would be served, as a person reads it: a row for each agent, then what they share, then what is odd."""
    head, *rows = _columns([
        ("agent", "model", "tools", "limits", "gate"),
        *[_row(spec, host) for spec in host.agents.values()],
    ])
    lines = [style.bold(head), *rows]
    for name, budget in host.budgets.items():
        lines.append(f"budget {name}: {_limits(attrs.asdict(budget.account.limits))}")
    for name, template in host.templates.items():
        lines.append(f"template {name}: clients may set {', '.join(sorted(template.overrides)) or 'nothing'}")
    gateway = host.gateway
    shown = f"[{gateway.host}]" if ":" in gateway.host else gateway.host
    who = "whoever starts it" if gateway.token_file is None else f"the tokens in {gateway.token_file}"
    lines.append(harmless(f"gateway http{'s' if gateway.tls_cert else ''}://{shown}:{gateway.port}, for {who}"))
    journal = host.runtime.get("journal")
    lines.append("no journal: nothing is kept when it ends" if journal is None else harmless(f"journal {journal}"))
    return [*lines, *[style.yellow(harmless(f"note: {told(host.path, warning)}")) for warning in host.warnings]]


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    wide = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        harmless("  ".join([cell.ljust(width) for cell, width in zip(row, wide, strict=True)])).rstrip() for row in rows
    ]


def _row(spec: AgentSpec, host: HostFile) -> tuple[str, ...]:
    names = [tool.name for tool in spec.tools]
    more = [f"{len(names) - _MOST_TOOLS} more"] if len(names) > _MOST_TOOLS else []
    limits = _limits(attrs.asdict(spec.limits()))
    if spec.budget is not None:
        limits += f"; budget {spec.budget.name}"
    gate = _gate(spec) + ("" if _is_spawned(spec, host) else "; not spawned")
    return spec.name, spec.model.name, ", ".join([*names[:_MOST_TOOLS], *more]) or "-", limits, gate


def _gate(spec: AgentSpec) -> str:
    """Who decides at the limit: `ask` for clients, else the name of the policy or function."""
    if spec.continuation is None:
        return "none"
    if isinstance(spec.continuation, Remote):
        return "ask"
    return str(getattr(spec.continuation, "__name__", "own")).removeprefix("policy_")


def _limits(limits: dict[str, Any]) -> str:
    said = [f"{limits[name]:,} {unit}" for name, unit in _LIMITS if limits.get(name) is not None]
    return ", ".join(said) or "no limits"
