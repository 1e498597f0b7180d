"""Agents of a host file: from tables to specs, sub-agents before those that ask them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import attrs

from protocol.approval import ApprovalRequest, ApprovalResponse, approve, deny
from protocol.model import ForceTool
from protocol.prices import PriceTable
from protocol.stop import (
    StopCondition,
    consecutive_errors,
    cost_budget,
    has_tool_call,
    has_tool_result,
    is_loop_finished,
    max_steps,
    no_progress,
    time_budget,
    token_budget,
)
from protocol.text import guess

from ..agent import (
    AgentSpec,
    Budget,
    always,
    background_agent,
    handoff,
    never,
    remote,
    sub_agent,
    summarise,
    trim,
    up_to,
    within,
)
from ..tools import Tool
from ._agent_tables import (
    AGENT,
    APPROVAL,
    COMPACT,
    COMPACT_OPTIONS,
    FINALIZATION,
    FINALIZE,
    GATE,
    HOOKS,
    LIMITS,
    STOP_WHEN,
)
from ._faults import BAD, Bad, Reading
from ._imports import Unread
from ._models import RULES, make_model, model_of
from ._places import Place
from ._tool_tables import HANDOFF, SUB_AGENT
from ._tools import tools_of

__all__ = ("DEFAULT_MAX_TOOL_ITERATIONS", "Agents")

DEFAULT_MAX_TOOL_ITERATIONS = 20
"""Of an agent whose limits say nothing of it."""

_CONDITIONS: Mapping[str, Callable[[Any], StopCondition]] = {
    "max_steps": max_steps,
    "has_tool_call": lambda names: has_tool_call(*names),
    "has_tool_result": lambda names: has_tool_result(*names),
    "no_progress": no_progress,
    "consecutive_errors": consecutive_errors,
    "token_budget": token_budget,
    "cost_budget": cost_budget,
    "time_budget": time_budget,
    "is_loop_finished": lambda _: is_loop_finished(),
}
"""What each key of stop_when makes."""


@attrs.define(eq=False)
class Agents:
    """The agents of a file, while they are made."""

    reading: Reading
    models: Mapping[str, Any]
    """Those that are right, by name; `BAD` for the others."""
    tools: Mapping[str, Any]
    budgets: Mapping[str, Budget | None]
    """`None` for those that are wrong."""
    prices: PriceTable | None
    tables: dict[str, tuple[Place, Mapping[str, Any]]] = attrs.field(factory=dict[str, Any])
    made: dict[str, AgentSpec | None] = attrs.field(factory=dict[str, "AgentSpec | None"])
    """By name; `None` for those that are wrong."""
    _open: list[str] = attrs.field(factory=list[str])

    def make(self, tables: Sequence[tuple[Place, Mapping[str, Any]]]) -> None:
        """Make all of them."""
        for place, values in tables:
            name = values.get("name")
            if name in self.tables:
                self.reading.fault((*place, "name"), f"there is an agent {name!r} already")
            elif name is not None:
                self.tables[name] = place, values
        for name in self.tables:
            self._agent(name)
        for place, values in tables:
            if "name" not in values:
                self._spec(values, place)  # what else is wrong with it
        self.made = {name: self.made[name] for name in self.tables}

    def _agent(self, name: str) -> AgentSpec | None:
        if name not in self.made:
            place, values = self.tables[name]
            self._open.append(name)
            faults = len(self.reading.faults)
            spec = self._spec(values, place)
            self._open.pop()
            self.made[name] = None if isinstance(spec, Bad) or len(self.reading.faults) > faults else spec
        return self.made[name]

    def _spec(self, values: Mapping[str, Any], place: Place) -> AgentSpec | Bad:
        fields: dict[str, Any] = {
            "max_tool_iterations": DEFAULT_MAX_TOOL_ITERATIONS,
            "prices": self.prices,
            "continuation": remote(),
            "approval": remote(),
        }
        places: dict[str, Place] = {}

        def put(given: tuple[dict[str, Any], dict[str, Place]]) -> None:
            fields.update(given[0])
            places.update(given[1])

        put(AGENT.parameters(values, place))
        for key, table in (("limits", LIMITS), ("finalization", FINALIZATION), ("hooks", HOOKS)):
            put(table.parameters(values.get(key, {}), (*place, key)))
        put(self._gate(values, place))
        put(self._approval(values, place))
        put(self._compact(values, place))
        if "system" in values and "system_file" in values:
            self.reading.fault((*place, "system_file"), "is one way to give the system prompt, and system the other")
        chosen = fields.get("tool_choice", "auto")
        if not isinstance(chosen, str):
            fields["tool_choice"] = ForceTool(chosen["tool"]) if "tool" in chosen else "auto"
        put(self._stop_when(values, place))
        put(self._budget(values, place))
        fields["model"] = self._model(values, place)
        fields["tools"], is_whole = self._tools(values, place)
        places["tools"] = (*place, "tools")
        if not is_whole and isinstance(fields.get("tool_choice"), ForceTool):
            del fields["tool_choice"]  # whether the tool is there shows only with its import
        if fields["model"] is BAD or "name" not in fields:
            return BAD
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            spec = self.reading.make(AgentSpec, fields, places, place)
        for text in dict.fromkeys([str(warning.message) for warning in caught]):
            self.reading.note((*place, "limits") if "limits" in values else place, text)
        return spec

    def _model(self, values: Mapping[str, Any], place: Place) -> Any:
        given: Any = values.get("model", RULES)
        at = (*place, "model")
        if isinstance(given, str):
            return model_of(given, self.models, at, self.reading)
        return make_model(given, at, self.reading)

    def _gate(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        gate, at = as_table(values.get("gate", {}), "by"), (*place, "gate")
        fields, places = GATE.parameters(gate, at)
        ways = [key for key in ("by", "up_to", "within") if key in gate]
        if len(ways) > 1:
            self.reading.fault((*at, ways[1]), f"and {ways[0]} are two answers to who decides: give one")
        by = gate.get("by", "ask")
        words = {"ask": remote(), "approve": always(), "decline": never()}
        if "up_to" in gate:
            fields["continuation"] = up_to(gate["up_to"])
        elif "within" in gate:
            bounds = self.reading.make(within, gate["within"], {}, (*at, "within"))
            fields["continuation"] = None if isinstance(bounds, Bad) else bounds
        else:
            fields["continuation"] = by if callable(by) else words.get(by)
        places["continuation"] = at
        if by == FINALIZE:
            given = values.get("finalization", {})
            for key in ("tool_iteration_limit", "llm_call_limit"):
                if key not in given:
                    fields[f"{key}_finalization"] = ""
        return fields, places

    def _approval(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        approval, at = as_table(values.get("approval", {}), "by"), (*place, "approval")
        fields, places = APPROVAL.parameters(approval, at)
        by = approval.get("by", "ask")
        words: dict[str, Any] = {"ask": remote(), "approve": _approve, "deny": _deny}
        fields["approval"] = by if callable(by) else words[by]
        return fields, {**places, "approval": at}

    def _compact(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        if "compact" not in values:
            return {}, {}
        compact, at = as_table(values["compact"], "by"), (*place, "compact")
        fields, places = COMPACT.parameters(compact, at)
        by = compact.get("by", "trim")
        fitting = () if callable(by) else COMPACT_OPTIONS[by]
        for key in COMPACT_OPTIONS["summarise"]:
            if key in compact and key not in fitting:
                self.reading.fault((*at, key), f"is not for {'a function' if callable(by) else by}")
        options = {key: compact[key] for key in fitting if key in compact}
        makers: dict[Any, Callable[..., Any]] = {"trim": trim, "summarise": summarise}
        make = makers.get(by)
        made = by if make is None else self.reading.make(make, options, {key: (*at, key) for key in options}, at)
        if not isinstance(made, Bad):
            fields["compact"] = made
        return fields, {**places, "compact": at}

    def _stop_when(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        if "stop_when" not in values:
            return {}, {}
        given, at = STOP_WHEN.parameters(values["stop_when"], (*place, "stop_when"))
        conditions: list[Any] = list(given.pop("functions", []))
        for key, value in given.items():
            if value is False:
                self.reading.fault(at[key], "must be true, or not there")
                continue
            made = self._condition(_CONDITIONS[key], value, at[key])
            conditions += [] if made is None else [made]
        if not values["stop_when"]:
            self.reading.fault(
                (*place, "stop_when"), "has no condition: to run until the model is done, say is_loop_finished = true"
            )
        return {"stop_when": conditions or None}, {"stop_when": (*place, "stop_when")}

    def _condition(self, make: Callable[[Any], StopCondition], value: Any, at: Place) -> StopCondition | None:
        made = self.reading.make(lambda: make(value), {}, {}, at)
        return None if isinstance(made, Bad) else made

    def _budget(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        if "budget" not in values:
            return {}, {}
        name, at = values["budget"], (*place, "budget")
        if name not in self.budgets:
            names = ", ".join(self.budgets) or "none"
            self.reading.fault(at, f"there is no budget {name!r}{guess(name, self.budgets)}; there are: {names}")
        return {"budget": self.budgets.get(name)}, {"budget": at}

    def _tools(self, values: Mapping[str, Any], place: Place) -> tuple[list[Tool], bool]:
        """The tools, and whether these are all: what is wrong, or was not imported, is left out."""
        faults = len(self.reading.faults)
        found = tools_of(values.get("tools", []), self.tools, self.reading)
        tools = [tool for tool in found if isinstance(tool, Tool)]
        is_whole = not any(isinstance(tool, Unread) for tool in found)
        for at, item in values.get("sub_agents", []):
            tools += self._sub_agent(item, at)
        for at, item in values.get("handoffs", []):
            tools += self._handoff(item, at)
        is_whole = is_whole and len(self.reading.faults) == faults
        asked: Sequence[str] = as_table(values.get("approval", {}), "by").get("tools", [])
        names = [tool.name for tool in tools]
        for name in asked:
            if is_whole and name not in names:
                self.reading.fault(
                    (*place, "approval", "tools"),
                    f"there is no tool {name!r}{guess(name, names)}; there are: {', '.join(names) or 'none'}",
                )
        return [attrs.evolve(tool, needs_approval=True) if tool.name in asked else tool for tool in tools], is_whole

    def _sub_agent(self, item: Any, at: Place) -> list[Tool]:
        values = as_table(item, "agent")
        name = self._known(values, at)
        if name is None:
            return []
        if name in self._open:
            circle = " asks ".join([*self._open[self._open.index(name) :], name])
            self.reading.fault(at, f"is a circle: {circle}; agents that go on in each other's place are handoffs")
            return []
        spec = self._agent(name)
        if spec is None:
            return []
        fields, places = SUB_AGENT.parameters(values, at)
        if not values.get("background", False):
            made = self.reading.make(functools.partial(sub_agent, spec), fields, places, at)
            return [] if isinstance(made, Bad) else [made]
        for key in ("timeout_seconds", "needs_approval"):
            if key in fields:
                self.reading.fault(places[key], "is for a task that is waited for, and goes not with background")
                del fields[key]
        pair = self.reading.make(functools.partial(background_agent, spec), fields, places, at)
        return [] if isinstance(pair, Bad) else [*pair]

    def _handoff(self, item: Any, at: Place) -> list[Tool]:
        values = as_table(item, "agent")
        name = self._known(values, at)
        if name is None:
            return []
        fields, places = HANDOFF.parameters(values, at)

        def target() -> AgentSpec:
            spec = self.made[name]
            assert spec is not None  # else nothing of the file is served
            return spec

        made = self.reading.make(functools.partial(handoff, target, agent=name), fields, places, at)
        return [] if isinstance(made, Bad) else [made]

    def _known(self, values: Mapping[str, Any], at: Place) -> str | None:
        name = values.get("agent")
        if name is None:
            return None
        if name in self.tables:
            return str(name)
        names = ", ".join(self.tables)
        self.reading.fault(at, f"there is no agent {name!r}{guess(name, self.tables)}; there are: {names}")
        return None


def as_table(given: Any, key: str) -> Mapping[str, Any]:
    """A table as it is; of a word, the table that it is short for."""
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {key: given}


def _approve(_request: ApprovalRequest) -> ApprovalResponse:
    return approve()


def _deny(_request: ApprovalRequest) -> ApprovalResponse:
    return deny()
