"""What is not wrong with a host file, but odd: things that nobody uses, limits that nothing can reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from protocol.limits import Limits

from ..agent import AgentSpec, Budget
from ..gateway import Principal
from ._faults import Reading
from ._places import Place

__all__ = ("note_oddities",)

_SHARED = ("max_llm_calls", "max_tool_calls", "max_total_tokens", "max_cost", "wall_clock_seconds")


def note_oddities(
    data: Mapping[str, Any],
    agents: Mapping[str, AgentSpec],
    budgets: Mapping[str, Budget],
    people: Iterable[Principal] | None,
    reading: Reading,
) -> None:
    """Note them, of a file in which nothing is wrong. `people` are those of the token file, if there is one."""
    tables = data["agents"]
    runtime = data.get("runtime", {})
    _unused(data, tables, runtime, reading)
    for number, table in enumerate(tables):
        spec = agents[table["name"]]
        place = ("agents", number)
        own = [spec.budget] if spec.budget is not None else []
        house = [budgets[runtime["budget"]]] if "budget" in runtime else []
        _beyond(spec.limits(), [*own, *house], (*place, "limits"), reading)
    for name, budget in budgets.items():
        above = [budget.parent] if budget.parent is not None else []
        _beyond(budget.account.limits, above, ("budgets", name), reading)
        if budget.max_cost is not None and "prices" not in data:
            reading.note(("budgets", name, "max_cost"), "no prices are there, so that no cost is known: see [prices]")
    if data.get("templates") and people is not None and not any(who.holds("operate") for who in people):
        for name in data["templates"]:
            reading.note(("templates", name), "nobody of the token file may use it: that takes the role operate")


def _unused(
    data: Mapping[str, Any], tables: list[Mapping[str, Any]], runtime: Mapping[str, Any], reading: Reading
) -> None:
    used: dict[str, set[str]] = {
        "models": {table["model"] for table in tables if isinstance(table.get("model"), str)},
        "tools": {tool for table in tables for tool in table.get("tools", []) if isinstance(tool, str)},
        "budgets": {
            *(table["budget"] for table in tables if "budget" in table),
            *(budget["parent"] for budget in data.get("budgets", {}).values() if "parent" in budget),
            *([runtime["budget"]] if "budget" in runtime else []),
        },
    }
    for kind, names in used.items():
        for name in data.get(kind, {}):
            if name not in names:
                reading.note((kind, name), "nothing uses it")
    asked = {
        item if isinstance(item, str) else item["agent"]
        for table in tables
        for key in ("sub_agents", "handoffs")
        for item in table.get(key, [])
    }
    asked |= {template["agent"] for template in data.get("templates", {}).values() if "agent" in template}
    for number, table in enumerate(tables):
        if table.get("spawn") is False and table["name"] not in asked:
            reading.note(("agents", number, "spawn"), "no agent and no template uses it, so that it never comes to be")


def _beyond(limits: Limits, budgets: list[Budget], place: Place, reading: Reading) -> None:
    """Limits above those of what is drawn on."""
    for name in _SHARED:
        own = getattr(limits, name)
        for budget in budgets:
            most = getattr(budget, name)
            if own is not None and most is not None and own > most:
                reading.note((*place, name), f"{own} is never reached: the budget {budget.name} ends at {most}")
